//! What the amendments achieve on a known path, in which the draft does worse, and that a model takes any sample.

use fairwave_units::{Bytes, Duration, Rate, Time};
use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng;

use super::super::bbr::BbrState::{Drain, ProbeCruise, ProbeDown, ProbeRefill, ProbeUp, Startup};
use super::super::bbr::ShortTerm;
use super::super::bbr::world::{PACKET, World, config};
use super::super::delivery_rate::DeliveryRate;
use super::super::rate_sample::{LossPoint, RateSample};
use super::amendments::Amendments;
use super::switches::Switches;
use super::{Path, PathConfig};

fn path(amendments: Switches) -> Path {
    let packet = Bytes::new(PACKET);
    PathConfig { model: config(), amendments, ..PathConfig::new(packet) }.path(Time::ZERO)
}

fn world_with(amendments: Switches, buffer_bdp: f64) -> World<Amendments> {
    World::new(path(amendments), buffer_bdp)
}

fn world(buffer_bdp: f64) -> World<Amendments> {
    world_with(Switches::default(), buffer_bdp)
}

/// With no amendment it does what the draft does, to the last bit.
#[test]
fn switches__none_is_the_draft() {
    let mut draft = World::new(super::super::bbr::Bbr::new(Time::ZERO, config()), 0.5);
    let mut none = world_with(Switches::all(false), 0.5);
    for second in 1..20 {
        draft.lose_each = if second < 10 { u64::MAX } else { 200 };
        none.lose_each = draft.lose_each;
        draft.run_until(f64::from(second));
        none.run_until(f64::from(second));
        assert_eq!(
            (draft.states.clone(), draft.sent, draft.delivered),
            (none.states.clone(), none.sent, none.delivered)
        );
        assert_eq!(draft.model.pacing_rate(), none.model.pacing_rate());
    }
}

#[test]
fn cycle__follows_startup_and_drain() {
    let mut world = world(5.0);
    world.run_until(4.9);
    // The queue has drained when drain ends: down ends immediately.
    assert_eq!(world.states[..5], [Startup, Drain, ProbeCruise, ProbeRefill, ProbeUp], "{:?}", world.states);
    assert!(world.has_followed(&[ProbeUp, ProbeDown, ProbeCruise]), "{:?}", world.states);
    let mbps = world.model.model.bandwidth.max().as_mbps();
    assert!((7.8..8.3).contains(&mbps), "{mbps}");
    assert!(world.model.min_rtt().unwrap() < Duration::from_millis(42));
}

#[test]
fn startup__ends_with_losses_in_a_queue_and_their_bound_stays() {
    let mut world = world(0.3);
    world.run_until(3.0);
    assert!(
        world.model.model.full_pipe.was_reached && world.model.model.long_term.bytes().is_some(),
        "{:?}",
        world.states
    );
    let goodput = world.goodput(10.0);
    assert!(goodput > 930.0, "{goodput}");
    assert!(world.lost * 50 < world.sent, "{} of {} lost", world.lost, world.sent);
}

/// Ten of about sixty packets are reported as lost while the model drains, which already answers the losses of startup.
#[test]
fn late_losses__of_startup_set_no_bound() {
    let bounds_of_losses_sent_after = |delivered: u64| {
        let packet = Bytes::new(PACKET);
        let report_every = Duration::from_millis(2);
        let config = PathConfig { model: config(), report_every, ..PathConfig::new(packet) };
        let mut world = World::new(config.path(Time::ZERO), 1.0);
        world.run_to(Drain);
        let total_delivered = world.rate.delivered();
        let lost = RateSample {
            newly_lost: Bytes::new(10 * PACKET),
            lost_ranges: 10,
            lost_delivered: Bytes::new(total_delivered.get() + delivered),
            total_delivered,
            in_flight: world.rate.in_flight(),
            ..RateSample::default()
        };
        world.tell(&lost);
        assert_eq!(world.model.state(), Drain);
        world.run_for(0.2);
        world.model.model.short_term
    };
    assert_eq!(bounds_of_losses_sent_after(0), ShortTerm::default());
    assert_ne!(bounds_of_losses_sent_after(PACKET), ShortTerm::default());
}

#[test]
fn losses__of_the_path_itself_leave_it_full() {
    for (lose_each, least) in [(100, 930.0), (20, 880.0), (3, 550.0)] {
        let goodput_with = |losses| {
            let mut world = world_with(Switches { losses, ..Switches::default() }, 1.0);
            world.lose_each = lose_each;
            world.run_until(10.0);
            world.goodput(20.0)
        };
        let (with, without) = (goodput_with(true), goodput_with(false));
        assert!(with > least && without < with, "one of {lose_each} lost: {with}, {without} without");
    }
}

