# Senders of ns-2 by the names that Fairwave uses. Window_ is the advertised window in packets.
Agent/TCP set packetSize_ 1000
Agent/TCP set window_ 1000000
proc sender {scheme} {
    switch $scheme {
        newreno { set a [new Agent/TCP/Newreno] }
        sack    { set a [new Agent/TCP/Sack1] }
        hstcp   { set a [new Agent/TCP/Sack1]; $a set windowOption_ 8; $a set max_ssthresh_ 50 }
        hstcp-plain { set a [new Agent/TCP/Sack1]; $a set windowOption_ 8 }
        aimd    { set a [new Agent/TCP/Sack1]; $a set increase_num_ 32; $a set decrease_num_ 0.875 }
        stcp    { set a [new Agent/TCP/Sack1]; $a set windowOption_ 6; $a set k_parameter_ -1; $a set l_parameter_ 1
                  $a set increase_num_ 0.01; $a set decrease_num_ 0.875; low_window $a stcp 0.005 }
        bic     { set a [new Agent/TCP/Sack1]; $a set increase_num_ 32; $a set decrease_num_ 0.875
                  global bic_max bic_cuts bic_last; set bic_max($a) 1e9; set bic_cuts($a) 0; set bic_last($a) 2; low_window $a bic 0.001 }
        default { set a [new Agent/TCP/Linux]; $a set timestamps_ true
                  global ns; $ns at 0 "$a select_ca [string range $scheme 6 end]" }
    }
    return $a
}
# Below its low window a scheme is plain TCP; ns-2 has no such switch, so a timer turns it.
proc low_window {a kind every} {
    global ns
    set w [$a set cwnd_]
    if {$kind == "stcp"} {
        if {$w < 16} { $a set windowOption_ 1; $a set increase_num_ 1; $a set decrease_num_ 0.5 } \
        else { $a set windowOption_ 6; $a set increase_num_ 0.01; $a set decrease_num_ 0.875 }
    } else {
        # BIC (Xu et al. 2004, Sec. VI-A): the increment a round trip is set every millisecond.
        global bic_max bic_cuts bic_last
        set cuts [$a set ncwndcuts_]
        if {$cuts != $bic_cuts($a)} {
            set before $bic_last($a)
            if {$before >= 14} { set bic_max($a) [expr {$before < $bic_max($a) && $bic_max($a) < 1e8 ? $before * 1.875 / 2 : $before}] }
            set bic_cuts($a) $cuts
        }
        set bic_last($a) $w
        if {$w < 14} { $a set increase_num_ 1; $a set decrease_num_ 0.5 } else {
            set inc [expr {$w < $bic_max($a) ? ($bic_max($a) - $w) / 2 : $w - $bic_max($a)}]
            $a set increase_num_ [expr {$inc > 32 ? 32 : $inc < 0.01 ? 0.01 : $inc}]
            $a set decrease_num_ 0.875
        }
    }
    $ns after $every "low_window $a $kind $every"
}
proc sink {scheme} {
    if {$scheme == "newreno"} { return [new Agent/TCPSink] }
    if {[string match linux-* $scheme]} { set s [new Agent/TCPSink/Sack1]; $s set ts_echo_rfc1323_ true; return $s }
    return [new Agent/TCPSink/Sack1]
}
