//! A segment as a process has it.

use crate::daemon_segment::{SegmentMemory, place};
use crate::error::TableError;
use crate::grant_row::{GrantRow, GrantState};
use crate::label;
use crate::layout::{GRANT_ROW_WORDS, LABEL_WORDS, PROCESS_ROW_WORDS, ROWS, bytes};
use crate::mapping::{ReadOnly, Writable};
use crate::memory::SealedMemory;
use crate::process_row::ProcessRow;
use crate::tick_report::TickReport;
use crate::word::Load;
use crate::{seqlock, used};

/// A process's end of [`ROWS`] rows: it gives them to its sessions, writes what they ask for, and reads what they are
/// granted.
pub struct ProcessSegment {
    rows: Writable,
    grants: ReadOnly,
    /// Of each row: of the session that has it, or had it last, and whether one has it.
    taken: Vec<(u16, bool)>,
    /// Rows that no session has.
    free: Vec<usize>,
}

/// The row of a session. One that was given back is good for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowPlace {
    /// Below [`ROWS`].
    pub at: usize,
    /// Of the session.
    pub generation: u16,
}

impl ProcessSegment {
    /// Maps what a daemon handed over, if it is a segment that nobody can take away.
    pub fn map(memory: SegmentMemory) -> Result<Self, TableError> {
        let rows = SealedMemory::check(memory.rows, bytes(PROCESS_ROW_WORDS), "process's", false)?;
        let grants = SealedMemory::check(memory.grants, bytes(GRANT_ROW_WORDS), "daemon's", true)?;
        let (rows, grants) = (Writable::of(&rows)?, ReadOnly::of(&grants)?);
        label::check(rows.words(), PROCESS_ROW_WORDS, "process's")?;
        label::check(grants.words(), GRANT_ROW_WORDS, "daemon's")?;
        Ok(Self { rows, grants, taken: vec![(0, false); ROWS], free: (0..ROWS).rev().collect() })
    }

    /// A row for a session that opens, if one is left. It is used from its first [`ProcessSegment::set_row`] on.
    pub fn take_row(&mut self) -> Option<RowPlace> {
        let at = self.free.pop()?;
        let (generation, is_taken) = self.taken.get_mut(at)?;
        (*generation, *is_taken) = (generation.wrapping_add(1), true);
        Some(RowPlace { at, generation: *generation })
    }

    /// A session is over: its row is free. Whether it was its row.
    pub fn give_back(&mut self, place: RowPlace) -> bool {
        if !self.has(place) {
            return false;
        }
        used::set_used(self.rows.words(), place.at, false);
        if let Ok(words) = self::place(self.rows.words(), PROCESS_ROW_WORDS, place.at) {
            seqlock::write(words, &ProcessRow::FREE);
        }
        self.taken[place.at].1 = false;
        self.free.push(place.at);
        true
    }

    /// Says what is so of a session; the generation of the row is that of its place. Whether it has that row.
    pub fn set_row(&self, place: RowPlace, row: &ProcessRow) -> bool {
        if !self.has(place) {
            return false;
        }
        let Ok(words) = self::place(self.rows.words(), PROCESS_ROW_WORDS, place.at) else { return false };
        seqlock::write(words, &ProcessRow { generation: place.generation, ..*row }.encode());
        used::set_used(self.rows.words(), place.at, true);
        true
    }

    /// The grant of a session; `None` if it is being written, or is still for the session that had the row earlier.
    pub fn grant(&self, place: RowPlace) -> Option<GrantRow> {
        let words = self::place(self.grants.words(), GRANT_ROW_WORDS, place.at).ok()?;
        let (_, values) = seqlock::read(words)?;
        let is_its_own = |grant: &GrantRow| grant.generation == place.generation && grant.state != GrantState::Unseen;
        GrantRow::decode(values).ok().filter(is_its_own)
    }

    /// Changes with each tick of the daemon: one load, to be compared with that of the turn before.
    pub fn pulse(&self) -> u64 {
        self.grants.words().get(LABEL_WORDS).map_or(0, Load::load)
    }

    /// The daemon's tick report; nothing before its first, or while one is being written. The grants that are read
    /// after it are those of its tick or of a later one.
    pub fn tick_report(&self) -> Option<TickReport> {
        let words = self.grants.words().get(LABEL_WORDS..=LABEL_WORDS + TickReport::WORDS)?;
        seqlock::read(words).filter(|(sequence, _)| *sequence > 0).map(|(_, values)| TickReport::decode(values))
    }

    fn has(&self, place: RowPlace) -> bool {
        self.taken.get(place.at) == Some(&(place.generation, true))
    }
}
