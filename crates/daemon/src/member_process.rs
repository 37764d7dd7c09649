//! A process at the table, as the ticker has it: what its rows say, and what they are granted.

use std::sync::Arc;

use fairwave_node::{CardId, Direction, MachineGrant, MachineRow, MachineStanding, MemberId, RowState, Standing};
use fairwave_table::{DaemonSegment, GrantRow, GrantState, Holding, ProcessRow, ROWS, RowError, TickReport};
use fairwave_units::{Duration, Rate, Time};

use crate::view::RowView;

/// A process that takes part.
pub(crate) struct MemberProcess {
    pub(crate) member: MemberId,
    pub(crate) user: u32,
    pub(crate) pid: u32,
    pub(crate) command: Arc<str>,
    segments: Vec<DaemonSegment>,
    /// By row: what is known of it, if it is used.
    rows: Vec<Option<KnownRow>>,
    /// Number of reads.
    reads: u64,
    /// Number of used rows; and of these, at the last read, those that were refused, and those without a grant.
    known: usize,
    refused: usize,
    without_grants: usize,
}

/// A row in use.
struct KnownRow {
    said: ProcessRow,
    state: RowState,
    card: Option<CardId>,
    changed: Time,
    expected: Rate,
    target: Rate,
    exceeds: bool,
    /// At which reading it was there last.
    seen: u64,
    /// Contents of the daemon's row while no node grants anything.
    written: Option<(u16, GrantState)>,
}

/// A row unchanged for this many intervals is shown as still.
const STILL_INTERVALS: u64 = 4;

impl MemberProcess {
    pub(crate) fn new(member: MemberId, (user, pid): (u32, u32), command: Arc<str>, segment: DaemonSegment) -> Self {
        let (segments, rows) = (Vec::new(), Vec::new());
        let (reads, known, refused, without_grants) = (0, 0, 0, 0);
        let mut process = Self { member, user, pid, command, segments, rows, reads, known, refused, without_grants };
        process.add(segment);
        process
    }

    pub(crate) fn add(&mut self, segment: DaemonSegment) {
        self.segments.push(segment);
        self.rows.resize_with(self.segments.len() * ROWS, || None);
    }

    /// Reads all used rows: calls `look` with each and its place; returns the number of unreadable rows. Rows that
    /// became unused are passed as `None`. A row without an answer from `look` is left unchanged: a new one is not
    /// acknowledged, and its session keeps its rate.
    pub(crate) fn read(
        &mut self,
        now: Time,
        mut look: impl FnMut(u32, Option<&ProcessRow>) -> Option<(RowState, Option<CardId>)>,
    ) -> u64 {
        let (mut unread, mut seen) = (0, 0);
        self.reads += 1;
        (self.refused, self.without_grants) = (0, 0);
        for (number, segment) in self.segments.iter().enumerate() {
            for at in segment.used() {
                let place = number * ROWS + at;
                let Some(known) = self.rows.get_mut(place) else { continue };
                match segment.row(at) {
                    Ok(said) => match (look(place as u32, Some(&said)), &mut *known) {
                        (Some((state, card)), Some(known)) => known.update(now, &said, state, card),
                        (Some((state, card)), known @ None) => {
                            *known = Some(KnownRow::new(now, &said, state, card));
                            self.known += 1;
                        }
                        (None, _) => {}
                    },
                    Err(RowError::Free | RowError::NoRow) => continue,
                    // It keeps its former value, and stands still.
                    Err(RowError::Busy | RowError::Rubbish(_)) => unread += 1,
                }
                if let Some(known) = known {
                    known.seen = self.reads;
                    seen += 1;
                    self.refused += usize::from(known.state == RowState::Refused);
                    self.without_grants += usize::from(known.state != RowState::Shares);
                }
            }
        }
        if seen < self.known {
            let reads = self.reads;
            for (place, row) in self.rows.iter_mut().enumerate() {
                if row.take_if(|row| row.seen != reads).is_some() {
                    look(place as u32, None);
                }
            }
            self.known = seen;
        }
        unread
    }

