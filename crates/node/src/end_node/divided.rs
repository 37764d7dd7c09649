//! An end node whose capacity something else than its rule divides: claims of several processes.

use fairwave_schemes::{Grant, Others, Row};
use fairwave_units::{Rate, Time};

use super::{EndNode, TickOutcome};
use crate::session::SessionId;

/// A session of a node that is divided by something else than its rule.
#[derive(Clone, Copy, Debug)]
pub struct DividedRow {
    /// As the rule would see it.
    pub row: Row,
    /// The largest grant that what is seen now may go back to.
    pub recent: Rate,
}

/// The grant of a row.
#[derive(Clone, Copy, Debug)]
pub struct DividedGrant {
    pub grant: Grant,
    /// The most that may be used by what was granted.
    pub allowed: Rate,
}

impl EndNode {
    /// Like [`tick`](Self::tick), but `divide` returns what each session may use, in their order, of this capacity next
    /// to this other traffic.
    pub fn tick_divided(
        &mut self,
        now: Time,
        measured: impl FnMut(SessionId) -> Rate,
        divide: impl FnOnce(Rate, Option<Others>, &[DividedRow]) -> Vec<DividedGrant>,
    ) -> &[TickOutcome] {
        let (queue, interval) = (self.queue, self.interval);
        self.look(now, measured);
        let rows: Vec<DividedRow> = self
            .table
            .iter_mut()
            .zip(&self.rows)
            .map(|(entry, row)| {
                let recent = entry.recent(now, interval, queue);
                DividedRow { row: *row, recent }
            })
            .collect();
        let divided = divide(self.capacity(), self.other, &rows);
        self.outcomes.clear();
        for ((entry, row), DividedGrant { grant, allowed }) in self.table.iter_mut().zip(&self.rows).zip(divided) {
            entry.granted.grant(now, allowed);
            self.outcomes.push(TickOutcome {
                session: entry.flow.session,
                measured: row.measured,
                grant,
                allowed,
                remote: None,
                exceeds_grant: entry.exceeds_grant(interval),
            });
        }
        self.end_tick(now);
        &self.outcomes
    }
}
