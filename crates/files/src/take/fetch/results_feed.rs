//! The results that the taker of a put sends to its giver: a stream that is written once, at the end.

use std::ops::Range;
use std::sync::Arc;

use fairwave_host::{Lock, Session};
use fairwave_proto::ByteRanges;
use fairwave_proto::codec::VoidReason;

use crate::format::results::{Before, ResultRecord};
use crate::format::segments::SegmentWriter;
use crate::format::streams::RESULTS;
use crate::transfer::failures::Failure;
use crate::transfer::outcome::{Ended, Outcome};
use crate::transfer::planned::PlannedFile;

/// The results, which the network thread lends and the coordinator writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResultsFeed {
    shared: Arc<Lock<ResultsShared>>,
}

#[derive(Debug, Default)]
struct ResultsShared {
    stream: Option<Arc<[u8]>>,
    asked: ByteRanges,
}

/// Max ranges that are remembered until the results are known. An honest giver requests adjacent ranges.
const MAX_ASKED: usize = 1024;

impl ResultsFeed {
    /// The giver requests a range.
    pub(crate) fn on_request(&self, session: &Session, range: Range<u64>) {
        let mut shared = self.shared.lock();
        match &shared.stream {
            Some(stream) => answer(session, stream.len() as u64, range),
            // A giver that needs more repeats its requests.
            None if shared.asked.len() >= MAX_ASKED => {}
            None => _ = shared.asked.insert(range),
        }
    }

    /// The stream's bytes, if they are known.
    pub(crate) fn lend(&self, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        let stream = self.shared.lock().stream.clone();
        let range = range.start as usize..range.end as usize;
        take(stream.as_ref().and_then(|stream| stream.get(range)).ok_or(VoidReason::Shrank)?);
        Ok(())
    }

    /// The results are complete, or there is a reason why not: requested ranges are sent.
    pub(crate) fn tell(&self, session: &Session, before: Before, outcome: &Outcome) {
        let stream: Arc<[u8]> = stream(session.secret("results"), before, outcome).into();
        let mut shared = self.shared.lock();
        for range in std::mem::take(&mut shared.asked).iter() {
            answer(session, stream.len() as u64, range);
        }
        shared.stream = Some(stream);
    }
}

fn answer(session: &Session, length: u64, range: Range<u64>) {
    let end = range.end.min(length);
    if range.start < end {
        session.serve(RESULTS, range.start..end);
    }
    let start = range.start.max(end);
    if start < range.end {
        session.refuse(RESULTS, start..range.end, VoidReason::Shrank);
    }
}

fn stream(secret: [u8; 32], Before { files, bytes }: Before, outcome: &Outcome) -> Vec<u8> {
    fn said(entry: &Failure) -> (&[u8], &str) {
        (&entry.path, &entry.reason)
    }
    let mut writer = SegmentWriter::new(secret);
    let mut stream = Vec::new();
    let hash = outcome.blake3.map(|blake3| ResultRecord::Hash { blake3 });
    let done = match &outcome.ended {
        Ended::Failed(reason) => ResultRecord::Broken { reason },
        _ => ResultRecord::Done { files: outcome.files, bytes: outcome.bytes, failed: outcome.files_failed },
    };
    let failed = outcome.failed.iter().map(said).map(|(path, reason)| ResultRecord::Failed { path, reason });
    let skipped = outcome.skipped.iter().map(said).map(|(path, reason)| ResultRecord::Skipped { path, reason });
    let warned = outcome.warned.iter().map(said).map(|(path, reason)| ResultRecord::Warned { path, reason });
    let planned = outcome.planned.iter();
    let planned = planned.map(|PlannedFile { path, action, bytes }| ResultRecord::Planned { path, action, bytes });
    let Outcome { files_deleted: entries, files_undeleted: left, .. } = *outcome;
    let deleted = (entries > 0 || left > 0).then_some(ResultRecord::Deleted { entries, left });
    let lists = failed.chain(skipped).chain(warned).chain(planned);
    for record in lists.chain(deleted).chain([ResultRecord::Before { files, bytes }]).chain(hash).chain([done]) {
        // A path that is too long for a record came from the giver, which knows its error.
        if let Ok(added) = writer.add(|writer| record.write(writer)) {
            stream.extend(added.full.into_iter().flatten());
        }
    }
    stream.extend(writer.finish().into_iter().flatten());
    stream
}
