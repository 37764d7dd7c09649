//! Messages between the two threads of a daemon.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use fairwave_table::{DaemonSegment, TickReport};
use fairwave_units::Rate;

use crate::settings::Settings;
use crate::view::MachineView;

/// A connection of the control socket, and its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VisitorId(pub(crate) u64);

/// Messages from the control socket to the ticker.
pub(crate) enum TickerEvent {
    /// A process takes part.
    Joined { visitor: VisitorId, user: u32, pid: u32, command: Arc<str>, segment: DaemonSegment },
    /// It has another segment.
    More { visitor: VisitorId, segment: DaemonSegment },
    /// It is gone.
    Gone(VisitorId),
    /// Number of refused processes.
    Refused(u64),
    /// The settings are these from now on.
    Reload(Box<Settings>),
    /// It is over.
    Stop,
}

/// Initial contents of a new segment: its process knows at once the capacities, and how many share them.
#[derive(Debug, Default)]
pub(crate) struct InitialReports {
    /// By users that are here.
    of_users: BTreeMap<u32, TickReport>,
    /// Of all others.
    other: TickReport,
    /// Whether a process has come since.
    has_newcomer: AtomicBool,
}

impl InitialReports {
    pub(crate) fn new(of_users: BTreeMap<u32, TickReport>, other: TickReport) -> Self {
        Self { of_users, other, has_newcomer: AtomicBool::new(false) }
    }

    /// Initial tick report of a process of a user. The start rate of new sessions goes to one process: another that
    /// connects before the next tick gets none.
    pub(crate) fn of(&self, user: u32) -> TickReport {
        let tick_report = *self.of_users.get(&user).unwrap_or(&self.other);
        if self.has_newcomer.swap(true, Ordering::Relaxed) {
            TickReport { send_start: Rate::ZERO, receive_start: Rate::ZERO, ..tick_report }
        } else {
            tick_report
        }
    }
}

/// State that both threads share.
pub(crate) struct Shared {
    /// Of the last tick.
    pub(crate) tick_reports: ArcSwap<InitialReports>,
    /// The machine, of the tick after it was last asked for.
    pub(crate) view: ArcSwap<MachineView>,
    /// Whether a visitor waits for the state of the machine.
    pub(crate) is_wanted: AtomicBool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of__what_new_sessions_may_begin_with_is_left_to_one_process_a_tick() {
        let tick_report =
            TickReport { send_start: Rate::mbps(3.0), receive_start: Rate::mbps(4.0), ..TickReport::default() };
        let mine = TickReport { send_start: Rate::mbps(1.0), ..tick_report };
        let starts = |tick_report: TickReport| [tick_report.send_start, tick_report.receive_start].map(Rate::as_mbps);
        let first = InitialReports::new([(7, mine)].into(), tick_report);
        assert_eq!([7, 7, 8].map(|user| starts(first.of(user))), [[1.0, 4.0], [0.0, 0.0], [0.0, 0.0]]);
        assert_eq!(starts(InitialReports::new([(7, mine)].into(), tick_report).of(8)), [3.0, 4.0]);
    }
}
