//! The example test cases of the draft's appendix, in its order.

use fairwave_units::{Bytes, Duration, Rate, Time};

use super::super::rate_sample::RateSample;
use super::amend::Draft;
use super::bbr_state::BbrState::{Drain, ProbeCruise, ProbeDown, ProbeRefill, ProbeRtt, ProbeUp, Startup};
use super::config::BETA;
use super::steps::Bbr;
use super::world::{PACKET, RTT, World, config};

fn world(buffer_bdp: f64) -> World<Draft> {
    World::new(Bbr::new(Time::ZERO, config()), buffer_bdp)
}

/// A model that has just entered this state on a full path with a buffer of five BDPs.
fn world_in(state: super::BbrState) -> World<Draft> {
    let mut world = world(5.0);
    world.run_to(state);
    world
}

/// The last sample of round trip number `round` with these bytes in flight: nothing is lost.
fn round(round: u64, in_flight: u64, mbps: f64) -> RateSample {
    let start = Bytes::new((1 << 40) + round * (1 << 20));
    RateSample {
        has_arrivals: true,
        newly_acked: Bytes::new(PACKET),
        prior_delivered: start,
        total_delivered: Bytes::new(start.get() + (1 << 20)),
        delivered: Bytes::new(1 << 20),
        delivery_rate: Some(Rate::mbps(mbps)),
        interval: RTT,
        in_flight: Bytes::new(in_flight),
        tx_in_flight: Bytes::new(in_flight),
        rtt: Some(RTT),
        ..RateSample::default()
    }
}

fn close(rate: Rate, mbps: f64) -> bool {
    (rate.as_mbps() / mbps - 1.0).abs() < 0.02
}

#[test]
fn startup__ends_on_a_bandwidth_plateau() {
    let mut world = world(5.0);
    world.run_to(Drain);
    assert!(close(world.model.model.bandwidth.max(), 8.0), "{}", world.model.model.bandwidth.max());
    assert!(world.model.model.full_pipe.is_now && world.model.model.full_pipe.was_reached);
    assert_eq!(world.states, [Startup, Drain]);
}

#[test]
fn startup__ends_on_loss_when_app_limited() {
    let mut world = world(5.0);
    world.application_us = Some(2000);
    world.run_until(1.0);
    assert_eq!(world.model.state(), Startup);
    // One packet of 3 in 40 ms: six ranges and a third in a round trip.
    world.lose_each = 3;
    world.run_until(1.2);
    assert!(world.model.model.full_pipe.was_reached && world.model.model.full_pipe.is_now);
    // With so little in flight drain is over in the same sample.
    assert_eq!(world.states[..2], [Startup, ProbeDown]);
}

#[test]
fn drain__ends_on_in_flight() {
    let mut world = world_in(Drain);
    assert_eq!(world.model.model.state.pacing_gain(), 0.5);
    while world.model.state() == Drain {
        let model = &world.model.model;
        assert!(world.rate.in_flight().get() > model.in_flight_of(1.0, model.bandwidth()));
        world.run_for(0.0001);
    }
    assert!(matches!(world.model.state(), ProbeDown | ProbeCruise), "{:?}", world.states);
}

/// The pseudocode waits for more than three round trips after the start; the case says "after 3".
#[test]
fn drain__ends_after_three_round_trips() {
    let mut world = world_in(Drain);
    let in_flight = 100 * PACKET;
    let ends = (1..=5).map(|number| {
        world.tell(&round(number, in_flight, 7.2));
        world.model.state()
    });
    assert_eq!(ends.collect::<Vec<_>>(), [Drain, Drain, Drain, ProbeDown, ProbeDown]);
}

#[test]
fn probe_up__ends_on_a_bandwidth_plateau() {
    let mut world = world_in(ProbeUp);
    let start = world.model.model.rounds.count;
    while world.model.state() == ProbeUp {
        assert!(!world.model.model.full_pipe.is_now);
        world.run_for(0.0001);
    }
    assert_eq!((world.model.state(), world.lost), (ProbeDown, 0));
    assert_eq!(world.model.model.rounds.count - start, 3);
}

