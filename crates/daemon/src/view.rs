//! The machine of one tick, as numbers: what the ticker copies and others make words of.

use std::sync::Arc;

use fairwave_node::{CardId, Direction, MachineNode, RowState, ShareBy};
use fairwave_schemes::{Others, Terms};
use fairwave_table::ProcessRow;
use fairwave_units::{Duration, Rate, Time};

use fairwave_host::machine::DaemonCounts;

/// The machine of one tick.
#[derive(Clone, Debug, Default)]
pub(crate) struct MachineView {
    pub(crate) daemon: u64,
    pub(crate) tick: u64,
    pub(crate) at: Time,
    pub(crate) started: Time,
    pub(crate) interval: Duration,
    pub(crate) cost: Duration,
    pub(crate) is_grace: bool,
    pub(crate) share_by: ShareBy,
    pub(crate) nodes: Vec<MachineNode>,
    /// Other traffic of the nodes in which it has a part.
    pub(crate) others: Vec<((CardId, Direction), Others)>,
    /// Names of cards; `None` if one capacity is for everything.
    pub(crate) cards: Vec<(CardId, Option<String>)>,
    pub(crate) members: Vec<MemberView>,
    pub(crate) counts: DaemonCounts,
}

/// A process.
#[derive(Clone, Debug)]
pub(crate) struct MemberView {
    pub(crate) user: u32,
    pub(crate) pid: u32,
    pub(crate) command: Arc<str>,
    pub(crate) group: u32,
    pub(crate) terms: Terms,
    pub(crate) rows: Vec<RowView>,
}

/// One of its rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowView {
    pub(crate) row: ProcessRow,
    pub(crate) state: RowState,
    pub(crate) card: Option<CardId>,
    pub(crate) is_still: bool,
    pub(crate) exceeds: bool,
    pub(crate) expected: Rate,
    pub(crate) target: Rate,
}

impl RowView {
    /// Which way its data go.
    pub(crate) fn direction(&self) -> Direction {
        if self.row.receives { Direction::Receiving } else { Direction::Sending }
    }

    /// The node that it shares.
    pub(crate) fn node(&self) -> Option<(CardId, Direction)> {
        self.card.filter(|_| self.state == RowState::Shares).map(|card| (card, self.direction()))
    }
}
