//! From what the simulation counted to the result of a run.

use fairwave_scenario::{
    BackgroundSummary, Course, Engine, LinkSummary, LossEvent, MaxMinStep, Metrics, QueueSamples, RateSamples, Record,
    Run, Scenario, SchemeOptions, SessionSummary, Summary, Window, WindowSamples, allocate, by_scheme, is_far,
};
use fairwave_schemes::global::metrics;
use fairwave_units::{Bytes, Time};

use crate::engine::SimError;
use crate::flow::SimFlow;
use crate::gtp::KnownRates;
use crate::log::Log;
use crate::simulator::Simulator;

/// What the caller wants to have of a run.
pub(crate) struct Recording {
    /// Window of the summary's means; it ends earlier where all sessions have ended by themselves.
    pub(crate) window: (Time, Time),
    /// What to keep besides the summary.
    pub(crate) record: Record,
}

/// The result of a run that has ended. `beat` is called between steps that may take long.
pub(crate) fn report(
    scenario: &Scenario,
    simulator: &Simulator<'_>,
    log: &Log,
    asked: &Recording,
    beat: &mut dyn FnMut(Time),
) -> Result<Run, SimError> {
    let Recording { window: (from, to), record } = *asked;
    let window = (from, simulator.closed().map_or(to, |totals| totals.at));
    let optimum = optimum(scenario, simulator, beat)?;
    let sessions: Vec<_> =
        (0..scenario.sessions.len()).map(|at| session(scenario, simulator, log, &optimum, window, at)).collect();
    let (links, peak_overload) = links(scenario, simulator, log, window);

    let mut distances_bps = Vec::new();
    let mut norms_bps = Vec::new();
    let (mut last_far, mut is_asked) = (None, false);
    for sample in 0..log.ends.len() {
        let rates: Vec<_> =
            simulator.sessions().iter().enumerate().map(|(at, flow)| wire_bps(log, flow, at, sample)).collect();
        let best = in_force(&optimum, log.ends[sample]);
        distances_bps.push(metrics::distance(&rates, best));
        norms_bps.push(metrics::norm(best));
        is_asked |= best.iter().any(|best| *best > 0.0);
        if rates.iter().zip(best).any(|(rate, best)| is_far(*rate, *best)) {
            last_far = Some(sample);
        }
    }
    let converged = match last_far {
        None => is_asked.then_some(0.0),
        Some(sample) if sample + 1 < log.ends.len() => Some(log.ends[sample].as_secs_f64()),
        Some(_) => None,
    };
    let course = Course {
        distance_start_bps: distances_bps.first().copied().unwrap_or(0.0),
        distance_final_bps: distances_bps.last().copied().unwrap_or(0.0),
        converged_s: converged,
        peak_overload,
    };
    let metrics = Metrics::of(&sessions, course);
    if !record.distances {
        distances_bps.clear();
        norms_bps.clear();
    }
    let hops = simulator.network().links.iter().map(|link| link.counts.hops).sum();
    let mut losses: Vec<LossEvent> = Vec::new();
    for (at, flow) in (0_u32..).zip(simulator.sessions()) {
        losses.extend(flow.losses.iter().map(|(time, kind)| LossEvent { time: *time, session: at, kind: *kind }));
    }
    losses.sort_by_key(|loss| (loss.time, loss.session));
    Ok(Run {
        summary: Summary {
            version: env!("CARGO_PKG_VERSION"),
            scenario: scenario.name.clone(),
            scheme: scenario.scheme.scheme.name.to_owned(),
            options: SchemeOptions::of(&scenario.scheme),
            model: "packet",
            seed: scenario.seed,
            duration_s: scenario.duration.as_secs_f64(),
            variant: scenario.variant.clone(),
            window: Window::new(window.0, window.1),
            metrics,
            schemes: by_scheme(scenario, &sessions),
            sessions,
            links,
            background: background(scenario, simulator, log, window),
            engine: Engine { events: simulator.events, packet_hops: hops, ..Engine::default() },
        },
        rates: record.rates.then(|| rate_samples(scenario, simulator, log)),
        queues: record.queues.then(|| queue_samples(scenario, simulator, log)),
        windows: record.windows.then(|| window_samples(scenario, simulator, log)),
        distances_bps,
        max_min_norms_bps: norms_bps,
        max_min: if record.rates { optimum } else { Vec::new() },
        losses,
    })
}

