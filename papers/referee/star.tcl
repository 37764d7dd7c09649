# ns star.tcl SCHEME DURATION SEED [fig3]: five sources, one sink, 500 Mb/s each.
source [file dirname [info script]]/schemes.tcl
set scheme [lindex $argv 0]; set T [lindex $argv 1]; ns-random [lindex $argv 2]; set fig3 [expr {[lindex $argv 3] == "fig3"}]
set ns [new Simulator]; $ns use-scheduler Heap
set hub [$ns node]; set d [$ns node]
$ns duplex-link $hub $d 500Mb 0ms DropTail
$ns queue-limit $hub $d 5626; $ns queue-limit $d $hub 100000
set bneck [$ns monitor-queue $hub $d ""]
set rtts [expr {$fig3 ? "10 10 10 10 50" : "10 30 50 70 90"}]
for {set i 0} {$i < 5} {incr i} {
    set s [$ns node]; set rtt [lindex $rtts $i]
    $ns duplex-link $s $hub 500Mb [expr $rtt / 2.0]ms DropTail
    $ns queue-limit $s $hub 5626; $ns queue-limit $hub $s 100000
    set arrivals($i) [$ns monitor-queue $hub $s ""]; set seen($i) 0; set acked($i) 0
    set a($i) [sender $scheme]; set k [sink $scheme]
    if {$fig3 && $i < 4} { $a($i) set window_ 31 }
    $ns attach-agent $s $a($i); $ns attach-agent $d $k; $ns connect $a($i) $k
    set f [new Application/FTP]; $f attach-agent $a($i)
    $ns at [expr $i * 0.0013] "$f start"
}
proc tick {} {
    global ns arrivals seen a acked bneck lastb
    set line "[format %5.1f [$ns now]]"; set sum 0; set sq 0
    for {set i 0} {$i < 5} {incr i} {
        set n [$arrivals($i) set pdepartures_]; set r [expr ($n - $seen($i)) * 8320e-6]; set seen($i) $n
        set k [$a($i) set ack_]; set g [expr ($k - $acked($i)) * 8320e-6]; set acked($i) $k
        append line [format "  %6.1f/%6.1f w%.0f" $r $g [$a($i) set cwnd_]]
        set sum [expr $sum + $r]; set sq [expr $sq + $r * $r]
    }
    puts "$line  total [format %.1f $sum] jain [format %.3f [expr $sum * $sum / (5 * $sq + 1e-9)]] drops [$bneck set pdrops_]"; flush stdout
    $ns after 1 tick
}
$ns at 1 tick
$ns at [expr $T + 0.001] "exit 0"
$ns run