/// The case wants the bound updated "regardless of the application-limited state"; the pseudocode does not update it.
#[test]
fn probe_up__ends_on_loss_when_app_limited() {
    let mut world = world_in(ProbeUp);
    world.rate.mark_app_limited();
    world.lose(5);
    assert_eq!(world.model.state(), ProbeDown);
    assert!(world.model.model.cycle.was_too_high && world.model.model.long_term.bytes().is_none());
}

#[test]
fn startup_and_probe_up__stay_while_app_limited_without_loss() {
    let mut world = world(5.0);
    world.application_us = Some(10_000);
    world.run_until(4.5);
    assert_eq!((world.model.state(), world.model.model.full_pipe.was_reached), (Startup, false));

    let mut world = world_in(ProbeUp);
    world.application_us = Some(10_000);
    world.rate.mark_app_limited();
    let end_us = world.now_us + 2_000_000;
    while world.now_us < end_us {
        world.run_for(0.01);
        assert_eq!(world.model.state(), ProbeUp, "at {} us", world.now_us);
    }
}

#[test]
fn probe_down__ends_on_in_flight() {
    let mut world = world(0.5);
    world.run_to(ProbeUp);
    world.run_to(ProbeDown);
    assert_eq!(world.model.model.state.pacing_gain(), 0.9);
    assert!(world.model.model.long_term.bytes().is_some());
    while world.model.state() == ProbeDown {
        world.run_for(0.0001);
    }
    let model = &world.model.model;
    let in_flight = world.rate.in_flight().get().saturating_sub(2 * PACKET);
    assert_eq!(model.state, ProbeCruise);
    assert!(in_flight <= model.long_term_with_headroom().unwrap());
    assert!(in_flight <= model.in_flight_of(1.0, model.bandwidth.max()));
}

#[test]
fn probe_down__ends_after_its_wait_in_refill() {
    let mut world = world_in(ProbeUp);
    world.run_to(ProbeDown);
    world.states = vec![ProbeDown];
    let wait = world.model.model.cycle.wait;
    let start_us = world.now_us;
    // Others keep more than the headroom in flight; one sample each 100 ms, and hardly any round trips.
    while world.model.state() == ProbeDown {
        assert!(world.now_us - start_us <= wait.as_nanos() / 1000 + 100_000);
        world.now_us += 100_000;
        // Always a lower round-trip time, so that no probe for one is due.
        let rtt = Some(RTT - Duration::from_nanos(world.now_us / 100));
        let sample = RateSample { prior_delivered: Bytes::ZERO, rtt, ..round(1, 100 * PACKET, 7.2) };
        world.tell(&sample);
    }
    assert_eq!(world.states, [ProbeDown, ProbeRefill]);
    assert!(Duration::from_micros(world.now_us - start_us) > wait && wait >= Duration::from_secs(2));
}

#[test]
fn probe_rtt__after_five_seconds_and_back() {
    let mut world = world_in(ProbeDown);
    world.run_to(ProbeRtt);
    let entered_us = world.now_us;
    assert!((5_000_000..5_400_000).contains(&entered_us), "{entered_us}");
    assert_eq!(world.model.model.state.window_gain(), 0.5);
    world.run_to(ProbeCruise);
    let lasted_us = world.now_us - entered_us;
    // 200 ms and what it takes to have half a BDP in flight.
    assert!((200_000..300_000).contains(&lasted_us), "{lasted_us}");
    let goodput = world.goodput(15.0);
    assert!(goodput > 950.0, "{goodput}");
}

#[test]
fn probe_rtt__is_skipped_after_a_pause() {
    let mut world = world(5.0);
    world.run_until(4.0);
    let before = world.model.bandwidth();
    world.pause_until(11.0);
    world.states.clear();
    world.run_for(0.0002);
    assert!(world.model.model.is_idle_restart);
    world.run_until(11.2);
    assert!(!world.states.contains(&ProbeRtt), "{:?}", world.states);
    assert!(world.model.bandwidth() >= before * 0.99, "{}", world.model.bandwidth());
}

