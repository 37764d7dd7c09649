//! The rows of a process's sessions.

use std::collections::BTreeMap;

use fairwave_proto::codec::SessionId;
use fairwave_proto::{AssignedGrant, Direction};
use fairwave_schemes::Grant;
use fairwave_table::{GrantState, Holding, ProcessRow, ProcessSegment, RowPlace, TickReport};
use fairwave_units::{Rate, Time};

/// The segments of a process, and which row each of its sessions has in a direction.
pub(super) struct Places {
    segments: Vec<ProcessSegment>,
    /// By direction.
    rows: [BTreeMap<SessionId, Row>; 2],
    /// Whether more rows were requested from the daemon, or the daemon is out of them.
    has_asked: bool,
}

struct Row {
    segment: usize,
    place: RowPlace,
    /// Last grant.
    expected: Option<Rate>,
    /// The content of its row.
    said: ProcessRow,
    /// Whether this look has reported it.
    is_reported: bool,
}

impl Places {
    pub(super) fn new(first: ProcessSegment) -> Self {
        Self { segments: vec![first], rows: [BTreeMap::new(), BTreeMap::new()], has_asked: false }
    }

    pub(super) fn add(&mut self, segment: ProcessSegment) {
        self.segments.push(segment);
        self.has_asked = false;
    }

    /// Changes with each tick of the daemon.
    pub(super) fn pulse(&self) -> u64 {
        // A tick ends with the tick report of the first segment.
        self.segments.first().map_or(0, ProcessSegment::pulse)
    }

    pub(super) fn tick_report(&self) -> Option<TickReport> {
        self.segments.first().and_then(ProcessSegment::tick_report)
    }

    /// A look starts: rows of a direction that it does not mention are released at its end.
    pub(super) fn begin(&mut self, direction: Direction) {
        self.rows[direction as usize].values_mut().for_each(|row| row.is_reported = false);
    }

    /// Writes the state of a session; assigns it a row if it has none and one is left. Returns whether it has one.
    pub(super) fn tell(&mut self, direction: Direction, session: SessionId, said: &ProcessRow) -> bool {
        let rows = &mut self.rows[direction as usize];
        let row = match rows.entry(session) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => {
                let take = |(at, segment): (usize, &mut ProcessSegment)| segment.take_row().map(|place| (at, place));
                let Some((segment, place)) = self.segments.iter_mut().enumerate().find_map(take) else { return false };
                new.insert(Row { segment, place, expected: Some(said.start), said: *said, is_reported: true })
            }
        };
        (row.is_reported, row.said) = (true, *said);
        self.segments.get(row.segment).is_some_and(|segment| segment.set_row(row.place, said))
    }

    /// A session has ended, but data of it may still arrive: its row stays, and only holds those.
    pub(super) fn linger(&mut self, direction: Direction, session: SessionId, at: Time, holding: Holding) {
        let Some(row) = self.rows[direction as usize].get_mut(&session) else { return };
        row.is_reported = true;
        let claim = Some(Rate::ZERO);
        row.said = ProcessRow {
            measured: Rate::ZERO,
            measured_at: at,
            holding: Some(Holding { claim, ..holding }),
            ..row.said
        };
        if let Some(segment) = self.segments.get(row.segment) {
            segment.set_row(row.place, &row.said);
        }
    }

    /// A look is over.
    pub(super) fn end(&mut self, direction: Direction) {
        let segments = &mut self.segments;
        self.rows[direction as usize].retain(|_, row| {
            if !row.is_reported
                && let Some(segment) = segments.get_mut(row.segment)
            {
                segment.give_back(row.place);
            }
            row.is_reported
        });
    }

    /// Whether to ask the daemon for more rows, once.
    pub(super) fn asks_for_more(&mut self) -> bool {
        !std::mem::replace(&mut self.has_asked, true)
    }

    /// The grants of a direction's sessions, in the order of their names. A session that the daemon has not seen yet
    /// keeps its last.
    pub(super) fn grants(&mut self, direction: Direction, grants: &mut Vec<AssignedGrant>) {
        grants.clear();
        for (session, row) in &mut self.rows[direction as usize] {
            let grant = self.segments.get(row.segment).and_then(|segment| segment.grant(row.place));
            let Some(grant) = grant else { continue };
            let expected = match grant.state {
                GrantState::Unseen => continue,
                GrantState::Granted | GrantState::Exceeds => Some(grant.expected),
                GrantState::Free => None,
                GrantState::Refused => Some(Rate::ZERO),
            };
            row.expected = expected;
            let exceeds = grant.state == GrantState::Exceeds;
            let grant = expected.map(|expected| Grant { expected, target: grant.target });
            grants.push(AssignedGrant { session: *session, grant, exceeds });
        }
    }

    /// Total of the last tick's grants of a direction's sessions that a node held; `None` if a node held none.
    pub(super) fn sum(&self, direction: Direction) -> Option<Rate> {
        let held = self.rows[direction as usize].values().filter_map(|row| row.expected);
        held.reduce(|sum, rate| sum + rate)
    }
}