fn session(
    scenario: &Scenario,
    simulator: &Simulator<'_>,
    log: &Log,
    optimum: &[MaxMinStep],
    window: (Time, Time),
    at: usize,
) -> SessionSummary {
    let (session, flow) = (&scenario.sessions[at], &simulator.sessions()[at]);
    let [payload_bits, wire_bits] = flow.bits(scenario.packet.payload.as_bits_f64());
    let end = active_end(scenario, flow, at);
    let active = end.since(session.start).as_nanos();
    let tail = |share: u64| (Time::from_nanos(end.as_nanos() - active / share), end);
    let mean = |(from, to): (Time, Time), until: &dyn Fn(Time) -> f64, bits: f64| {
        let span_s = to.since(from).as_secs_f64();
        if span_s > 0.0 { (until(to) - until(from)) * bits / span_s } else { 0.0 }
    };
    // When the window closed early, totals were taken; between samples they are interpolated.
    let closed = simulator.closed().map(|totals| (totals.at, totals.sessions[at].map(|total| total as f64)));
    let counted =
        |time, which: usize, log: f64| closed.filter(|closed| closed.0 == time).map_or(log, |closed| closed.1[which]);
    let delivered = |time| counted(time, 0, log.delivered_until(at, time));
    let arrived = |time| counted(time, 1, log.arrived_until(at, time));
    // The sessions active just before the end.
    let best = in_force(optimum, Time::from_nanos(end.as_nanos().saturating_sub(1)));
    let bytes = if flow.source.is_between_hosts() {
        flow.delivered()
    } else {
        flow.delivered().saturating_mul(scenario.packet.payload.get())
    };
    SessionSummary {
        name: session.name.clone(),
        from: scenario.nodes[session.from as usize].name.clone(),
        to: scenario.nodes[session.to as usize].name.clone(),
        scheme: scenario.scheme_of(session).scheme.name,
        rtt_s: session.rtt.as_secs_f64(),
        rate_bps: mean(window, &delivered, payload_bits),
        wire_rate_bps: mean(window, &arrived, wire_bits),
        final_rate_bps: mean(tail(10), &delivered, payload_bits),
        final_wire_rate_bps: mean(tail(10), &arrived, wire_bits),
        max_min_bps: best[at],
        delivered_bytes: bytes.min(session.size.map_or(u64::MAX, Bytes::get)),
        sent_packets: flow.counts.sent,
        lost_packets: flow.counts.dropped,
        retransmitted_packets: flow.counts.resent,
        timeouts: flow.counts.timeouts,
        completed_s: session.size.and(flow.completed).map(Time::as_secs_f64),
    }
}

/// When a session's active time ends: delivered, stopped, or the end of the run.
fn active_end(scenario: &Scenario, flow: &SimFlow, at: usize) -> Time {
    let session = &scenario.sessions[at];
    let stop = session.stop.unwrap_or(Time::MAX).min(scenario.end());
    let done = session.size.and(flow.completed).unwrap_or(Time::MAX);
    stop.min(done).max(session.start.min(scenario.end()))
}

/// The max-min vector from each instant on at which sessions come, go or change their demand.
fn optimum(
    scenario: &Scenario,
    simulator: &Simulator<'_>,
    beat: &mut dyn FnMut(Time),
) -> Result<Vec<MaxMinStep>, SimError> {
    let mut known = scenario.clone();
    for (at, flow) in simulator.sessions().iter().enumerate() {
        known.sessions[at].stop = Some(active_end(scenario, flow, at));
    }
    let mut changes = vec![Time::ZERO];
    for session in &known.sessions {
        changes.push(session.start);
        changes.extend(session.stop);
        if let fairwave_scenario::Demand::Schedule(steps) = &session.demand {
            changes.extend(steps.iter().map(|(from, _)| *from));
        }
    }
    changes.retain(|change| *change < scenario.end());
    changes.sort_unstable();
    changes.dedup();
    changes
        .into_iter()
        .map(|from| {
            beat(scenario.end());
            let allocation = allocate(&known, Some(from)).map_err(|error| SimError::Unlimited(error.message))?;
            Ok(MaxMinStep { from, rates_bps: allocation.rates.iter().map(|rate| rate.as_bps()).collect() })
        })
        .collect()
}

/// The max-min vector that holds just before an instant.
fn in_force(optimum: &[MaxMinStep], before: Time) -> &[f64] {
    let step = optimum.partition_point(|step| step.from < before).max(1) - 1;
    &optimum[step].rates_bps
}

fn wire_bps(log: &Log, flow: &SimFlow, at: usize, sample: usize) -> f64 {
    let [_, wire_bits] = flow.bits(0.0);
    log.arrived_in(at, sample) as f64 * wire_bits / log.span_s(sample)
}

