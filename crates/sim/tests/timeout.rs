//! The retransmission timer in a whole run, against RFC 6298's arithmetic.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Selection};
use fairwave_sim::{Settings, simulate};

/// Packets sent in so many seconds by a session none of whose packets arrives.
fn sent(duration_s: u64) -> u64 {
    let text = format!(
        "name = \"dead\"\nduration = \"{duration_s} s\"\nscheme = \"sack\"\n\
         [[node]]\nname = \"s\"\ncapacity = \"1 Gb/s\"\n[[node]]\nname = \"d\"\ncapacity = \"1 Gb/s\"\nreceive_loss = 0.999999999\n\
         [[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"100 ms\"\n"
    );
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    let run = simulate(&document.build(&case).unwrap().0, Settings::default()).unwrap();
    run.summary.sessions[0].sent_packets
}

#[test]
fn timer__backs_off_from_three_seconds_to_a_minute() {
    // The first window of two packets; then one each at 3, 3 + 6, + 12, + 24, + 48, + 60 and + 60 s (RFC 6298 s2.1, s5.5;
    // 3 s as in RFC 2988 and ns-2; the bound is s2.5's).
    let times_s = [3, 9, 21, 45, 93, 153, 213];
    for (earlier, at_s) in times_s.into_iter().enumerate() {
        assert_eq!(sent(at_s - 1), 2 + earlier as u64, "before {at_s} s");
        assert_eq!(sent(at_s + 1), 3 + earlier as u64, "after {at_s} s");
    }
}
