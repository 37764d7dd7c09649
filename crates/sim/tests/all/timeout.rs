//! The retransmission timer in a whole run, compared with RFC 6298's arithmetic.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, LossKind, Run, Selection};
use fairwave_sim::{Settings, simulate};

fn run(text: &str) -> Run {
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    simulate(&document.build(&case).unwrap().0, Settings::default()).unwrap()
}

/// Packets sent in this time by a session of which no packet arrives.
fn sent(duration_ms: u64) -> u64 {
    let text = format!(
        "name = \"dead\"\nduration = \"{duration_ms} ms\"\nscheme = \"sack\"\n\
         [[node]]\nname = \"s\"\ncapacity = \"1 Gb/s\"\n[[node]]\nname = \"d\"\ncapacity = \"1 Gb/s\"\nreceive_loss = 0.999999999\n\
         [[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"100 ms\"\n"
    );
    run(&text).summary.sessions[0].sent_packets
}

/// One session for two minutes over 100 Mb/s and 600 ms, in which each data packet is lost with this probability.
fn long_and_lossy(scheme: &str, loss: &str) -> Run {
    run(&format!(
        "name = \"long\"\nduration = \"120 s\"\nscheme = \"{scheme}\"\n\
         [[node]]\nname = \"a\"\ncapacity = \"100 Mb/s\"\n[[node]]\nname = \"b\"\ncapacity = \"100 Mb/s\"\nreceive_loss = {loss}\n\
         [[session]]\nname = \"only\"\nfrom = \"a\"\nto = \"b\"\nrtt = \"600 ms\"\n"
    ))
}

#[test]
fn resent__on_a_long_lossy_path_equals_losses() {
    // A tail may be sent again needlessly, once per recovery (RFC 6675 s4, NextSeg's rules 3 and 4), and so may packets
    // that a time-out marks as lost: at most a quarter more than was lost, plus ten.
    for (scheme, loss) in
        [("sack", "1e-4"), ("sack", "1e-3"), ("newreno", "1e-4"), ("hstcp", "1e-4"), ("cubic", "1e-4")]
    {
        let run = long_and_lossy(scheme, loss);
        let only = &run.summary.sessions[0];
        println!(
            "{scheme} {loss}: {} lost, {} sent again, {} time-outs",
            only.lost_packets, only.retransmitted_packets, only.timeouts
        );
        assert!(only.lost_packets > 3, "{only:?}");
        assert!(only.retransmitted_packets <= only.lost_packets * 5 / 4 + 10, "{scheme}, {loss}: {only:?}");
    }
}

#[test]
fn resent__by_xcp_on_a_long_lossy_path_equals_losses() {
    for loss in ["1e-4", "1e-3"] {
        let run = long_and_lossy("xcp", loss);
        let only = &run.summary.sessions[0];
        println!(
            "xcp {loss}: {} lost, {} sent again, {} time-outs",
            only.lost_packets, only.retransmitted_packets, only.timeouts
        );
        assert!(only.lost_packets > 50, "{only:?}");
        assert!(only.retransmitted_packets <= only.lost_packets * 5 / 4 + 10, "xcp, {loss}: {only:?}");
    }
}

#[test]
fn timeouts__are_counted_separately_from_other_losses() {
    // A tenth of all packets lost: windows of a few packets, many of them without three acknowledgements after a loss.
    let text = "name = \"dear\"\nduration = \"60 s\"\nscheme = \"sack\"\n\
                [[node]]\nname = \"s\"\ncapacity = \"10 Mb/s\"\n[[node]]\nname = \"d\"\ncapacity = \"10 Mb/s\"\nreceive_loss = 0.1\n\
                [[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"50 ms\"\n";
    let run = run(text);
    let count = |kind| run.losses.iter().filter(|loss| loss.kind == kind).count() as u64;
    let (timeouts, losses) = (count(LossKind::Timeout), count(LossKind::Loss));
    assert!(timeouts > 5 && losses > 50, "{timeouts} time-outs, {losses} other losses");
    // Repeated time-outs for a packet that the timer has already sent again cut nothing.
    assert!(run.summary.sessions[0].timeouts >= timeouts);
}

#[test]
fn timer__backs_off_from_a_second_to_a_minute() {
    // The first window of two packets; then one each at 1, 1 + 2, + 4, + 8, + 16, + 32, + 60 and + 60 s (RFC 6298 s2.1,
    // s5.5; the bound is s2.5's).
    let times_s = [1, 3, 7, 15, 31, 63, 123, 183];
    for (earlier, at_s) in times_s.into_iter().enumerate() {
        assert_eq!(sent(at_s * 1000 - 500), 2 + earlier as u64, "before {at_s} s");
        assert_eq!(sent(at_s * 1000 + 500), 3 + earlier as u64, "after {at_s} s");
    }
}
