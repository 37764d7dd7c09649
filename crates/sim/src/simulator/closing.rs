//! The window of the means, if it closes with the last session that ends.

use fairwave_units::Time;

use super::Simulator;
use crate::background::BackgroundCounts;

/// Sessions that have not ended yet, and the totals at the end of the last one.
pub(crate) struct Unfinished {
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

impl Simulator<'_> {
    /// Closes the window of the means when `sessions` sessions have ended.
    pub(crate) fn close_with_the_last_of(&mut self, sessions: usize) {
        self.closing = Some(Unfinished { open: sessions, latest: Time::ZERO, totals: None });
    }

    /// Records that a session has delivered all, or was stopped. Repeated calls have no effect.
    pub(crate) fn note_end(&mut self, flow: u32, at: Time) {
        let flow = flow as usize;
        let Some(closing) = &mut self.closing else { return };
        if flow >= self.sessions || std::mem::replace(&mut self.flows[flow].has_ended, true) {
            return;
        }
        closing.open = closing.open.saturating_sub(1);
        closing.latest = closing.latest.max(at);
        if closing.open > 0 {
            return;
        }
        let at = closing.latest;
        let sessions = self.sessions().iter().map(|flow| [flow.delivered(), flow.arrived()]).collect();
        let counts = |background| {
            let BackgroundCounts { delivered, arrived, .. } = self.background_counts(background);
            [delivered, arrived]
        };
        let totals = WindowTotals { at, sessions, backgrounds: self.backgrounds.iter().map(counts).collect() };
        for link in &mut self.network.links {
            link.close(at);
        }
        for delays in self.flows.iter_mut().filter_map(|flow| flow.delays.as_mut()) {
            delays.close(at);
        }
        self.closing.as_mut().expect("looked at above").totals = Some(totals);
    }

    /// The totals when the window closed, if it has.
    pub(crate) fn closed(&self) -> Option<&WindowTotals> {
        self.closing.as_ref()?.totals.as_ref()
    }
}