#[test]
fn rate__follows_the_path_down_and_up() {
    let mut world = world(1.0);
    world.run_until(10.0);
    world.packet_us = 5000; // a fifth
    world.run_until(18.0);
    let mbps = world.model.bandwidth().as_mbps();
    assert!((1.3..1.8).contains(&mbps), "{mbps}");
    world.packet_us = 1000;
    world.run_until(40.0);
    let mbps = world.model.bandwidth().as_mbps();
    assert!(mbps > 7.0, "{mbps}");
}

#[test]
fn slowdown__is_followed_within_a_second_despite_a_deep_queue() {
    let bandwidth_with = |slowdown| {
        let mut world = world_with(Switches { slowdown, ..Switches::default() }, 20.0);
        world.run_until(10.0);
        let lost = world.lost;
        world.packet_us = 5000; // a fifth
        world.run_until(11.0);
        assert_eq!(world.lost, lost);
        // The queue from a window of two BDPs would take it 0.36 s.
        (world.free_us.saturating_sub(world.now_us), world.model.bandwidth().as_mbps(), world.goodput(4.0))
    };
    let (queue_us, mbps, goodput) = bandwidth_with(true);
    assert!(queue_us < 40_000, "{queue_us} us");
    assert!((1.5..1.7).contains(&mbps), "{mbps}");
    assert!(goodput > 180.0, "{goodput}");
    assert!(bandwidth_with(false).0 > 100_000);
}

#[test]
fn reports__a_quarter_of_a_round_trip_apart_do_as_well() {
    let mut world = world(1.0);
    world.report_us = 10_000;
    world.run_until(5.0);
    let goodput = world.goodput(20.0);
    assert!(goodput > 930.0, "{goodput}");
}

#[test]
fn on_sample__losses_that_were_late_are_undone() {
    let mut world = world(1.0);
    world.run_until(3.0);
    let (window, bandwidth) = (world.model.window_bytes(), world.model.bandwidth());
    // A tenth of the packets in flight is reported as lost, and arrives 20 ms later.
    world.lose(5);
    world.run_until(3.02);
    world.find(5);
    assert!(world.model.bandwidth() >= bandwidth * 0.999, "{}", world.model.bandwidth());
    assert!(world.model.window_bytes().get() + 5 * PACKET >= window.get(), "{:?}", world.model.window_bytes());
}

#[test]
fn on_timeout__leaves_four_packets_until_something_arrives() {
    let mut world = world(1.0);
    world.run_until(3.0);
    let window = world.model.window_bytes();
    world.model.on_timeout(Bytes::ZERO);
    assert!(world.model.window_bytes() <= Bytes::new(4 * PACKET));
    world.run_until(3.3);
    assert!(world.model.window_bytes().get() * 2 > window.get(), "{:?}", world.model.window_bytes());
}

#[test]
fn marks__in_most_packets_of_a_probe_end_it() {
    let mut world = world(5.0);
    world.run_until(2.0);
    world.run_to(ProbeUp);
    let begin_us = world.now_us;
    while world.model.state() == ProbeUp {
        world.rate.on_marked(Bytes::new(PACKET));
        world.run_for(0.001);
    }
    assert!(world.now_us - begin_us < 130_000, "{} us", world.now_us - begin_us);
    assert!(world.model.model.long_term.bytes().is_some());
}

/// Twice the bytes that arrive between two reports are the window.
#[test]
fn reports__bdp_is_at_least_half_of_their_interval() {
    let bdp = |rtt_us, report_every| {
        let mut config = PathConfig { report_every, ..PathConfig::new(Bytes::new(1000)) };
        config.model.initial_rtt = Some(Duration::from_micros(rtt_us));
        config.path(Time::ZERO).model.bdp_of(2.0, Rate::gbps(1.0))
    };
    // 125 B per microsecond: 2 ms of it, or two round trips.
    let report_every = Duration::from_millis(2);
    assert_eq!([30, 1000, 40_000].map(|rtt_us| bdp(rtt_us, report_every)), [250_000, 250_000, 10_000_000]);
    assert_eq!(bdp(30, Duration::ZERO), 7500);
}

