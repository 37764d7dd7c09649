//! Outcome of a transfer.

use fairwave_proto::codec::CloseReason;

use super::failures::Failures;
use super::planned::PlannedFiles;

/// Outcome of a transfer, with the entries that were not taken. Cheap to clone: its lists are shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Files that are complete at the destination, including those that were so at the start.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Entries that failed, in the order in which they did.
    pub failed: Failures,
    /// Number of failed entries, even if the list is truncated ([`Failures`]).
    pub files_failed: u64,
    /// Number of these that failed because their source files vanished during the copy.
    pub files_vanished: u64,
    /// Number of these that were requested by a name that does not exist.
    pub files_missing: u64,
    /// Entries whose content is at the destination, and of which the mode or the time could not be set there.
    pub warned: Failures,
    /// Number of these.
    pub files_warned: u64,
    /// Entries that were left out on purpose: devices, links that lead out of the tree.
    pub skipped: Failures,
    /// Number of skipped entries.
    pub files_skipped: u64,
    /// Entries that the source lacks and that were deleted; in a dry run, that would be.
    pub files_deleted: u64,
    /// Entries that the source lacks and that were not deleted, since the call limits the number.
    pub files_undeleted: u64,
    /// What was done with each file and link, if the call asks for it; of a dry run, what would be.
    pub planned: PlannedFiles,
    /// The BLAKE3 hash of the file, if the transfer was of a single one.
    pub blake3: Option<[u8; 32]>,
    /// How it ended.
    pub ended: Ended,
}

/// The end of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All entries are done: those that are not listed as failed or skipped are complete.
    Done,
    /// It was stopped; the same call resumes.
    Stopped,
    /// It failed for this reason; the same call resumes.
    Failed(String),
}

impl Outcome {
    /// A transfer that ended before any entry was done.
    pub fn empty(ended: Ended) -> Self {
        Self {
            files: 0,
            bytes: 0,
            failed: Failures::default(),
            files_failed: 0,
            files_vanished: 0,
            files_missing: 0,
            warned: Failures::default(),
            files_warned: 0,
            skipped: Failures::default(),
            files_skipped: 0,
            files_deleted: 0,
            files_undeleted: 0,
            planned: PlannedFiles::default(),
            blake3: None,
            ended,
        }
    }

    /// Whether every entry that was asked for is at its place.
    pub fn is_complete(&self) -> bool {
        self.ended == Ended::Done && self.files_failed == 0
    }

    /// An entry failed.
    pub(crate) fn fail(&mut self, path: &[u8], reason: String) {
        self.files_failed += 1;
        self.failed.push(path, reason);
    }

    /// An entry failed because its source file vanished.
    pub(crate) fn vanish(&mut self, path: &[u8], reason: String) {
        self.files_vanished += 1;
        self.fail(path, reason);
    }

    /// The content of an entry is complete, and an attribute could not be set.
    pub(crate) fn warn(&mut self, path: &[u8], reason: String) {
        self.files_warned += 1;
        self.warned.push(path, reason);
    }

    /// An entry was left out on purpose.
    pub(crate) fn skip(&mut self, path: &[u8], reason: String) {
        self.files_skipped += 1;
        self.skipped.push(path, reason);
    }
}

impl Ended {
    /// The outcome of an unfinished transfer whose session ended for this reason.
    pub(crate) fn from_close(reason: CloseReason, by_peer: bool) -> Self {
        let text = match (reason, by_peer) {
            (CloseReason::Refused(refusal), true) => return Self::Failed(format!("the server refused: {refusal}")),
            (CloseReason::Refused(refusal), false) => return Self::Failed(refusal.to_string()),
            (CloseReason::Stopped | CloseReason::Leaving, false) => return Self::Stopped,
            (CloseReason::Stopped, true) => {
                "the other end stopped: interrupted, an error there, or a newer transfer of the same files"
            }
            (CloseReason::Done, _) => "the session was closed before the transfer was complete",
            (CloseReason::Leaving, true) => "the peer shut down",
            (CloseReason::Silence, _) => "the peer stopped responding",
            (CloseReason::Reset, _) => "the peer does not know the session: it was restarted",
            (CloseReason::Cut, _) => "the carrying connection was lost",
            (CloseReason::Keys, _) => "the session keys are a day old",
            (CloseReason::Path, _) => "the path loses more than a fifth of all packets",
            (CloseReason::ExceedsGrant, _) => "one end exceeded its granted rate",
            (CloseReason::Protocol, true) => "the peer detected a protocol violation",
            (CloseReason::Protocol, false) => "the peer violated the protocol",
        };
        Self::Failed(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::super::failures::MAX_LISTED;
    use super::*;

    #[test]
    fn fail__counts_what_it_does_not_list() {
        let mut outcome = Outcome::empty(Ended::Done);
        assert!(outcome.is_complete());
        for _ in 0..=MAX_LISTED {
            outcome.fail(b"a", "gone".to_owned());
        }
        assert_eq!((outcome.failed.len(), outcome.files_failed), (MAX_LISTED, 100_001));
        assert!(!outcome.is_complete());
    }

    #[test]
    fn from_close__only_the_own_stop_is_a_stop() {
        assert_eq!(Ended::from_close(CloseReason::Stopped, false), Ended::Stopped);
        assert_eq!(Ended::from_close(CloseReason::Leaving, false), Ended::Stopped);
        assert!(matches!(Ended::from_close(CloseReason::Stopped, true), Ended::Failed(_)));
        assert!(matches!(Ended::from_close(CloseReason::Leaving, true), Ended::Failed(_)));
    }
}
