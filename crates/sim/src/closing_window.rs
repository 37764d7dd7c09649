//! The window of the means, if it closes with the last session that ends.

use fairwave_units::Time;

use crate::background::table::BackgroundCounts;
use crate::flows::Flows;
use crate::route::Network;

/// Sessions that have not ended yet, and the totals at the end of the last one.
pub(crate) struct Closing {
    open: usize,
    latest: Time,
    pub(crate) totals: Option<WindowTotals>,
}

/// The totals when the window closed.
pub(crate) struct WindowTotals {
    pub(crate) at: Time,
    /// By session: delivered for the first time, and arrived, in the flow's own counts.
    pub(crate) sessions: Vec<[u64; 2]>,
    /// By table of background traffic: packets delivered for the first time, and packets that arrived.
    pub(crate) backgrounds: Vec<[u64; 2]>,
}

impl Closing {
    /// Closes the window when `sessions` sessions have ended.
    pub(crate) fn new(sessions: usize) -> Self {
        Self { open: sessions, latest: Time::ZERO, totals: None }
    }

    /// Records the end of a session: of the last one, everything closes.
    pub(crate) fn on_end(&mut self, at: Time, flows: &mut Flows, network: &mut Network) {
        self.open = self.open.saturating_sub(1);
        self.latest = self.latest.max(at);
        if self.open > 0 {
            return;
        }
        let at = self.latest;
        self.totals = Some(WindowTotals::of(flows, at));
        for link in &mut network.links {
            link.close(at);
        }
        for delays in flows.sessions_mut().iter_mut().filter_map(|flow| flow.delays.as_mut()) {
            delays.close(at);
        }
    }
}

impl WindowTotals {
    fn of(flows: &Flows, at: Time) -> Self {
        let sessions = flows.sessions().iter().map(|flow| [flow.delivered(), flow.arrived()]).collect();
        let backgrounds = flows.tables().iter().map(|table| {
            let BackgroundCounts { delivered, arrived, .. } = flows.totals(table);
            [delivered, arrived]
        });
        Self { at, sessions, backgrounds: backgrounds.collect() }
    }
}