#[test]
fn seed__decides_when_it_probes() {
    let waits = |seed: u64| {
        let mut config = PathConfig::new(Bytes::new(PACKET));
        config.model.seed = seed;
        let mut path = config.path(Time::ZERO);
        (0..3)
            .map(|_| {
                path.model.start_probe_down(Time::ZERO, 0);
                path.model.cycle.wait
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(waits(1), waits(1));
    assert_ne!(waits(1), waits(2));
    assert!(waits(3).iter().all(|wait| (2.0..3.0).contains(&wait.as_secs_f64())));
}

/// For any samples a model keeps a rate and a window. It stopped if the path took a packet in centuries.
#[test]
fn on_sample__takes_any_sample() {
    let mut random = Pcg32::new(1, 0);
    for run in 0..2000 {
        let most = [1_u64, 2000, 1 << 20, 1 << 40, u64::MAX][run % 5];
        let number = |random: &mut Pcg32| {
            let wide = u64::from(random.next_u32()) << 32 | u64::from(random.next_u32());
            match random.next_u32() % 6 {
                0 => 0,
                1 => u64::MAX,
                2 => 1,
                3 => wide >> (random.next_u32() % 64),
                _ => wide % most.max(1),
            }
        };
        let mut config = PathConfig::new(Bytes::new(number(&mut random)));
        config.model.initial_window = Bytes::new(number(&mut random));
        config.model.has_selective_acks = !run.is_multiple_of(7);
        config.model.initial_rtt = (run.is_multiple_of(4)).then(|| Duration::from_nanos(number(&mut random)));
        config.model.guessed_rtt = (run % 4 == 1).then(|| Duration::from_nanos(number(&mut random)));
        config.model.seed = run as u64;
        config.report_every = Duration::from_nanos(number(&mut random));
        let bits = random.next_u32();
        let mut switch = 0;
        config.amendments = Switches::from_names(|_| {
            switch += 1;
            run.is_multiple_of(2) || bits >> switch & 1 == 1
        });
        let mut model = config.path(Time::from_nanos(number(&mut random)));
        let mut rate = DeliveryRate::default();
        let mut now = 0_u64;
        for _ in 0..200 {
            now = now.saturating_add(number(&mut random));
            let at = Time::from_nanos(if random.next_u32().is_multiple_of(8) { number(&mut random) } else { now });
            let bytes = Bytes::new(number(&mut random));
            let stamp = rate.on_sent(at, bytes);
            model.on_sent(at, bytes, &stamp);
            let mut sample = RateSample::default();
            if random.next_u32().is_multiple_of(2) {
                rate.on_arrived(Bytes::new(number(&mut random)), Time::from_nanos(number(&mut random)), stamp);
                rate.on_lost(Bytes::new(number(&mut random)), stamp);
                rate.on_late(Bytes::new(number(&mut random)));
                rate.on_marked(Bytes::new(number(&mut random)));
                let rtt = (!random.next_u32().is_multiple_of(3)).then(|| Duration::from_nanos(number(&mut random)));
                sample = rate.sample(at, rtt);
            } else {
                let mut of = || Bytes::new(number(&mut random));
                sample.newly_acked = of();
                sample.newly_lost = of();
                sample.newly_late = of();
                sample.newly_marked = of();
                sample.lost_delivered = of();
                sample.total_delivered = of();
                sample.prior_delivered = of();
                sample.delivered = of();
                sample.lost = of();
                sample.tx_in_flight = of();
                sample.in_flight = of();
                sample.made_up = of();
                sample.has_arrivals = !random.next_u32().is_multiple_of(4);
                sample.is_app_limited = random.next_u32().is_multiple_of(4);
                sample.lost_ranges = random.next_u32();
                sample.interval = Duration::from_nanos(number(&mut random));
                sample.sending = Duration::from_nanos(number(&mut random));
                sample.rtt = (!random.next_u32().is_multiple_of(3)).then(|| Duration::from_nanos(number(&mut random)));
                sample.delivery_rate =
                    (!random.next_u32().is_multiple_of(3)).then(|| Rate::nearest_bps(number(&mut random) as f64));
                if random.next_u32().is_multiple_of(2) {
                    sample.worst_loss = Some(LossPoint {
                        bytes: Bytes::new(number(&mut random)),
                        lost: Bytes::new(number(&mut random)),
                        tx_in_flight: Bytes::new(number(&mut random)),
                        is_app_limited: random.next_u32().is_multiple_of(2),
                    });
                }
            }
            model.on_sample(at, &sample);
            if random.next_u32().is_multiple_of(50) {
                model.on_timeout(Bytes::new(number(&mut random)));
            }
            let pacing = model.pacing_rate().as_bps();
            assert!(pacing.is_finite() && pacing > 0.0, "{run}: {pacing} {config:?} {sample:?}");
            assert!(model.window_bytes() > Bytes::ZERO);
        }
    }
}
