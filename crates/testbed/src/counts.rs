//! Counts of the ends and the relay, as running totals at the ends of the scenario's samples.

use std::time::Duration as StdDuration;

use fairwave_scenario::report::{Counts, KnownRates, SessionCounts};
use fairwave_scenario::{LinkSummary, QueueSamples, Scenario};
use fairwave_units::Time;
use fairwave_wan::{Direction, Report};

use crate::attempt::RunReports;
use crate::end_message::{Arrived, BIN_NS, Sent};
use crate::plan::Plan;

/// Counts in slots of equal width, interpolated between the ends of a slot.
struct Slots<'a> {
    places: &'a [u64],
    width_ns: u64,
    /// Time from the start of the first slot to the start of the run.
    before_ns: u64,
}

impl Slots<'_> {
    /// The total up to a time of the run.
    fn until(&self, at: Time) -> f64 {
        let at_ns = at.as_nanos() + self.before_ns;
        let whole = (at_ns / self.width_ns) as usize;
        let begun = self
            .places
            .get(whole)
            .map_or(0.0, |slot| *slot as f64 * (at_ns % self.width_ns) as f64 / self.width_ns as f64);
        self.places.iter().take(whole).sum::<u64>() as f64 + begun
    }
}

/// The running totals of a run, with the means of its links taken over `window`.
pub(crate) fn counts(scenario: &Scenario, plan: &Plan, seen: &RunReports, window: (Time, Time)) -> Counts {
    let ends = sample_ends(scenario);
    let (nobody, nothing) = (Arrived::default(), Sent::default());
    let of_sink = |session: usize| seen.ends.iter().find_map(|end| end.arrived.get(&session)).unwrap_or(&nobody);
    let of_source = |session: usize| seen.ends.iter().find_map(|end| end.sent.get(&session)).unwrap_or(&nothing);
    let mut counts = Counts { ends: ends.clone(), ..Counts::default() };
    let sessions = scenario.sessions.len();
    for end in &ends {
        for session in 0..sessions {
            let sink = of_sink(session);
            let delivered = Slots { places: &sink.bins, width_ns: BIN_NS, before_ns: 0 }.until(*end);
            counts.delivered.push(delivered as u64);
            counts.arrived.push((delivered * sink.wire_share) as u64);
            counts.known.push(known(of_source(session), sink, *end));
        }
    }
    for session in 0..sessions {
        let (sink, source) = (of_sink(session), of_source(session));
        counts.sessions.push(SessionCounts {
            payload_bits: 8.0,
            wire_bits: 8.0,
            delivered_bytes: sink.bins.iter().sum(),
            sent: source.packets,
            lost: source.lost,
            resent: source.resent,
            timeouts: 0,
            marked: None,
            completed: sink.completed_ns.map(Time::from_nanos),
        });
    }
    links(scenario, plan, seen, window, &mut counts);
    counts
}

/// The ends of the scenario's samples; the last one may be shorter.
fn sample_ends(scenario: &Scenario) -> Vec<Time> {
    let (end, width) = (scenario.end().as_nanos(), scenario.sample.as_nanos().max(1));
    let whole = (1..).map(|sample: u64| sample.saturating_mul(width)).take_while(|at| *at < end);
    whole.chain([end]).map(Time::from_nanos).collect()
}

/// Last reports of both nodes of a session before an instant.
fn known(source: &Sent, sink: &Arrived, before: Time) -> KnownRates {
    let last = |rows: &[(u64, [f64; 3])]| {
        let so_far = rows.partition_point(|(at, _)| *at <= before.as_nanos());
        rows[..so_far].last().map(|(_, row)| *row)
    };
    // The largest number stands for an unlimited rate.
    let finite = |bps: f64| if bps < f64::MAX { bps } else { f64::NAN };
    let (from, to) = (last(&source.known), last(&sink.known));
    let target = [from.map(|row| row[2]), to.map(|row| row[2])].into_iter().flatten().fold(f64::NAN, f64::min);
    KnownRates {
        source_expected: from.map_or(f64::NAN, |row| finite(row[0])),
        sink_expected: from.map_or(f64::NAN, |row| finite(row[1])),
        target: finite(target),
        measured: to.map_or(f64::NAN, |row| finite(row[0])),
    }
}