fn links(
    scenario: &Scenario,
    simulator: &Simulator<'_>,
    log: &Log,
    (from, to): (Time, Time),
) -> (Vec<LinkSummary>, f64) {
    let network = simulator.network();
    let packet = scenario.full_packet().get() as f64;
    let span_ns = to.since(from).as_nanos().max(1) as f64;
    let mut peak = 0.0_f64;
    let mut summaries = Vec::with_capacity(network.links.len());
    for (at, link) in network.links.iter().enumerate() {
        let capacity_bps = network.rates[at].as_bps();
        for sample in 0..log.ends.len() {
            peak = peak.max(log.offered_in(at, sample) as f64 * 8.0 / log.span_s(sample) / capacity_bps);
        }
        summaries.push(LinkSummary {
            name: network.names[at].as_str().into(),
            capacity_bps,
            utilisation: link.counts.carried_bytes * 8e9 / span_ns / capacity_bps,
            mean_queue_packets: link.counts.waiting_byte_ns / span_ns / packet,
            max_queue_packets: link.max_waiting_bytes() / packet,
            dropped_packets: link.counts.dropped_packets,
        });
    }
    (summaries, peak)
}

fn background(
    scenario: &Scenario,
    simulator: &Simulator<'_>,
    log: &Log,
    (from, to): (Time, Time),
) -> Vec<BackgroundSummary> {
    let span_s = to.since(from).as_secs_f64();
    let tables = scenario.background.iter().zip(&simulator.backgrounds).enumerate();
    tables
        .map(|(at, (table, background))| {
            let closed = simulator.closed().map(|totals| totals.backgrounds[at].map(|total| total as f64));
            let ends = [log.background_until(at, from), closed.unwrap_or_else(|| log.background_until(at, to))];
            let packets_per_s = |what: usize| if span_s > 0.0 { (ends[1][what] - ends[0][what]) / span_s } else { 0.0 };
            BackgroundSummary {
                name: table.name.clone(),
                rate_bps: packets_per_s(0) * scenario.packet.payload.as_bits_f64(),
                wire_rate_bps: packets_per_s(1) * f64::from(background.data_bytes()) * 8.0,
                lost_packets: simulator.background_counts(background).dropped,
            }
        })
        .collect()
}

fn rate_samples(scenario: &Scenario, simulator: &Simulator<'_>, log: &Log) -> RateSamples {
    let sessions = scenario.sessions.len();
    let known = |bps: fn(&KnownRates) -> f64| log.known.iter().map(bps).collect();
    let mut samples = RateSamples {
        ends: log.ends.clone(),
        sessions,
        source_expected_bps: known(|rates| rates.source_expected),
        sink_expected_bps: known(|rates| rates.sink_expected),
        target_bps: known(|rates| rates.target),
        measured_bps: known(|rates| rates.measured),
        ..RateSamples::default()
    };
    let payload_bits = scenario.packet.payload.as_bits_f64();
    for sample in 0..log.ends.len() {
        for (at, flow) in simulator.sessions().iter().enumerate() {
            let [unit_bits, _] = flow.bits(payload_bits);
            samples.rate_bps.push(log.delivered_in(at, sample) as f64 * unit_bits / log.span_s(sample));
            samples.wire_rate_bps.push(wire_bps(log, flow, at, sample));
        }
    }
    samples
}

fn queue_samples(scenario: &Scenario, simulator: &Simulator<'_>, log: &Log) -> QueueSamples {
    let links = simulator.network().links.len();
    let packet = scenario.full_packet().get() as f64;
    let dropped = (0..log.ends.len()).flat_map(|sample| (0..links).map(move |link| (link, sample)));
    QueueSamples {
        ends: log.ends.clone(),
        links,
        queue_bytes: log.queue_bytes.clone(),
        queue_packets: log.queue_bytes.iter().map(|bytes| bytes / packet).collect(),
        dropped_packets: dropped.map(|(link, sample)| log.dropped_in(link, sample)).collect(),
    }
}

fn window_samples(scenario: &Scenario, simulator: &Simulator<'_>, log: &Log) -> WindowSamples {
    let sessions = scenario.sessions.len();
    let mut samples = WindowSamples {
        ends: log.ends.clone(),
        sessions,
        cwnd_packets: log.cwnd_packets.clone(),
        ssthresh_packets: log.ssthresh_packets.clone(),
    };
    for (at, (session, flow)) in scenario.sessions.iter().zip(simulator.sessions()).enumerate() {
        let active = session.start..=active_end(scenario, flow, at);
        for (sample, end) in log.ends.iter().enumerate() {
            let entry = sample * sessions + at;
            if !active.contains(end) {
                samples.cwnd_packets[entry] = f64::NAN;
            }
            if !active.contains(end) || samples.ssthresh_packets[entry].is_infinite() {
                samples.ssthresh_packets[entry] = f64::NAN;
            }
        }
    }
    samples
}
