//! RBUDP sessions compared with the arithmetic of He et al. 2002.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Run, Selection};
use fairwave_schemes::session::{rbudp_loss, rbudp_transfer_s};
use fairwave_sim::{Settings, SimError, simulate};

fn try_run(keys: &str) -> Result<Run, SimError> {
    let text = format!(
        "name = \"rbudp\"\nduration = \"60 s\"\nscheme = \"rbudp\"\n\
         [[node]]\nname = \"d\"\ncapacity = \"500 Mb/s\"\nqueue = \"20 kB\"\n\
         [[node]]\nname = \"s\"\ncapacity = \"2 Gb/s\"\n\
         [[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"100 ms\"\n{keys}\n"
    );
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    simulate(&document.build(&case).unwrap().0, Settings::default())
}

const PACKETS: f64 = 100_000.0;

/// A transfer of 100 MB at a rate: its completion time, and the packets sent and lost.
fn transfer(rate: &str) -> (f64, u64, u64) {
    let run = try_run(&format!("size = \"100 MB\"\ndemand = \"{rate}\"")).unwrap();
    let session = &run.summary.sessions[0];
    assert_eq!(session.delivered_bytes, 100_000_000);
    assert_eq!(session.sent_packets - session.retransmitted_packets, 100_000);
    (session.completed_s.unwrap(), session.sent_packets, session.lost_packets)
}

#[test]
fn transfer__below_the_capacity_takes_one_blast() {
    let (completed_s, sent, lost) = transfer("400 Mb/s");
    // 832 Mb at 400 Mb/s: 2.08 s, plus half an RTT to arrive; the sink's bitmap takes the other half.
    assert!((completed_s - 2.13).abs() < 1e-3, "{completed_s}");
    assert_eq!((sent, lost), (100_000, 0));
}

#[test]
fn transfer__above_the_capacity_loses_the_excess_each_round() {
    // At 625 Mb/s a fifth of each round is lost: 1, 1/5, 1/25 ... are sent, 1.25 in all.
    let (completed_s, sent, lost) = transfer("625 Mb/s");
    let loss = rbudp_loss(625e6, 500e6);
    // The queue of 20 kB spares about 20 packets of each round. In bytes, because in packets it would be as full for
    // the small packet that ends a round, and each loss of that is a time-out.
    assert!((sent as f64 / PACKETS - 1.25).abs() < 0.005, "{sent}");
    assert!((lost as f64 / sent as f64 - loss).abs() < 0.003, "{lost} of {sent}");
    // Round by round: a fifth minus the packets in the queue, 19 that fit in addition to the one on the wire.
    let (mut left, mut all, mut rounds) = (PACKETS, 0.0, 0.0);
    while left >= 1.0 {
        all += left;
        rounds += 1.0;
        left = loss * left - 20.0;
    }
    // The end of each round waits for a full queue, and the sink's bitmap of 100 000 bits takes 13 packets.
    let exchange_s = 0.1 + (20_000.0 + 12_500.0 + 13.0 * 40.0) * 8.0 / 500e6;
    let rounds_s = all * 8320.0 / 625e6 + rounds * exchange_s;
    // The formula without a queue: all rounds, until less than a packet is left.
    let formula_s = rbudp_transfer_s(PACKETS * 8320.0, 625e6, 0.1, loss, PACKETS);
    println!("{completed_s} s, {rounds} rounds {rounds_s} s, formula {formula_s} s");
    // All data have arrived half an RTT before the source knows.
    assert!((completed_s + 0.05 - rounds_s).abs() < 0.001, "{completed_s} {rounds_s}");
    // Eight rounds instead of six.
    assert!((formula_s - rounds_s - 0.2).abs() < 0.01, "{formula_s} {rounds_s}");
}

#[test]
fn transfer__that_lacks_a_rate_or_a_size_is_refused() {
    for (keys, what) in [("size = \"1 MB\"", "a demand"), ("demand = \"1 Mb/s\"", "a size")] {
        let error = try_run(keys).unwrap_err();
        assert!(error.to_string().contains(what) && error.hint().is_some(), "{error}");
    }
}

#[test]
fn transfer__under_loss_both_ways_is_complete() {
    let keys = "size = \"10 MB\"\ndemand = \"400 Mb/s\"\n[[variant]]\nlabel = \"loss\"\nnode.d.loss = 0.05";
    let run = try_run(keys).unwrap();
    let session = &run.summary.sessions[0];
    assert_eq!(session.delivered_bytes, 10_000_000);
    // 5 % lost at the sink's access link: 1 / 0.95 - 1 are sent again.
    assert!((session.retransmitted_packets as f64 / 10_000.0 - 0.0526).abs() < 0.01, "{session:?}");
}
