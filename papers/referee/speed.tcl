# ns speed.tcl CASE [count]: the cases of crates/sim/examples/speed.rs; "count" adds queue monitors and prints the packet hops.
lassign $argv case count
set ns [new Simulator]; $ns use-scheduler [expr {[lindex $argv 2] == "" ? "Calendar" : [lindex $argv 2]}]
remove-all-packet-headers
add-packet-header IP TCP Flags
Agent/TCP set packetSize_ 1000; Agent/TCP set window_ 1000000
set n [expr {$case == "many" ? 500 : 5}]
set T [expr {$case == "constant" ? 100 : $case == "many" ? 20 : 60}]
set leaf [expr {$case == "many" ? 1000 : 500}]; set mbps [expr {$case == "many" ? 1000 : $case == "constant" ? 500 : 450}]
set largest [expr {$case == "many" ? 100 : $case == "lossy" ? 10 : 90}]
set u [new RNG]; $u seed 1
set hub [$ns node]; set d [$ns node]; set monitors {}
proc link {x y mbps ms rtt} {
    global ns count monitors
    $ns duplex-link $x $y ${mbps}Mb ${ms}ms DropTail
    set q [expr int($mbps * $rtt * 1e3 / 8320) + 1]
    $ns queue-limit $x $y $q; $ns queue-limit $y $x $q
    if {$count == "count"} { lappend monitors [$ns monitor-queue $x $y ""] [$ns monitor-queue $y $x ""] }
}
link $hub $d $mbps 0 $largest
if {$case == "lossy"} {
    set m [new ErrorModel]; $m unit pkt; $m set rate_ 0.01; $m drop-target [new Agent/Null]; $m ranvar [new RandomVariable/Uniform]
    $ns lossmodel $m $hub $d
}
for {set i 0} {$i < $n} {incr i} {
    set rtt [expr {$case == "many" ? [$u uniform 10 100] : $case == "lossy" ? 10 : 10 + 20 * $i}]
    set s [$ns node]; link $s $hub $leaf [expr $rtt / 2.0] $rtt
    if {$case == "constant"} {
        set a [new Agent/UDP]; $a set packetSize_ 2000; set k [new Agent/Null]
        set f [new Application/Traffic/CBR]; $f set packetSize_ 1040; $f set rate_ 96Mb; $f set random_ 0
    } else { set a [new Agent/TCP/Sack1]; set k [new Agent/TCPSink/Sack1]; set f [new Application/FTP] }
    $ns attach-agent $s $a; $ns attach-agent $d $k; $ns connect $a $k; $f attach-agent $a; lappend all $a
    $ns at [expr {$i * ($case == "many" ? 0.000013 : 0.0013)}] "$f start"
}
$ns at $T {
    set hops 0; foreach m $monitors { set hops [expr $hops + [$m set pdepartures_]] }
    set alive ""; if {$case != "constant"} { foreach a $all { lappend alive [$a set ack_] } }
    puts "ns-2 $case hops $hops acked [lrange $alive 0 4]"; exit 0
}
$ns run
