//! Totals of the simulation at the end of every sample.

use fairwave_scenario::Record;
use fairwave_scenario::report::{KnownRates, Totals};
use fairwave_units::Time;

use crate::background::table::BackgroundCounts;
use crate::simulator::Simulator;
use crate::transit::Transit;

/// Running totals at the ends of the samples: entry `sample * flows + flow` or `sample * links + link`.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) ends: Vec<Time>,
    links: usize,
    /// Delivered for the first time, in the flow's own counts.
    pub(crate) delivered: Vec<u64>,
    /// Arrived, including duplicates.
    pub(crate) arrived: Vec<u64>,
    /// Bytes that were offered to a link.
    offered: Vec<u64>,
    pub(crate) queue_bytes: Vec<f64>,
    dropped: Vec<u64>,
    marked: Vec<u64>,
    has_windows: bool,
    has_rates: bool,
    /// Rates known to the end nodes of flows. Empty unless requested.
    pub(crate) known: Vec<KnownRates>,
    /// Congestion windows, in packets; NaN for a flow without one. Empty unless requested.
    pub(crate) cwnd_packets: Vec<f64>,
    pub(crate) ssthresh_packets: Vec<f64>,
    /// Data packets sent and lost by each flow. Empty unless windows are requested.
    pub(crate) sent_packets: Vec<u64>,
    pub(crate) lost_packets: Vec<u64>,
    backgrounds: usize,
    /// For background traffic: packets delivered for the first time, and packets that arrived.
    background_delivered: Vec<u64>,
    background_arrived: Vec<u64>,
}

impl Log {
    /// An empty log that also records windows and rates, if requested.
    pub(crate) fn new(record: Record) -> Self {
        Self { has_windows: record.windows, has_rates: record.rates, ..Self::default() }
    }

    /// Records the current totals, at the end of a sample.
    pub(crate) fn read(&mut self, simulator: &Simulator<'_>) {
        let Transit { network, flows, agenda, .. } = &simulator.transit;
        let now = agenda.now();
        self.links = network.links.len();
        self.ends.push(now);
        for flow in flows.sessions() {
            self.delivered.push(flow.delivered());
            self.arrived.push(flow.arrived());
        }
        if self.has_windows {
            for flow in flows.sessions() {
                let (cwnd, ssthresh) = flow.source.window_packets().unwrap_or((f64::NAN, f64::NAN));
                self.cwnd_packets.push(cwnd);
                self.ssthresh_packets.push(ssthresh);
                self.sent_packets.push(flow.counts.sent);
                self.lost_packets.push(flow.counts.dropped);
            }
        }
        if self.has_rates {
            self.known.extend(flows.sessions().iter().map(|flow| simulator.gtp.known_rates(flow)));
        }
        for link in &network.links {
            self.offered.push(link.counts.offered_bytes);
            self.queue_bytes.push(link.backlog_bytes(now));
            self.dropped.push(link.counts.dropped_packets);
            self.marked.push(link.counts.marked_packets);
        }
        self.backgrounds = flows.tables().len();
        for table in flows.tables() {
            let BackgroundCounts { delivered, arrived, .. } = flows.totals(table);
            self.background_delivered.push(delivered);
            self.background_arrived.push(arrived);
        }
    }

    /// Packets of background traffic delivered for the first time, and arrived, up to an instant.
    pub(crate) fn background_until(&self, index: usize, at: Time) -> [f64; 2] {
        [&self.background_delivered, &self.background_arrived]
            .map(|totals| Totals::new(&self.ends, self.backgrounds, totals).until(index, at))
    }

    /// Bytes offered to links.
    pub(crate) fn offered(&self) -> Totals<'_> {
        Totals::new(&self.ends, self.links, &self.offered)
    }

    /// Packets dropped at links.
    pub(crate) fn dropped(&self) -> Totals<'_> {
        Totals::new(&self.ends, self.links, &self.dropped)
    }

    /// Packets marked at links.
    pub(crate) fn marked(&self) -> Totals<'_> {
        Totals::new(&self.ends, self.links, &self.marked)
    }
}
