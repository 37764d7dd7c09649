//! Converts the simulation's counts into the result of a run ([`fairwave_scenario::report`]).

use fairwave_scenario::report::{ClosedCounts, Counts, Recording, SessionCounts, Totals, run_of};
use fairwave_scenario::{
    BackgroundSummary, DelayHistogram, Engine, LinkSummary, LossEvent, QueueSamples, Run, Scenario, WindowSamples,
};
use fairwave_schemes::scheme::Model;
use fairwave_units::Time;

use crate::error::SimError;
use crate::flow::SimFlow;
use crate::log::Log;
use crate::transit::Transit;

/// The result of a finished run. `on_step` is called between steps that may take long.
pub(crate) fn report(
    scenario: &Scenario,
    transit: &Transit<'_>,
    mut log: Log,
    asked: &Recording,
    on_step: &mut dyn FnMut(Time),
) -> Result<Run, SimError> {
    let (from, to) = asked.window;
    let window = (from, transit.closed().map_or(to, |totals| totals.at));
    let (links, peak_overload) = links(scenario, transit, &log, window);
    let background = background(scenario, transit, &log, window);
    let queues = asked.record.queues.then(|| queue_samples(scenario, transit, &mut log));
    let windows = asked.record.windows.then(|| WindowSamples {
        ends: log.ends.clone(),
        sessions: scenario.sessions.len(),
        cwnd_packets: std::mem::take(&mut log.cwnd_packets),
        ssthresh_packets: std::mem::take(&mut log.ssthresh_packets),
        sent_packets: std::mem::take(&mut log.sent_packets),
        lost_packets: std::mem::take(&mut log.lost_packets),
    });
    let hops = transit.network.links.iter().map(|link| link.counts.hops).sum();
    let has_marks = transit.network.links.iter().any(|link| link.is_marking);
    let mut losses = Vec::new();
    for (at, flow) in (0_u32..).zip(transit.flows.sessions()) {
        losses.extend(flow.losses.iter().map(|(time, kind)| LossEvent { time: *time, session: at, kind: *kind }));
    }
    let counts = Counts {
        sessions: transit.flows.sessions().iter().map(|flow| counts(scenario, flow, has_marks)).collect(),
        closed: transit.closed().map(|totals| ClosedCounts { at: totals.at, sessions: totals.sessions.clone() }),
        ends: log.ends,
        delivered: log.delivered,
        arrived: log.arrived,
        known: log.known,
        links,
        peak_overload,
        queues,
        windows,
        losses,
        delays: transit.flows.sessions().iter().map(delays).collect(),
        background,
        engine: Engine { events: transit.agenda.events, packet_hops: hops, ..Engine::default() },
    };
    run_of(scenario, Model::Packet, counts, asked, on_step).map_err(|error| SimError::Unlimited(error.message))
}

fn delays(flow: &SimFlow) -> DelayHistogram {
    flow.delays.as_ref().map(|delays| delays.queueing.clone()).unwrap_or_default()
}

fn counts(scenario: &Scenario, flow: &SimFlow, has_marks: bool) -> SessionCounts {
    let [payload_bits, wire_bits] = flow.bits(scenario.packet.payload.as_bits_f64());
    let delivered_bytes = if flow.source.is_between_hosts() {
        flow.delivered()
    } else {
        flow.delivered().saturating_mul(scenario.packet.payload.get())
    };
    SessionCounts {
        payload_bits,
        wire_bits,
        delivered_bytes,
        sent: flow.counts.sent,
        lost: flow.counts.dropped,
        resent: flow.counts.resent,
        timeouts: flow.counts.timeouts,
        marked: has_marks.then_some(flow.counts.marked),
        completed: flow.completed,
    }
}

fn links(scenario: &Scenario, transit: &Transit<'_>, log: &Log, (from, to): (Time, Time)) -> (Vec<LinkSummary>, f64) {
    let network = &transit.network;
    let packet = scenario.full_packet().get() as f64;
    let span_ns = to.since(from).as_nanos().max(1) as f64;
    let offered = log.offered();
    let mut peak = 0.0_f64;
    let mut summaries = Vec::with_capacity(network.links.len());
    for (at, link) in network.links.iter().enumerate() {
        let capacity_in = |span| link.mean_capacity(span).unwrap_or(network.rates[at]).as_bps();
        let capacity_bps = capacity_in((from, to));
        let mut begin = Time::ZERO;
        for (sample, &end) in log.ends.iter().enumerate() {
            let capacity_bps = capacity_in((begin, end));
            begin = end;
            // An outage is a matter of the queue; no load fits it.
            if capacity_bps > 0.0 {
                peak = peak.max(offered.change(at, sample) as f64 * 8.0 / offered.span_s(sample) / capacity_bps);
            }
        }
        summaries.push(LinkSummary {
            name: network.names[at].as_str().into(),
            capacity_bps,
            utilisation: link.counts.carried_bytes * 8e9 / span_ns / capacity_bps,
            mean_queue_packets: link.counts.waiting_byte_ns / span_ns / packet,
            max_queue_packets: link.max_waiting_bytes() / packet,
            dropped_packets: link.counts.dropped_packets,
            marked_packets: link.is_marking.then_some(link.counts.marked_packets),
        });
    }
    (summaries, peak)
}

fn background(
    scenario: &Scenario,
    transit: &Transit<'_>,
    log: &Log,
    (from, to): (Time, Time),
) -> Vec<BackgroundSummary> {
    let span_s = to.since(from).as_secs_f64();
    let tables = scenario.background.iter().zip(transit.flows.tables()).enumerate();
    tables
        .map(|(at, (table, background))| {
            let closed = transit.closed().map(|totals| totals.backgrounds[at].map(|total| total as f64));
            let ends = [log.background_until(at, from), closed.unwrap_or_else(|| log.background_until(at, to))];
            let packets_per_s = |what: usize| if span_s > 0.0 { (ends[1][what] - ends[0][what]) / span_s } else { 0.0 };
            BackgroundSummary {
                name: table.name.clone(),
                rate_bps: packets_per_s(0) * scenario.packet.payload.as_bits_f64(),
                wire_rate_bps: packets_per_s(1) * f64::from(background.data_bytes()) * 8.0,
                lost_packets: transit.flows.totals(background).dropped,
            }
        })
        .collect()
}

fn queue_samples(scenario: &Scenario, transit: &Transit<'_>, log: &mut Log) -> QueueSamples {
    let links = transit.network.links.len();
    let packet = scenario.full_packet().get() as f64;
    let queue_bytes = std::mem::take(&mut log.queue_bytes);
    let each = || (0..log.ends.len()).flat_map(|sample| (0..links).map(move |link| (link, sample)));
    let changes = |counts: Totals<'_>| each().map(|(link, sample)| counts.change(link, sample)).collect();
    let has_marks = transit.network.links.iter().any(|link| link.is_marking);
    QueueSamples {
        ends: log.ends.clone(),
        links,
        queue_packets: queue_bytes.iter().map(|bytes| bytes / packet).collect(),
        queue_bytes,
        dropped_packets: changes(log.dropped()),
        marked_packets: if has_marks { changes(log.marked()) } else { Vec::new() },
    }
}
