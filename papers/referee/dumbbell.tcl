# ns dumbbell.tcl CAPACITY_MBPS DISCIPLINE DURATION SEED BACKGROUND SCHEME RTT_MS...
# Flows of SCHEME over one bottleneck (10 ms), buffer = capacity x 40 ms; DISCIPLINE drop-tail or red (adaptive, bottom 0.001).
# BACKGROUND 1: each way 25 small TCPs (window 64), 2 long-lived TCPs and web traffic offering 20 % (Pareto 1.2, 12 packets).
# Ends with the mean wire rates of the second half, and writes the times of window cuts to stderr.
source [file dirname [info script]]/schemes.tcl
lassign $argv mbps discipline T seed background scheme
set rtts [lrange $argv 6 end]
ns-random $seed
set ns [new Simulator]; $ns use-scheduler Heap
Agent/TCP set maxburst_ 2
Agent/TCP set overhead_ [expr 5e-5 * 100.0 / $mbps]
set buffer [expr round($mbps * 1e6 * 0.040 / 8320)]
if {$discipline == "red"} {
    Queue/RED set adaptive_ 1; Queue/RED set bottom_ 0.001; Queue/RED set q_weight_ 0; Queue/RED set thresh_ 0; Queue/RED set maxthresh_ 0
    Queue/RED set gentle_ true; Queue/RED set bytes_ false; Queue/RED set queue_in_bytes_ false; Queue/RED set mean_pktsize_ 1000
    set kind RED
} else { set kind DropTail }
set u [new RNG]; $u seed [expr $seed * 7919 + 1]
proc uniform {a b} { global u; return [$u uniform $a $b] }
set r1 [$ns node]; set r2 [$ns node]
$ns duplex-link $r1 $r2 ${mbps}Mb 10ms $kind
$ns queue-limit $r1 $r2 [expr $buffer + 1]; $ns queue-limit $r2 $r1 [expr $buffer + 1]
set forward [$ns monitor-queue $r1 $r2 ""]; set back [$ns monitor-queue $r2 $r1 ""]
proc leaf {router delay_ms} {
    global ns mbps
    set n [$ns node]
    $ns duplex-link $n $router [expr 10 * $mbps]Mb ${delay_ms}ms DropTail
    $ns queue-limit $n $router 1000000; $ns queue-limit $router $n 1000000
    return $n
}
proc flow {scheme rtt_ms start stop window {reverse 0}} {
    global ns r1 r2
    set side [expr ($rtt_ms / 2.0 - 10) / 2]
    set a [sender $scheme]; set k [sink $scheme]; $a set window_ $window
    if {$reverse} { set x [leaf $r2 $side]; set y [leaf $r1 $side] } else { set x [leaf $r1 $side]; set y [leaf $r2 $side] }
    $ns attach-agent $x $a; $ns attach-agent $y $k; $ns connect $a $k
    set f [new Application/FTP]; $f attach-agent $a
    $ns at $start "$f start"
    if {$stop < 1e9} { $ns at $stop "$f stop" }
    return $a
}
set flows {}
foreach rtt $rtts { lappend flows [flow $scheme $rtt [uniform 0 5] 1e9 1000000] }
if {$background} {
    foreach reverse {0 1} {
        for {set i 0} {$i < 25} {incr i} { set s [uniform 0 $T]; flow sack [uniform 24 200] $s [uniform $s $T] 64 $reverse }
        for {set i 0} {$i < 2} {incr i} { flow sack [uniform 40 200] [uniform 0 10] 1e9 1000000 $reverse }
    }
    set gap [expr 20 * 12 * 8320.0 / (0.2 * $mbps * 1e6)]
}
# Web: Poisson arrivals of finite transfers, Pareto sizes (shape 1.2, mean 12 packets), 10 pairs of nodes each way, senders used again.
proc web_done {a} { global pair free; lappend free($pair($a)) $a }
Agent/TCP instproc done {} { global pair; if {[info exists pair($self)]} { web_done $self } }
proc web_arrival {way} {
    global ns gap_rv size_rv which free web pair sinks
    $ns after [$gap_rv value] "web_arrival $way"
    set p $way.[expr int([uniform 0 10])]
    if {[llength $free($p)]} { set a [lindex $free($p) end]; set free($p) [lrange $free($p) 0 end-1]; $a reset; $sinks($a) reset } else {
        set a [new Agent/TCP/Sack1]; set k [new Agent/TCPSink/Sack1]
        $ns attach-agent [lindex $web($p) 0] $a; $ns attach-agent [lindex $web($p) 1] $k; $ns connect $a $k
        set pair($a) $p; set sinks($a) $k
    }
    $a advanceby [expr int(ceil([$size_rv value]))]
}
if {$background} {
    set gap_rv [new RandomVariable/Exponential]; $gap_rv set avg_ [expr 12 * 8320.0 / (0.2 * $mbps * 1e6)]; $gap_rv use-rng $u
    set size_rv [new RandomVariable/Pareto]; $size_rv set avg_ 11.5; $size_rv set shape_ 1.2; $size_rv use-rng $u
    foreach way {0 1} {
        for {set i 0} {$i < 10} {incr i} {
            set x [leaf $r1 [uniform 1 45]]; set y [leaf $r2 [uniform 1 45]]
            set web($way.$i) [expr {$way ? [list $y $x] : [list $x $y]}]; set free($way.$i) {}
        }
        $ns at 0 "web_arrival $way"
    }
}
set cuts {}
foreach a $flows { lappend cuts 0 }
proc poll {} {
    global ns flows cuts
    set i 0
    foreach a $flows {
        set c [$a set ncwndcuts_]
        if {$c != [lindex $cuts $i]} { puts stderr [format "cut %.3f %d" [$ns now] $i]; lset cuts $i $c }
        incr i
    }
    $ns after 0.002 poll
}
$ns at 0 poll
# Byte counters are 32 bits wide: add up by the second.
set last {0 0}; set total {0 0}
proc count {} {
    global ns forward back last total
    set now [list [expr [$forward set bdepartures_]] [expr [$back set bdepartures_]]]
    foreach i {0 1} { lset total $i [expr [lindex $total $i] + (([lindex $now $i] - [lindex $last $i]) & 0xffffffff)] }
    set last $now
}
proc count_on {} { global ns; count; $ns after 1 count_on }
$ns at 1 count_on
proc half {} {
    global flows acked forward back b0 q0 d0
    foreach a $flows { set acked($a) [$a set ack_] }
    global total; count; set b0 $total; set d0 [$forward set pdrops_]
}
proc finish {} {
    global flows acked forward back b0 d0 T mbps scheme discipline rtts seed
    set t [expr $T / 2.0]; set rates {}
    foreach a $flows { lappend rates [format %.3f [expr ([$a set ack_] - $acked($a)) * 8320e-6 / $t]] }
    global total; count
    set uf [expr ([lindex $total 0] - [lindex $b0 0]) * 8 / ($t * $mbps * 1e6)]
    set ub [expr ([lindex $total 1] - [lindex $b0 1]) * 8 / ($t * $mbps * 1e6)]
    set ratio [expr {[llength $rates] < 2 ? 0 : [lindex $rates 0] / ([lindex $rates 1] + 1e-9)}]
    puts "$mbps $discipline $scheme seed $seed rtt {$rtts} rates_mbps {$rates} ratio [format %.2f $ratio] utilisation [format {%.4f back %.4f} $uf $ub] drops [expr [$forward set pdrops_] - $d0]"
    exit 0
}
$ns at [expr $T / 2.0] half
$ns at $T finish
$ns run
