//! Transfers from memory to memory that meet what networks do.

use std::time::Duration;

use crate::net::hosts::{Hosts, Initiator, dedicated};
use fairwave_testing::wait_for;
use fairwave_wan::{Way, address, device};

const MB: u64 = 1_000_000;
const BOTH: [Initiator; 2] = [Initiator::Takes, Initiator::Gives];

#[test]
fn session__bytes_arrive_whole_through_loss_reordering_and_duplicates() {
    let Some(_turn) = crate::net::world() else { return };
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
        run.tally.wait(8 * MB);
        run.ends.iter().for_each(fairwave_host::Endpoint::close);
    }
    let report = hosts.relay.stop().expect("devices last");
    assert!(report.lost > 100, "{report}");
}

#[test]
fn session__outlives_a_blackhole() {
    let Some(_turn) = crate::net::world() else { return };
    let hosts = Hosts::new(2, 12, Duration::from_millis(10));
    for initiator in BOTH {
        let run = hosts.transfer(initiator, false, 12 * MB, &dedicated(40.0));
        run.tally.wait(3 * MB);
        let way = Way { delay: Duration::from_millis(10), ..Way::default() };
        hosts.relay.set_both(0, Way { is_blackhole: true, ..way });
        let second = fairwave_units::Duration::from_secs(1);
        wait_for("a second of silence", || run.session.stats().silent_for > second);
        assert!(run.tally.bytes() < 12 * MB, "nothing comes out of a blackhole");
        hosts.relay.set_both(0, way);
        run.tally.wait(12 * MB);
        run.ends.iter().for_each(fairwave_host::Endpoint::close);
    }
}

#[test]
fn session__follows_its_initiator_to_a_new_address() {
    let Some(_turn) = crate::net::world() else { return };
    for is_ipv6 in [false, true] {
        for initiator in BOTH {
            let hosts = Hosts::new(2, 13, Duration::from_millis(10));
            let run = hosts.transfer(initiator, is_ipv6, 10 * MB, &dedicated(40.0));
            run.tally.wait(2 * MB);
            let (space, prefix) = (&hosts.spaces[0], if is_ipv6 { 128 } else { 32 });
            space.add_address(&device(0), address(0, 2, is_ipv6), prefix).expect("root may");
            space.remove_address(&device(0), address(0, 1, is_ipv6), prefix).expect("it is there");
            run.tally.wait(10 * MB);
        }
    }
}

#[test]
fn session__goes_on_in_smaller_packets_when_large_ones_vanish() {
    let Some(_turn) = crate::net::world() else { return };
    for initiator in BOTH {
        let hosts = Hosts::new(2, 14, Duration::from_millis(10));
        let run = hosts.transfer(initiator, false, 1 << 40, &dedicated(40.0));
        run.tally.wait(1);
        let source = &run.ends[usize::from(initiator == Initiator::Takes)];
        let datagram_bytes = || source.sessions()[0].stats().datagram_bytes;
        wait_for("the path takes 1472 bytes, and they are used", || datagram_bytes() > 1400);
        hosts.relay.set_both(0, Way { delay: Duration::from_millis(10), mtu: Some(1300), ..Way::default() });
        // Nothing larger than 1272 bytes passes, nor do these.
        wait_for("packets are smaller again", || datagram_bytes() <= 1272);
        run.tally.wait(run.tally.bytes() + MB);
        assert!(datagram_bytes() <= 1272, "{} bytes are too many", datagram_bytes());
    }
}

#[test]
fn session__needs_no_ipv4() {
    let Some(_turn) = crate::net::world() else { return };
    let hosts = Hosts::new(2, 15, Duration::from_millis(5));
    for (port, space) in hosts.spaces.iter().enumerate() {
        space.remove_address(&device(port), address(port, 1, false), 32).expect("it is there");
        space.remove_address("lo", "127.0.0.1".parse().expect("an address"), 8).expect("it is there");
    }
    for initiator in BOTH {
        let run = hosts.transfer(initiator, true, 4 * MB, &dedicated(100.0));
        run.tally.wait(4 * MB);
        assert!(run.session.facts().peer.is_ipv6());
        run.ends.iter().for_each(fairwave_host::Endpoint::close);
    }
}
