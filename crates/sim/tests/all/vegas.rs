//! Vegas with three round-trip times, compared with ns-2 2.35 (papers/referee/vegas.tcl).

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Selection};
use fairwave_sim::{Settings, simulate};

/// Rates in the second half minute of three sessions into 10 Mb/s that start `apart_s` after each other. ns-2's
/// sessions have a window of three packets when their SYN and the first of two packets are acknowledged.
fn rates_mbps(rtts_ms: [u32; 3], apart_s: f64) -> [f64; 3] {
    let [a, b, c] = rtts_ms;
    let text = format!(
        "name = \"vegas\"\nduration = \"60 s\"\nscheme = \"vegas\"\n[options]\ninitial_window = \"3 packets\"\n[packet]\npayload = \"960 B\"\n\
         [[node]]\nname = \"s{{1..3}}\"\ncapacity = \"100 Mb/s\"\n\
         [[node]]\nname = \"d\"\ncapacity = \"10 Mb/s\"\nqueue = \"1000 packets\"\n\
         [[session]]\nfrom = \"s{{1..3}}\"\nto = \"d\"\nrtt = {{ each = [\"{a} ms\", \"{b} ms\", \"{c} ms\"] }}\n\
         start = {{ each = [\"0 s\", \"{apart_s} s\", \"{} s\"] }}\n",
        2.0 * apart_s
    );
    let document = Document::parse("vegas.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    let run = simulate(&document.build(&case).unwrap().0, Settings::default()).unwrap();
    [0, 1, 2].map(|at| run.summary.sessions[at].wire_rate_bps / 1e6)
}

/// ns-2's results depend on the order of arrivals: a session with half a packet to three and a half in the queue keeps
/// its rate. So the lines are compared one by one, of which half have to be near, and on average.
#[test]
fn vegas__three_round_trip_times_as_in_ns_2() {
    let (mut sums, mut near) = ([[0.0; 3]; 2], 0);
    // From ns-2: `ns vegas.tcl 60 10 1000 APART_S RTT_MS...`, whose rates are of packets of 1040 B on a link that
    // counts them as 1000 B: scaled by 1000 / 1040.
    let cases = CASES_OF_NS_2;
    for (rtts_ms, apart_s, ns2) in cases {
        let ours = rates_mbps(rtts_ms, apart_s);
        println!("{rtts_ms:?} ms, {apart_s} s apart: {ours:.2?}, ns-2 {ns2:?}");
        let far = ours.iter().zip(ns2).map(|(ours, ns2)| (ours - ns2).abs()).fold(0.0, f64::max);
        near += usize::from(far < 0.3);
        for (sums, rates) in sums.iter_mut().zip([ours, ns2]) {
            sums.iter_mut().zip(rates).for_each(|(sum, rate)| *sum += rate / cases.len() as f64);
        }
    }
    let [ours, ns2] = sums;
    println!("mean: {ours:.2?}, ns-2 {ns2:.2?}; {near} of {} are near", cases.len());
    assert!(ours.iter().zip(ns2).all(|(ours, ns2)| (ours - ns2).abs() < 0.1), "{ours:.2?}, ns-2 {ns2:.2?}");
    assert!(near >= cases.len() / 2, "{near} of {}", cases.len());
}

/// Round-trip times in ms, seconds between the starts, and ns-2's rates in Mb/s.
const CASES_OF_NS_2: [([u32; 3], f64, [f64; 3]); 18] = [
    ([20, 40, 80], 0.3, [4.37, 3.63, 2.00]),
    ([20, 40, 80], 1.0, [4.62, 3.40, 1.98]),
    ([20, 40, 80], 3.0, [4.37, 3.63, 2.00]),
    ([10, 50, 90], 0.3, [5.14, 3.09, 1.77]),
    ([10, 50, 90], 1.0, [5.14, 3.09, 1.77]),
    ([10, 50, 90], 3.0, [5.00, 3.24, 1.77]),
    ([20, 60, 100], 0.3, [5.60, 2.72, 1.67]),
    ([20, 60, 100], 1.0, [5.63, 2.62, 1.75]),
    ([20, 60, 100], 3.0, [5.63, 2.62, 1.75]),
    ([40, 80, 160], 0.3, [5.37, 2.59, 2.05]),
    ([40, 80, 160], 1.0, [5.48, 2.28, 2.24]),
    ([40, 80, 160], 3.0, [5.48, 2.47, 2.05]),
    ([20, 50, 100], 0.3, [5.04, 3.12, 1.85]),
    ([20, 50, 100], 1.0, [5.30, 2.94, 1.76]),
    ([20, 50, 100], 3.0, [5.30, 3.09, 1.61]),
    ([10, 30, 50], 0.3, [4.11, 2.89, 3.00]),
    ([10, 30, 50], 1.0, [2.93, 4.13, 2.94]),
    ([10, 30, 50], 3.0, [3.37, 3.70, 2.94]),
];
