//! Finds a capacity that is lower than the configured one.

use fairwave_schemes::node::PathTotals;
use fairwave_units::{Duration, Rate};

use super::EndNode;
use crate::session::SessionId;

impl EndNode {
    /// From now on the node finds out how much of its capacity there is, by what becomes of its sessions' packets.
    pub fn find_capacity(&mut self) {
        self.finder.get_or_insert_default();
    }

    /// Whether the node needs the fate of its sessions' packets.
    pub fn finds_capacity(&self) -> bool {
        self.finder.is_some()
    }

    /// Totals of a session's packets by the end of this interval; call it before the tick.
    pub fn see_path(&mut self, session: SessionId, totals: PathTotals) {
        if let Some(finder) = &mut self.finder {
            finder.see(session.0, totals);
        }
    }

    /// Capacity found so far, at most `told`.
    pub(super) fn found(&self, told: Rate) -> Rate {
        self.finder.as_ref().map_or(told, |finder| finder.capacity(told))
    }

    /// A control interval is over.
    pub(super) fn find(&mut self, elapsed: Duration) {
        let (told, rtt) = (self.whole(), self.table.largest_rtt().unwrap_or_default());
        if let Some(finder) = &mut self.finder {
            finder.end_interval(told, elapsed, rtt);
        }
    }
}
