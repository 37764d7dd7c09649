//! What is read off the simulation at the end of every sample.

use fairwave_scenario::Record;
use fairwave_units::Time;

use crate::background::BackgroundCounts;
use crate::gtp::KnownRates;
use crate::simulator::Simulator;

/// Running totals at the ends of the samples: entry `sample * flows + flow` or `sample * links + link`.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) ends: Vec<Time>,
    flows: usize,
    links: usize,
    /// Delivered once, in the flow's own counts.
    delivered: Vec<u64>,
    /// Arrived, twice or not.
    arrived: Vec<u64>,
    /// Bytes that were offered to a link.
    offered: Vec<u64>,
    pub(crate) queue_bytes: Vec<f64>,
    dropped: Vec<u64>,
    has_windows: bool,
    has_rates: bool,
    /// What the end nodes of flows know of their rates. Empty unless asked for.
    pub(crate) known: Vec<KnownRates>,
    /// Congestion windows, in packets; NaN for a flow without one. Empty unless asked for.
    pub(crate) cwnd_packets: Vec<f64>,
    pub(crate) ssthresh_packets: Vec<f64>,
    backgrounds: usize,
    /// Of background traffic: packets delivered once, and packets that arrived.
    background_delivered: Vec<u64>,
    background_arrived: Vec<u64>,
}

impl Log {
    /// An empty log that keeps windows and rates, too, where they are asked for.
    pub(crate) fn new(record: Record) -> Self {
        Self { has_windows: record.windows, has_rates: record.rates, ..Self::default() }
    }

    /// Reads the totals now, at the end of a sample.
    pub(crate) fn read(&mut self, simulator: &Simulator<'_>) {
        let now = simulator.now();
        self.flows = simulator.sessions().len();
        self.links = simulator.network().links.len();
        self.ends.push(now);
        for flow in simulator.sessions() {
            self.delivered.push(flow.delivered());
            self.arrived.push(flow.arrived());
        }
        if self.has_windows {
            for flow in simulator.sessions() {
                let (cwnd, ssthresh) = flow.source.window_packets().unwrap_or((f64::NAN, f64::NAN));
                self.cwnd_packets.push(cwnd);
                self.ssthresh_packets.push(ssthresh);
            }
        }
        if self.has_rates {
            self.known.extend((0..self.flows).map(|flow| simulator.known_rates(flow)));
        }
        for link in &simulator.network().links {
            self.offered.push(link.counts.offered_bytes);
            self.queue_bytes.push(link.backlog_bytes(now));
            self.dropped.push(link.counts.dropped_packets);
        }
        self.backgrounds = simulator.backgrounds.len();
        for background in &simulator.backgrounds {
            let BackgroundCounts { delivered, arrived, .. } = simulator.background_counts(background);
            self.background_delivered.push(delivered);
            self.background_arrived.push(arrived);
        }
    }

    /// Packets of background traffic that were delivered once, and that arrived, up to an instant.
    pub(crate) fn background_until(&self, index: usize, at: Time) -> [f64; 2] {
        [&self.background_delivered, &self.background_arrived]
            .map(|totals| self.until(totals, self.backgrounds, index, at))
    }

    /// What a flow delivered once up to an instant, between samples by interpolation.
    pub(crate) fn delivered_until(&self, flow: usize, at: Time) -> f64 {
        self.until(&self.delivered, self.flows, flow, at)
    }

    /// What of a flow arrived up to an instant.
    pub(crate) fn arrived_until(&self, flow: usize, at: Time) -> f64 {
        self.until(&self.arrived, self.flows, flow, at)
    }

    /// What a flow delivered once in a sample.
    pub(crate) fn delivered_in(&self, flow: usize, sample: usize) -> u64 {
        change(&self.delivered, self.flows, flow, sample)
    }

    /// What of a flow arrived in a sample.
    pub(crate) fn arrived_in(&self, flow: usize, sample: usize) -> u64 {
        change(&self.arrived, self.flows, flow, sample)
    }

    /// Bytes offered to a link in a sample.
    pub(crate) fn offered_in(&self, link: usize, sample: usize) -> u64 {
        change(&self.offered, self.links, link, sample)
    }

    /// Packets dropped at a link in a sample.
    pub(crate) fn dropped_in(&self, link: usize, sample: usize) -> u64 {
        change(&self.dropped, self.links, link, sample)
    }

    /// How long a sample took, in seconds.
    pub(crate) fn span_s(&self, sample: usize) -> f64 {
        let before = if sample == 0 { Time::ZERO } else { self.ends[sample - 1] };
        self.ends[sample].since(before).as_secs_f64()
    }

    fn until(&self, totals: &[u64], width: usize, column: usize, at: Time) -> f64 {
        let sample = self.ends.partition_point(|end| *end <= at);
        let before = if sample == 0 { 0 } else { totals[(sample - 1) * width + column] };
        if sample == self.ends.len() {
            return before as f64;
        }
        let begin = if sample == 0 { Time::ZERO } else { self.ends[sample - 1] };
        let share = at.since(begin).as_secs_f64() / self.span_s(sample);
        before as f64 + share * change(totals, width, column, sample) as f64
    }
}

fn change(totals: &[u64], width: usize, column: usize, sample: usize) -> u64 {
    let before = if sample == 0 { 0 } else { totals[(sample - 1) * width + column] };
    totals[sample * width + column] - before
}
