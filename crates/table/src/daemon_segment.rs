//! A segment as the daemon has it.

use std::os::fd::OwnedFd;

use crate::error::{RowError, TableError};
use crate::grant_row::GrantRow;
use crate::label::label;
use crate::layout::{GRANT_ROW_WORDS, LABEL_WORDS, PROCESS_ROW_WORDS, ROWS, bytes, row};
use crate::mapping::{ReadOnly, Writable};
use crate::memory::NewMemory;
use crate::process_row::ProcessRow;
use crate::tick_report::TickReport;
use crate::{seqlock, used};

/// The daemon's end of [`ROWS`] rows of one process: it reads what the process writes, and writes grants.
pub struct DaemonSegment {
    rows: ReadOnly,
    grants: Writable,
}

/// The two memories of a segment, to be handed to its process.
#[derive(Debug)]
pub struct SegmentMemory {
    /// That which the process writes.
    pub rows: OwnedFd,
    /// That which the daemon writes.
    pub grants: OwnedFd,
}

impl DaemonSegment {
    /// Makes both memories, all of them, and seals them: from then on nobody can change their size, and nobody but this
    /// daemon can write grants.
    pub fn make() -> Result<(Self, SegmentMemory), TableError> {
        let rows = NewMemory::of("fairwave-rows", bytes(PROCESS_ROW_WORDS))?;
        rows.begin_with(&label(PROCESS_ROW_WORDS))?;
        let grants = NewMemory::of("fairwave-grants", bytes(GRANT_ROW_WORDS))?;
        grants.begin_with(&label(GRANT_ROW_WORDS))?;
        let rows = rows.seal_size()?;
        let (grants, written) = grants.seal_for_reading(Writable::of)?;
        let segment = Self { rows: ReadOnly::of(&rows)?, grants: written };
        Ok((segment, SegmentMemory { rows: rows.into_fd(), grants: grants.into_fd() }))
    }

    /// The rows that the process marks as used, in order.
    pub fn used(&self) -> impl Iterator<Item = usize> {
        used::used(self.rows.words())
    }

    /// The process's row of a session. It never waits for the process.
    pub fn row(&self, at: usize) -> Result<ProcessRow, RowError> {
        let words = place(self.rows.words(), PROCESS_ROW_WORDS, at)?;
        let (_, values) = seqlock::read(words).ok_or(RowError::Busy)?;
        ProcessRow::decode(values)
    }

    /// Writes what a session is granted. It counts once the tick report is written.
    pub fn set_grant(&self, at: usize, grant: &GrantRow) -> Result<(), RowError> {
        let words = place(self.grants.words(), GRANT_ROW_WORDS, at)?;
        seqlock::write(words, &grant.encode());
        Ok(())
    }

    /// Ends a tick: all its grants are written.
    pub fn set_tick_report(&self, tick_report: &TickReport) {
        if let Some(words) = self.grants.words().get(LABEL_WORDS..=LABEL_WORDS + TickReport::WORDS) {
            seqlock::write(words, &tick_report.encode());
        }
    }
}

/// The words of a row.
pub(crate) fn place<W>(words: &[W], row_words: usize, at: usize) -> Result<&[W], RowError> {
    let from = row(row_words, at.min(ROWS));
    words.get(from..from + row_words).filter(|_| at < ROWS).ok_or(RowError::NoRow)
}