#[test]
fn startup__finds_the_bandwidth_of_a_link_with_aggregation() {
    let mut world = world(5.0);
    (world.report_us, world.waits_count) = (20_000, true);
    world.run_to(Drain);
    assert!(close(world.model.model.bandwidth.max(), 8.0), "{}", world.model.model.bandwidth.max());
    let model = &world.model.model;
    assert!(model.extra_acked >= 10 * PACKET, "{}", model.extra_acked);
    assert!(model.max_in_flight() > 2 * model.bdp(1.0));
}

#[test]
fn cruise__fills_a_link_with_aggregation() {
    let mut world = world_in(ProbeCruise);
    (world.report_us, world.waits_count) = (20_000, true);
    world.run_for(0.5);
    let model = &world.model.model;
    // 20 packets each 20 ms, of which the bandwidth explains those of the time before.
    assert!((15 * PACKET..=25 * PACKET).contains(&model.extra_acked), "{}", model.extra_acked);
    assert_eq!(model.max_in_flight(), model.bdp(2.0) + model.extra_acked);
    let goodput = world.goodput(4.0);
    assert!(goodput > 950.0, "{goodput}");
}

#[test]
fn sub_packet_bdp__keeps_four_packets_in_the_window() {
    let mut world = world(50.0);
    // A packet in 80 ms on a path of 40: half a packet.
    world.packet_us = 80_000;
    world.run_to(ProbeCruise);
    world.run_for(4.0);
    assert!(world.model.window_bytes() >= Bytes::new(4 * PACKET));
    assert!(close(world.model.model.bandwidth.max(), 0.1), "{}", world.model.model.bandwidth.max());
    let goodput = world.goodput(20.0);
    assert!(goodput > 11.9, "{goodput}"); // 12.5 packets a second
}

#[test]
fn bandwidth__of_ten_times_is_found_in_doubling_steps() {
    let mut world = world(0.5);
    world.packet_us = 10_000;
    world.buffer_us = 200_000;
    world.run_to(ProbeUp);
    world.run_to(ProbeCruise);
    world.packet_us = 1000;
    world.buffer_us = 20_000;
    let start = world.model.model.rounds.count;
    let mut bounds = Vec::new();
    while !close(world.model.model.bandwidth.max(), 8.0) {
        assert!(world.now_us < 60_000_000, "{} {:?}", world.model.model.bandwidth.max(), world.states);
        world.run_for(0.04);
        bounds.extend(world.model.model.long_term.bytes());
    }
    // A probe starts after at most 63 round trips or 3 s; then 1, 2, 4 ... packets a round trip.
    let rounds = world.model.model.rounds.count - start;
    assert!(rounds < 250, "{rounds}");
}

#[test]
fn bandwidth__of_a_tenth_is_adapted_to_within_two_cycles() {
    let mut world = world(1.0);
    world.run_to(ProbeCruise);
    world.packet_us = 10_000;
    world.run_for(1.0);
    let bound = world.model.model.short_term.rate.expect("packets were lost");
    assert!(bound < Rate::mbps(4.0), "{bound}");
    world.run_for(14.0);
    assert!(close(world.model.model.bandwidth.max(), 0.8), "{}", world.model.model.bandwidth.max());
}

#[test]
fn policer__is_conformed_to_without_continuous_loss() {
    let mut world = world(5.0);
    // A link of 80 Mb/s, a bucket of 100 packets, and 8 Mb/s.
    world.packet_us = 100;
    (world.tokens, world.depth, world.tokens_per_ms) = (100.0, 100.0, 1.0);
    let mut has_short_term = false;
    for _ in 0..100 {
        world.run_for(0.1);
        has_short_term |=
            world.model.model.short_term.rate.is_some() && world.model.model.short_term.in_flight.is_some();
    }
    assert!(has_short_term);
    let (lost, sent) = (world.lost, world.sent);
    let goodput = world.goodput(20.0);
    let loss = (world.lost - lost) as f64 / (world.sent - sent) as f64;
    assert!(goodput > 850.0 && loss < 0.1, "{goodput} packets/s, {loss} lost");
}

