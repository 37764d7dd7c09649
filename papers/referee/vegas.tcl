# ns vegas.tcl DURATION MBPS QUEUE_PACKETS APART_S RTT_MS...: Vegas flows into one sink, each so many seconds after the one before.
# Ends with the rates of the second half, of 1040 B a packet (the link takes them for 1000 B), and the last windows.
set T [lindex $argv 0]; set mbps [lindex $argv 1]; set queue [lindex $argv 2]; set stag [lindex $argv 3]; set rtts [lrange $argv 4 end]
Agent/TCP set packetSize_ 1000
Agent/TCP set window_ 100000
set ns [new Simulator]; $ns use-scheduler Heap
set hub [$ns node]; set d [$ns node]
$ns duplex-link $hub $d ${mbps}Mb 0ms DropTail
$ns queue-limit $hub $d [expr $queue + 1]; $ns queue-limit $d $hub 100000
set bneck [$ns monitor-queue $hub $d ""]
set i 0
foreach rtt $rtts {
    set s [$ns node]
    $ns duplex-link $s $hub 100Mb [expr $rtt / 2.0]ms DropTail
    $ns queue-limit $s $hub 100000; $ns queue-limit $hub $s 100000
    set a($i) [new Agent/TCP/Vegas]; set k [new Agent/TCPSink]
    $ns attach-agent $s $a($i); $ns attach-agent $d $k; $ns connect $a($i) $k
    set f [new Application/FTP]; $f attach-agent $a($i)
    $ns at [expr $i * $stag] "$f start"
    incr i
}
set n $i
proc half {} { global a n h; for {set i 0} {$i < $n} {incr i} { set h($i) [$a($i) set ack_] } }
proc finish {} { global a n h T bneck; set l ""; for {set i 0} {$i < $n} {incr i} { append l [format " %.2f(w%.1f)" [expr ([$a($i) set ack_] - $h($i)) * 8320e-6 / ($T / 2.0)] [$a($i) set cwnd_]] }; puts "$l drops [$bneck set pdrops_]"; exit 0 }
$ns at [expr $T / 2.0] half
$ns at [expr $T] finish
$ns run