    /// Writes the grant of a row; returns whether this is its first notice of exceeding it.
    pub(crate) fn grant(&mut self, grant: &MachineGrant) -> bool {
        let place = grant.row as usize;
        let Some(known) = self.rows.get_mut(place).and_then(Option::as_mut) else { return false };
        let is_first = grant.exceeds && !known.exceeds;
        (known.expected, known.target, known.exceeds) = (grant.grant.expected, grant.grant.target, grant.exceeds);
        known.written = None;
        let state = if grant.exceeds { GrantState::Exceeds } else { GrantState::Granted };
        let row = GrantRow {
            generation: grant.generation,
            state,
            expected: grant.grant.expected,
            target: grant.grant.target,
        };
        if let Some(segment) = self.segments.get(place / ROWS) {
            // A place of `rows` is one of a segment.
            let _ = segment.set_grant(place % ROWS, &row);
        }
        is_first
    }

    /// Tells rows that no node holds, or that are refused, and ends the tick.
    pub(crate) fn end(&mut self, tick_report: &TickReport) {
        // Most ticks have none.
        let looks = if self.without_grants > 0 { self.rows.len() } else { 0 };
        for (place, row) in self.rows.iter_mut().enumerate().take(looks) {
            let Some(row) = row else { continue };
            let state = match row.state {
                RowState::Shares => continue,
                RowState::Free => GrantState::Free,
                RowState::Refused => GrantState::Refused,
            };
            let written = Some((row.said.generation, state));
            if row.written == written {
                continue;
            }
            row.written = written;
            (row.expected, row.target, row.exceeds) = (Rate::ZERO, Rate::ZERO, false);
            let (expected, target) = (Rate::ZERO, Rate::ZERO);
            if let Some(segment) = self.segments.get(place / ROWS) {
                let generation = row.said.generation;
                let _ = segment.set_grant(place % ROWS, &GrantRow { generation, state, expected, target });
            }
        }
        // The first segment's tick report commits all writes.
        for segment in self.segments.iter().rev() {
            segment.set_tick_report(tick_report);
        }
    }

    /// Number of refused rows.
    pub(crate) fn refused(&self) -> usize {
        self.refused
    }

    /// Its rows, to be shown.
    pub(crate) fn rows(&self, now: Time, interval: Duration) -> Vec<RowView> {
        let still = Duration::from_nanos(interval.as_nanos().saturating_mul(STILL_INTERVALS));
        let view = |row: &KnownRow| RowView {
            row: row.said,
            state: row.state,
            card: row.card,
            is_still: now.since(row.changed) > still,
            exceeds: row.exceeds,
            expected: row.expected,
            target: row.target,
        };
        self.rows.iter().flatten().map(view).collect()
    }
}

impl KnownRow {
    fn new(now: Time, said: &ProcessRow, state: RowState, card: Option<CardId>) -> Self {
        let (expected, target) = (Rate::ZERO, Rate::ZERO);
        Self { said: *said, state, card, changed: now, expected, target, exceeds: false, seen: 0, written: None }
    }

    fn update(&mut self, now: Time, said: &ProcessRow, state: RowState, card: Option<CardId>) {
        if self.said.measured_at != said.measured_at {
            self.changed = now;
        }
        if self.said.generation != said.generation {
            (self.expected, self.target, self.exceeds, self.written) = (Rate::ZERO, Rate::ZERO, false, None);
        }
        (self.said, self.state, self.card) = (*said, state, card);
    }
}

/// A process's row as input of the machine.
pub(crate) fn machine_row(said: &ProcessRow, card: Option<CardId>) -> MachineRow {
    MachineRow {
        generation: said.generation,
        direction: if said.receives { Direction::Receiving } else { Direction::Sending },
        card,
        measured: said.measured,
        measured_at: said.measured_at,
        terms: said.terms,
        rtt: said.rtt,
        waiting: said.waiting,
        start: said.start,
        standing: said.holding.as_ref().map(standing),
    }
}

/// The state of a Tally session as input of the machine.
fn standing(said: &Holding) -> MachineStanding {
    let Holding { claim, limit, granted, reserved, taken, is_application_limited, is_silent, is_plain } = *said;
    let standing = Standing { claim, is_application_limited, limit, granted, reserved, is_silent, is_plain };
    MachineStanding { standing, taken }
}