/// The access links of the nodes: their load, and their queues.
fn links(scenario: &Scenario, plan: &Plan, seen: &RunReports, (from, to): (Time, Time), counts: &mut Counts) {
    let report = &seen.relay;
    let packet = scenario.full_packet().get() as f64;
    let width_ns = Report::SLOT.as_nanos() as u64;
    let before_ns = seen.begin.as_nanos() as u64;
    let span_s = to.since(from).as_secs_f64().max(1e-9);
    let mut columns: Vec<Vec<f64>> = Vec::new();
    for (port, place) in plan.places.iter().enumerate() {
        let name = &scenario.nodes[place.node].name;
        for (direction, word, way) in [(Direction::Up, "out", &place.up), (Direction::Down, "in", &place.down)] {
            let is_used = match direction {
                Direction::Up => !place.setup.gives.is_empty(),
                Direction::Down => !place.setup.takes.is_empty(),
            };
            let Some(capacity_bps) = way.rate_bps.filter(|_| is_used) else { continue };
            let flows = |other: usize| match direction {
                Direction::Up => &report.flows[port][other],
                Direction::Down => &report.flows[other][port],
            };
            let carried = |at: Time| -> f64 {
                let until = |other| Slots { places: &flows(other).slots, width_ns, before_ns }.until(at);
                (0..plan.places.len()).map(until).sum()
            };
            let waits = &report.waits[port][direction as usize];
            let queue_bytes = |at: Time| {
                let slot = ((at.as_nanos() + before_ns) / width_ns) as usize;
                waits.get(slot).copied().unwrap_or(StdDuration::ZERO).as_secs_f64() * capacity_bps / 8.0
            };
            let queues: Vec<f64> = counts.ends.iter().map(|end| queue_bytes(*end)).collect();
            let mut earlier = (Time::ZERO, 0.0, 0.0);
            for (end, queue) in counts.ends.iter().zip(&queues) {
                let now = (*end, carried(*end), *queue);
                let offered = now.1 - earlier.1 + (now.2 - earlier.2);
                let load = offered * 8.0 / now.0.since(earlier.0).as_secs_f64().max(1e-9) / capacity_bps;
                counts.peak_overload = counts.peak_overload.max(load);
                earlier = now;
            }
            let slot_of = |at: Time| (((at.as_nanos() + before_ns) / width_ns) as usize).min(waits.len());
            let within = &waits[slot_of(from)..slot_of(to)];
            let in_packets = |wait: &StdDuration| wait.as_secs_f64() * capacity_bps / 8.0 / packet;
            let mean = within.iter().map(in_packets).sum::<f64>() / within.len().max(1) as f64;
            counts.links.push(LinkSummary {
                name: format!("{name}:{word}").into(),
                capacity_bps,
                utilisation: (carried(to) - carried(from)) * 8.0 / span_s / capacity_bps,
                mean_queue_packets: mean,
                max_queue_packets: waits.iter().map(in_packets).fold(0.0, f64::max),
                dropped_packets: match direction {
                    // The relay counts drops at a full queue by source and destination.
                    Direction::Down => (0..plan.places.len()).map(|other| flows(other).queue_drops).sum(),
                    Direction::Up => 0,
                },
                marked_packets: None,
            });
            columns.push(queues);
        }
    }
    let rows = (0..counts.ends.len()).flat_map(|sample| columns.iter().map(move |queues| queues[sample]));
    let queue_bytes: Vec<f64> = rows.collect();
    counts.queues = Some(QueueSamples {
        ends: counts.ends.clone(),
        links: columns.len(),
        queue_packets: queue_bytes.iter().map(|bytes| bytes / packet).collect(),
        dropped_packets: vec![0; queue_bytes.len()],
        marked_packets: Vec::new(),
        queue_bytes,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots__are_read_at_any_time() {
        let slots = Slots { places: &[10, 20, 40], width_ns: 10, before_ns: 5 };
        // 5 ns before the run started half of the first slot had passed.
        for (at, expected) in [(0, 5.0), (5, 10.0), (10, 20.0), (15, 30.0), (25, 70.0), (1000, 70.0)] {
            assert_eq!(slots.until(Time::from_nanos(at)), expected, "{at}");
        }
    }

    #[test]
    fn known__is_the_last_report() {
        let source = Sent { known: vec![(5, [1.0, f64::MAX, 7.0]), (20, [2.0, 3.0, 8.0])], ..Sent::default() };
        let sink = Arrived { known: vec![(6, [4.0, 3.0, 6.0])], ..Arrived::default() };
        let at = |ns| known(&source, &sink, Time::from_nanos(ns));
        assert!(at(4).source_expected.is_nan() && at(4).target.is_nan());
        let early = at(10);
        assert!(early.sink_expected.is_nan(), "{early:?}");
        assert_eq!([early.source_expected, early.target, early.measured], [1.0, 6.0, 4.0]);
        let late = at(20);
        assert_eq!([late.source_expected, late.sink_expected, late.target], [2.0, 3.0, 6.0]);
    }
}
