//! Transfers from memory to memory that meet what networks do.

use std::time::{Duration, Instant};

use crate::hosts::{Hosts, Initiator, dedicated};
use crate::relay::{Way, address, device};

const MB: u64 = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(30);
const BOTH: [Initiator; 2] = [Initiator::Takes, Initiator::Gives];

#[test]
fn session__bytes_arrive_whole_through_loss_reordering_and_duplicates() {
    let Some(_turn) = crate::world() else { return };
    let hosts = Hosts::new(2, 11, Duration::from_millis(5));
    let way = Way {
        delay: Duration::from_millis(5),
        loss: 0.02,
        duplicate: 0.02,
        late: 0.05,
        late_by: Duration::from_millis(7),
        ..Way::default()
    };
    hosts.relay.set_both(0, way);
    for initiator in BOTH {
        let run = hosts.transfer(initiator, false, 8 * MB, &dedicated(100.0));
        run.tally.wait(8 * MB, PATIENCE);
        run.ends.iter().for_each(fairwave_host::Endpoint::close);
    }
    let report = hosts.relay.stop().expect("devices last");
    assert!(report.lost > 100, "{report}");
}

#[test]
fn session__outlives_two_seconds_of_blackhole() {
    let Some(_turn) = crate::world() else { return };
    let hosts = Hosts::new(2, 12, Duration::from_millis(10));
    for initiator in BOTH {
        let run = hosts.transfer(initiator, false, 12 * MB, &dedicated(40.0));
        run.tally.wait(3 * MB, PATIENCE);
        let way = Way { delay: Duration::from_millis(10), ..Way::default() };
        hosts.relay.set_both(0, Way { is_blackhole: true, ..way });
        std::thread::sleep(Duration::from_millis(100));
        let before = run.tally.bytes();
        std::thread::sleep(Duration::from_millis(1900));
        assert_eq!(run.tally.bytes(), before, "nothing comes out of a blackhole");
        hosts.relay.set_both(0, way);
        run.tally.wait(12 * MB, PATIENCE);
        run.ends.iter().for_each(fairwave_host::Endpoint::close);
    }
}

#[test]
fn session__follows_its_initiator_to_a_new_address() {
    let Some(_turn) = crate::world() else { return };
    for is_ipv6 in [false, true] {
        for initiator in BOTH {
            let hosts = Hosts::new(2, 13, Duration::from_millis(10));
            let run = hosts.transfer(initiator, is_ipv6, 10 * MB, &dedicated(40.0));
            run.tally.wait(2 * MB, PATIENCE);
            let (space, prefix) = (&hosts.spaces[0], if is_ipv6 { 128 } else { 32 });
            space.add_address(&device(0), address(0, 2, is_ipv6), prefix).expect("root may");
            space.remove_address(&device(0), address(0, 1, is_ipv6), prefix).expect("it is there");
            run.tally.wait(10 * MB, PATIENCE);
        }
    }
}

#[test]
fn session__goes_on_in_smaller_packets_when_large_ones_vanish() {
    let Some(_turn) = crate::world() else { return };
    for initiator in BOTH {
        let hosts = Hosts::new(2, 14, Duration::from_millis(10));
        let run = hosts.transfer(initiator, false, 60 * MB, &dedicated(40.0));
        run.tally.wait(1, PATIENCE);
        let source = &run.ends[usize::from(initiator == Initiator::Takes)];
        let datagram_bytes = || source.sessions()[0].stats().datagram_bytes;
        let begin = Instant::now();
        while datagram_bytes() < 1400 {
            assert!(begin.elapsed() < PATIENCE, "the path takes 1472 bytes, and {} are used", datagram_bytes());
            std::thread::sleep(Duration::from_millis(10));
        }
        hosts.relay.set_both(0, Way { delay: Duration::from_millis(10), mtu: Some(1300), ..Way::default() });
        run.tally.wait(12 * MB, PATIENCE);
        assert!(datagram_bytes() <= 1272, "{} bytes are too many", datagram_bytes());
    }
}

#[test]
fn session__needs_no_ipv4() {
    let Some(_turn) = crate::world() else { return };
    let hosts = Hosts::new(2, 15, Duration::from_millis(5));
    for (port, space) in hosts.spaces.iter().enumerate() {
        space.remove_address(&device(port), address(port, 1, false), 32).expect("it is there");
        space.remove_address("lo", "127.0.0.1".parse().expect("an address"), 8).expect("it is there");
    }
    for initiator in BOTH {
        let run = hosts.transfer(initiator, true, 4 * MB, &dedicated(100.0));
        run.tally.wait(4 * MB, PATIENCE);
        assert!(run.session.facts().peer.is_ipv6());
        run.ends.iter().for_each(fairwave_host::Endpoint::close);
    }
}

/// Sets this machine's clock, so somebody has to ask for it: FAIRWAVE_CLOCK_JUMPS=1. That nothing here looks at the wall
/// clock but the days of tickets is what `clippy.toml` of this crate sees to.
#[test]
#[expect(clippy::disallowed_methods, reason = "it makes the clock jump")]
fn session__does_not_notice_that_the_clock_jumps() {
    use rustix::time::{ClockId, clock_gettime, clock_settime};
    let Some(_turn) = crate::world() else { return };
    if std::env::var_os("FAIRWAVE_CLOCK_JUMPS").is_none_or(|value| value != "1") {
        println!("skipped: FAIRWAVE_CLOCK_JUMPS=1 sets the clock of this machine an hour on and back");
        return;
    }
    let jump = |seconds: i64| {
        let mut time = clock_gettime(ClockId::Realtime);
        time.tv_sec += seconds;
        clock_settime(ClockId::Realtime, time).expect("root may");
    };
    let hosts = Hosts::new(2, 16, Duration::from_millis(5));
    let run = hosts.transfer(Initiator::Takes, false, 12 * MB, &dedicated(40.0));
    run.tally.wait(2 * MB, PATIENCE);
    let before = run.tally.rate(Duration::from_millis(500));
    jump(3600);
    let after = run.tally.rate(Duration::from_millis(500));
    jump(-3600);
    let again = run.tally.rate(Duration::from_millis(500));
    run.tally.wait(12 * MB, PATIENCE);
    println!("{:.1} Mb/s, {:.1} an hour later, {:.1} an hour earlier", before * 8e-6, after * 8e-6, again * 8e-6);
    assert!(after > 0.5 * before && again > 0.5 * before, "{before} {after} {again}");
}
