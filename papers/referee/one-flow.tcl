# ns one-flow.tcl P DURATION SEED: one SACK flow, RTT 50 ms, 10 Gb/s, every data packet lost with probability P; mean window.
lassign $argv p T seed; ns-random $seed
Agent/TCP set packetSize_ 1000; Agent/TCP set window_ 1000000
set ns [new Simulator]; $ns use-scheduler Heap
set x [$ns node]; set y [$ns node]
$ns duplex-link $x $y 10Gb 25ms DropTail; $ns queue-limit $x $y 1000000; $ns queue-limit $y $x 1000000
set m [new ErrorModel]; $m unit pkt; $m set rate_ $p; set r [new RNG]; $r seed $seed
set rv [new RandomVariable/Uniform]; $rv use-rng $r; $m ranvar $rv; $m drop-target [new Agent/Null]
$ns lossmodel $m $x $y
set a [new Agent/TCP/Sack1]; set k [new Agent/TCPSink/Sack1]; $a set ssthresh_ 30
$ns attach-agent $x $a; $ns attach-agent $y $k; $ns connect $a $k
set f [new Application/FTP]; $f attach-agent $a; $ns at 0 "$f start"
set sum 0; set n 0
proc sample {} { global ns a sum n; set sum [expr $sum + [$a set cwnd_]]; incr n; $ns after 0.01 sample }
$ns at [expr $T / 10.0] { set first [$a set ack_]; set c0 [$a set ncwndcuts_]; sample }
$ns at $T { set w [expr $sum / $n]; set t [expr $T * 0.9]
  puts [format "p %g seed %d: mean cwnd %.1f x sqrt(p) = %.3f; rate x rtt %.1f x sqrt(p) = %.3f; timeouts %d cuts %d" $p $seed $w [expr $w * sqrt($p)] [expr ([$a set ack_] - $first) / $t * 0.05] [expr ([$a set ack_] - $first) / $t * 0.05 * sqrt($p)] [$a set nrexmit_] [expr [$a set ncwndcuts_] - $c0]]
  exit 0 }
$ns run
