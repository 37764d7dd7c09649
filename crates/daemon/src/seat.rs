//! A process at the table, as the ticker has it: what its rows say, and what they are granted.

use std::sync::Arc;

use fairwave_proto::{
    CardId, Direction, MachineGrant, MachineRow, MachineStanding, MemberId, RowState, SessionOptions, Standing,
};
use fairwave_table::{Ask, Beat, DaemonSegment, GrantRow, GrantState, Holding, ProcessRow, ROWS, RowError};
use fairwave_units::{Duration, Rate, Time};

use crate::view::RowView;

/// A process that takes part.
pub(crate) struct Seat {
    pub(crate) member: MemberId,
    pub(crate) user: u32,
    pub(crate) pid: u32,
    pub(crate) command: Arc<str>,
    segments: Vec<DaemonSegment>,
    /// By row: what is known of it, if it is used.
    rows: Vec<Option<KnownRow>>,
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
    is_seen: bool,
    /// What stands in the daemon's row where no node grants anything.
    written: Option<(u16, GrantState)>,
}

/// A row that stands still for so many intervals is shown so.
const STILL_INTERVALS: u64 = 4;

impl Seat {
    pub(crate) fn new(member: MemberId, (user, pid): (u32, u32), command: Arc<str>, segment: DaemonSegment) -> Self {
        let mut seat = Self { member, user, pid, command, segments: Vec::new(), rows: Vec::new() };
        seat.add(segment);
        seat
    }

    pub(crate) fn add(&mut self, segment: DaemonSegment) {
        self.segments.push(segment);
        self.rows.resize_with(self.segments.len() * ROWS, || None);
    }

    /// Reads all rows that are used: `look` tells the machine of each, with its place; how many could not be read.
    /// Rows that are used no more are told with nothing. A row that `look` has no answer for yet is left as it is: a new
    /// one is not seen, and its session keeps what it has.
    pub(crate) fn read(
        &mut self,
        now: Time,
        mut look: impl FnMut(u32, Option<&ProcessRow>) -> Option<(RowState, Option<CardId>)>,
    ) -> u64 {
        let mut unread = 0;
        self.rows.iter_mut().flatten().for_each(|row| row.is_seen = false);
        for (number, segment) in self.segments.iter().enumerate() {
            for at in segment.used() {
                let place = number * ROWS + at;
                let Some(known) = self.rows.get_mut(place) else { continue };
                match segment.row(at) {
                    Ok(said) => {
                        let looked = look(place as u32, Some(&said));
                        match (known, looked) {
                            (Some(known), Some((state, card))) => known.update(now, &said, state, card),
                            (known @ None, Some((state, card))) => {
                                *known = Some(KnownRow::new(now, &said, state, card));
                            }
                            (Some(known), None) => known.is_seen = true,
                            (None, None) => {}
                        }
                    }
                    Err(RowError::Free | RowError::NoRow) => {}
                    // It keeps its former value, and stands still.
                    Err(RowError::Busy | RowError::Rubbish(_)) => {
                        unread += 1;
                        if let Some(known) = known {
                            known.is_seen = true;
                        }
                    }
                }
            }
        }
        for (place, row) in self.rows.iter_mut().enumerate() {
            if row.take_if(|row| !row.is_seen).is_some() {
                look(place as u32, None);
            }
        }
        unread
    }

    /// Writes what a row is granted: whether it is told for the first time that it exceeds that.
    pub(crate) fn grant(&mut self, grant: &MachineGrant) -> bool {
        let place = grant.row as usize;
        let Some(known) = self.rows.get_mut(place).and_then(Option::as_mut) else { return false };
        let is_first = grant.exceeds && !known.exceeds;
        (known.expected, known.target, known.exceeds) = (grant.expected, grant.target, grant.exceeds);
        known.written = None;
        let state = if grant.exceeds { GrantState::Exceeds } else { GrantState::Granted };
        let row = GrantRow { generation: grant.generation, state, expected: grant.expected, target: grant.target };
        if let Some(segment) = self.segments.get(place / ROWS) {
            // A place of `rows` is one of a segment.
            let _ = segment.set_grant(place % ROWS, &row);
        }
        is_first
    }

    /// Tells rows that no node holds, or that are refused, and ends the tick.
    pub(crate) fn end(&mut self, beat: &Beat) {
        for (place, row) in self.rows.iter_mut().enumerate() {
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
        // The first segment's beat says that all is written.
        for segment in self.segments.iter().rev() {
            segment.set_beat(beat);
        }
    }

    /// How many rows are refused.
    pub(crate) fn refused(&self) -> usize {
        self.rows.iter().flatten().filter(|row| row.state == RowState::Refused).count()
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
        Self { said: *said, state, card, changed: now, expected, target, exceeds: false, is_seen: true, written: None }
    }

    fn update(&mut self, now: Time, said: &ProcessRow, state: RowState, card: Option<CardId>) {
        if self.said.measured_at != said.measured_at {
            self.changed = now;
        }
        if self.said.generation != said.generation {
            (self.expected, self.target, self.exceeds, self.written) = (Rate::ZERO, Rate::ZERO, false, None);
        }
        (self.said, self.state, self.card, self.is_seen) = (*said, state, card, true);
    }
}

/// A process's row as the machine is told of it.
pub(crate) fn machine_row(said: &ProcessRow, card: Option<CardId>) -> MachineRow {
    let Ask { desired, weight, minimum, maximum, alpha, beta } = said.ask;
    MachineRow {
        generation: said.generation,
        direction: if said.receives { Direction::Receiving } else { Direction::Sending },
        card,
        measured: said.measured,
        measured_at: said.measured_at,
        options: SessionOptions { weight, alpha, beta, minimum },
        maximum,
        desired,
        rtt: said.rtt,
        waiting: said.waiting,
        start: said.start,
        standing: said.holding.as_ref().map(standing),
    }
}

/// Where a session of Tally stands, as the machine is told of it.
fn standing(said: &Holding) -> MachineStanding {
    let Holding { claim, limit, granted, reserved, taken, is_application_limited, is_silent, is_plain } = *said;
    let standing = Standing { claim, is_application_limited, limit, granted, reserved, is_silent, is_plain };
    MachineStanding { standing, taken }
}
