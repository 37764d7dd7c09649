//! Allocations of a run: none per packet in steady state, and less than 100 bytes for all the state of a packet. The
//! counts are exact; the test is the only one of its program, as the allocations of parallel ones would be counted.

#![allow(non_snake_case)]

use std::alloc::System;

use fairwave_scenario::{Document, Selection, Settings};
use fairwave_sim::simulate;
use fairwave_units::Time;
use stats_alloc::{INSTRUMENTED_SYSTEM, Stats, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Number of allocations so far, including those that moved or grew.
fn allocations(stats: &Stats) -> usize {
    stats.allocations + stats.reallocations
}

fn live_bytes(stats: &Stats) -> usize {
    stats.bytes_allocated - stats.bytes_deallocated
}

/// Runs a scenario with samples of a second: allocations up to the end of each, from zero on, and packet hops.
fn run(text: &str) -> (Vec<Stats>, u64) {
    let document = Document::parse("memory", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    let scenario = document.build(&case).unwrap().0;
    let mut stats = Vec::with_capacity(100);
    stats.push(ALLOCATOR.stats());
    let (sample, mut last) = (scenario.sample, Time::ZERO);
    // It is also called within samples, and after the end.
    let mut progress = |at: Time| {
        if at > last && at.as_nanos().is_multiple_of(sample.as_nanos()) {
            last = at;
            stats.push(ALLOCATOR.stats());
        }
    };
    let run = simulate(&scenario, Settings { progress: Some(&mut progress), ..Settings::default() }).unwrap();
    (stats, run.summary.engine.packet_hops)
}

fn five_to_one(scheme: &str, mbps: u32, loss: f64, demand: &str) -> String {
    format!(
        "name = \"memory\"\nduration = \"20 s\"\nsample = \"1 s\"\nscheme = \"{scheme}\"\n\
         [[node]]\nname = \"d\"\ncapacity = \"{mbps} Mb/s\"\nreceive_loss = {loss}\n\
         [[node]]\nname = \"s{{1..5}}\"\ncapacity = \"{mbps} Mb/s\"\n\
         [[session]]\nfrom = \"s{{1..5}}\"\nto = \"d\"\n{demand}\n\
         rtt = {{ each = [\"10 ms\", \"30 ms\", \"50 ms\", \"70 ms\", \"90 ms\"] }}\n"
    )
}

fn steady_state__allocates_nothing_for_a_packet() {
    for (scheme, loss, demand) in
        [("cbr", 0.0, "demand = \"9 Mb/s\""), ("sack", 0.0, ""), ("newreno", 0.001, ""), ("bic", 0.01, "")]
    {
        for mbps in [20, 100] {
            let (stats, hops) = run(&five_to_one(scheme, mbps, loss, demand));
            let allocated = allocations(&stats[20]) - allocations(&stats[10]);
            println!("{scheme} at {mbps} Mb/s: {allocated} allocations in the second half, {hops} packet hops in all");
            // A ring that is fuller than ever before grows by a quarter: a few times, at any rate.
            assert!(allocated < 40 && hops > 50_000, "{scheme} at {mbps} Mb/s: {allocated}, {hops}");
        }
    }
}

/// GTP's control packets have bodies, which are allocated; data packets have none.
fn steady_state__of_gtp_allocates_nothing_for_data() {
    let counts = [20, 100].map(|mbps| {
        let (stats, hops) = run(&five_to_one("gtp", mbps, 0.0, ""));
        let allocated = allocations(&stats[20]) - allocations(&stats[10]);
        println!("gtp at {mbps} Mb/s: {allocated} allocations in the second half, {hops} packet hops in all");
        allocated as f64
    });
    // From 20 to 100 Mb/s there are 92 000 more data packets in 10 s, and requests of 64 kB: an allocation per twenty.
    assert!(counts[1] - counts[0] < 0.07 * 92_000.0, "{counts:?}");
}

fn packets_in_flight__take_less_than_100_bytes_each() {
    // A window of 10^5 packets, all sent together: they are queued at the source's link, then at the sink's, and their
    // acknowledgements at the link back. Each packet sent answers an acknowledgement, so their number in flight is
    // constant; with losses it is smaller, whereas all allocations count.
    for (loss, back) in [(0.0, "200 Mb/s"), (0.01, "200 Mb/s"), (0.0, "5 Mb/s")] {
        let text = format!(
            "name = \"memory\"\nduration = \"9 s\"\nsample = \"0.1 s\"\nscheme = \"sack\"\n\
             [[node]]\nname = \"s\"\ncapacity = \"1 Gb/s\"\nqueue = \"1000000 packets\"\n\
             [[node]]\nname = \"d\"\nreceive = \"200 Mb/s\"\nsend = \"{back}\"\nqueue = \"1000000 packets\"\nreceive_loss = {loss}\n\
             [[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"100 ms\"\n\
             [options]\ninitial_window = \"100000 packets\"\nmax_window = \"100000 packets\"\n"
        );
        let (stats, hops) = run(&text);
        let most = stats.iter().map(live_bytes).max().unwrap() - live_bytes(&stats[0]);
        println!("loss {loss}, {back} back: {:.1} bytes a packet at the most, {hops} hops", most as f64 / 1e5);
        assert!(most < 100 * 100_000, "loss {loss}, {back} back: {most} bytes");
        // All are stored: half a cache line per packet, plus its arrival time.
        assert!(most > 48 * 100_000, "{most}");
    }
}

#[test]
fn memory() {
    steady_state__allocates_nothing_for_a_packet();
    steady_state__of_gtp_allocates_nothing_for_data();
    packets_in_flight__take_less_than_100_bytes_each();
}