#[test]
fn spurious_fast_recovery__restores_bounds_and_probe() {
    let mut world = world(0.5);
    world.run_to(ProbeUp);
    world.run_to(ProbeRefill);
    world.run_to(ProbeUp);
    let before = world.model.model.long_term.bytes();
    let (short_term, window) = (world.model.model.short_term, world.model.window_bytes());
    world.lose(10);
    let undo = world.model.model.undo;
    assert_eq!((undo.short_term, undo.long_term, undo.state), (short_term, before, Some(ProbeUp)));
    assert_eq!(world.model.state(), ProbeDown);
    world.find(10);
    assert_eq!(world.model.state(), ProbeRefill);
    assert_eq!(world.model.model.short_term, short_term);
    assert!(world.model.model.long_term.bytes() >= before && world.model.window_bytes() >= window);
    world.run_to(ProbeUp);
}

#[test]
fn spurious_timeout__restores_the_window_and_bounds() {
    let mut world = world(0.5);
    world.run_to(ProbeUp);
    world.run_to(ProbeCruise);
    let (bound, short_term) = (world.model.model.long_term.bytes(), world.model.model.short_term);
    let window = world.model.window_bytes();
    let in_flight = world.rate.in_flight().get() / PACKET;
    world.model.on_timeout(Bytes::ZERO);
    assert!(world.model.window_bytes() <= Bytes::new(4 * PACKET));
    let undo = world.model.model.undo;
    assert_eq!((undo.short_term, undo.long_term), (short_term, bound));
    // All packets in flight count as lost, and arrive after all.
    world.lose(in_flight);
    world.find(in_flight);
    assert_eq!((world.model.model.short_term, world.model.model.long_term.bytes()), (short_term, bound));
    assert!(world.model.window_bytes().get() * 10 >= window.get() * 9, "{:?}", world.model.window_bytes());
}

#[test]
fn probe_rtt__during_startup_returns_to_startup() {
    let mut world = world(5.0);
    world.application_us = Some(10_000);
    world.run_until(6.0);
    assert!(!world.model.model.full_pipe.was_reached);
    assert!(world.has_followed(&[Startup, ProbeRtt, Startup]), "{:?}", world.states);
    world.application_us = None;
    world.run_to(Drain);
    assert!(close(world.model.model.bandwidth.max(), 8.0), "{}", world.model.model.bandwidth.max());
}

#[test]
fn probe_up__loss_scales_the_bound_and_ends_it() {
    let mut world = world(0.5);
    world.run_to(ProbeUp);
    world.run_to(ProbeRefill);
    world.run_to(ProbeUp);
    let target = world.model.model.target_in_flight();
    assert!(world.model.model.long_term.bytes().is_some());
    // Sent with only a packet in flight: the bound falls to seven tenths of the target.
    let sample = RateSample {
        newly_lost: Bytes::new(PACKET),
        lost_ranges: 1,
        worst_loss: Some(super::super::rate_sample::LossPoint {
            bytes: Bytes::new(PACKET),
            lost: Bytes::new(PACKET),
            tx_in_flight: Bytes::new(PACKET),
            is_app_limited: false,
        }),
        total_delivered: world.rate.delivered(),
        in_flight: world.rate.in_flight(),
        ..RateSample::default()
    };
    world.tell(&sample);
    assert_eq!(world.model.state(), ProbeDown);
    assert_eq!(world.model.model.long_term.bytes(), Some((target as f64 * BETA) as u64));
}

#[test]
fn probe_refill__app_limited_samples_change_no_bandwidth() {
    let mut world = world_in(ProbeRefill);
    let before = world.model.model.bandwidth.max();
    world.application_us = Some(10_000);
    world.rate.mark_app_limited();
    world.run_to(ProbeUp);
    assert_eq!(world.model.model.bandwidth.max(), before);
    world.application_us = None;
    world.run_to(ProbeDown);
    world.run_to(ProbeCruise);
    assert!(close(world.model.model.bandwidth.max(), 8.0), "{}", world.model.model.bandwidth.max());
}
