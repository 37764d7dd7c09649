//! Giving files to a server that takes them.

use std::collections::HashSet;
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use fairwave_host::{ConnectOptions, Endpoint, Handler, Session, Ticket};
use fairwave_proto::Terms;
use fairwave_proto::codec::{CloseReason, VoidReason};
use fairwave_units::{Duration, Rate};

use super::giving_end::GivingEnd;
use super::list_options::ListOptions;
use super::roots::Roots;
use super::share_name::share_name;
use super::supply::Readers;
use crate::filter::choice::Filter;
use crate::filter::selection::NameSelection;
use crate::format::backup::Backup;
use crate::format::greeting::{Archive, Deletions, Greeting, Look};
use crate::format::keeps::Keeps;
use crate::format::packed::Compress;
use crate::format::results::{Before, Records, ResultRecord};
use crate::format::segments::SegmentReader;
use crate::format::streams::{CHUNKS, RESULTS, TREE, is_packed};
use crate::transfer::error::{ShareError, TransferError};
use crate::transfer::failures::Failures;
use crate::transfer::ledger::{Ledger, Transfer};
use crate::transfer::outcome::{Ended, Outcome};
use crate::transfer::planned::PlannedFile;
use crate::transfer::progress::WaitsFor;
use crate::transfer::renewal::Renew;
use crate::transfer::retry::{Destination, RETRY, persist};

/// Options of a put.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "four options that do not depend on each other")]
pub struct PutOptions {
    /// Whether the server reads files that seem complete there, having the right size and time, and compares their
    /// hashes.
    pub check: bool,
    /// Whether files are sent whole. Otherwise what an older file at the server has of one is not sent.
    pub whole_file: bool,
    /// When blocks are compressed on their way.
    pub compress: Compress,
    /// Whether nothing is written, and the outcome only counts what would be sent.
    pub dry_run: bool,
    /// Whether links whose targets lead out of the tree are kept unchanged, if the server allows it; otherwise they
    /// fail.
    pub keeps_links: bool,
    /// As [`GetOptions::fuzzy`](crate::GetOptions::fuzzy). The server has to allow it.
    pub fuzzy: bool,
    /// Files of the same size whose times differ by at most this many seconds count as equal.
    pub modify_window_s: u32,
    /// Entries that are left unchanged at the destination.
    pub keeps: Keeps,
    /// Whether entries that the source lacks are deleted from the directories that are copied, and at most how many;
    /// `None` deletes nothing. It happens last, and only if nothing failed. The server has to allow it.
    pub deletes: Option<u64>,
    /// As [`GetOptions::lists_files`](crate::GetOptions::lists_files).
    pub lists_files: bool,
    /// Whether all attributes are copied. The server has to allow it.
    pub archive: Option<Archive>,
    /// How replaced and deleted files are kept, if they are.
    pub backup: Option<Backup>,
    /// Which files, by path and size.
    pub filter: Filter,
    /// Paths below the only path that is given, a directory: these, each with all that is below it, and no others. That
    /// directory has no part in their places, and rules are relative to it.
    pub names: Option<Vec<OsString>>,
    /// No faster than this.
    pub limit: Option<Rate>,
    /// As [`GetOptions::retry`](crate::GetOptions::retry).
    pub retry: Duration,
    /// Options of the session at this end node.
    pub session: Terms,
}

impl Default for PutOptions {
    fn default() -> Self {
        Self {
            check: false,
            whole_file: false,
            compress: Compress::default(),
            dry_run: false,
            keeps_links: false,
            fuzzy: false,
            modify_window_s: 0,
            keeps: Keeps::default(),
            deletes: None,
            lists_files: false,
            archive: None,
            backup: None,
            filter: Filter::default(),
            names: None,
            limit: None,
            retry: RETRY,
            session: Terms::default(),
        }
    }
}

/// Gives what lies at these paths to the server of a ticket: returns when the session is open.
///
/// The transfer is done when the server has said that all is durable; what it could not write is in the outcome. A
/// session that ends for a reason that may pass is followed by another, as with [`get`](crate::get()).
pub fn put(
    endpoint: &Endpoint,
    ticket: &Ticket,
    paths: &[PathBuf],
    options: &PutOptions,
) -> Result<Transfer, TransferError> {
    put_to(endpoint, Destination { ticket: ticket.clone(), renew: None }, paths, options)
}

/// Like [`put`], to a server that may restart, as with [`get_renewed`](crate::get_renewed()).
pub fn put_renewed(
    endpoint: &Endpoint,
    ticket: &Ticket,
    renew: Renew,
    paths: &[PathBuf],
    options: &PutOptions,
) -> Result<Transfer, TransferError> {
    put_to(endpoint, Destination { ticket: ticket.clone(), renew: Some(renew) }, paths, options)
}

fn put_to(
    endpoint: &Endpoint,
    to: Destination,
    paths: &[PathBuf],
    options: &PutOptions,
) -> Result<Transfer, TransferError> {
    let (paths, options) = (paths.to_vec(), options.clone());
    let patience = options.retry;
    let open = Box::new(move |endpoint: &Endpoint, ticket: &Ticket, former: Option<&Session>| {
        let (giver, transfer) = giver(&paths, &options)?;
        let greeting = Greeting::Put(look(&options)).to_bytes();
        let request = ConnectOptions { sends: true, receives: true, greeting, options: options.session };
        Ok((endpoint.begin(ticket, request, giver, former)?, transfer))
    });
    persist(endpoint, to, patience, true, open)
}

/// Options of the server's comparison, before files move, and of its deletions after that.
pub(crate) fn look(options: &PutOptions) -> Look {
    let PutOptions {
        check: does_check,
        dry_run: is_dry,
        keeps_links,
        modify_window_s,
        keeps,
        lists_files,
        archive,
        ..
    } = *options;
    let deletes = options.deletes.map(|most| Deletions {
        most,
        at_top: options.names.as_ref().is_some_and(Vec::is_empty),
        stays_on_file_system: options.filter.stays_on_file_system,
        keeps_ignored: options.filter.obeys_gitignore,
    });
    Look {
        does_check,
        is_dry,
        keeps_links,
        modify_window_s,
        keeps,
        deletes,
        lists_files,
        archive,
        backup: options.backup.clone(),
        is_fuzzy: options.fuzzy,
    }
}

/// The roots of a put, and the options of their listing.
pub(super) fn chosen(paths: &[PathBuf], options: &PutOptions) -> Result<(Roots, ListOptions), ShareError> {
    let roots = match (&options.names, paths) {
        (None, paths) => Roots::find(paths)?,
        (Some(_), [path]) => Roots::find_inside(path)?,
        (Some(_), _) => return Err(ShareError::Inside),
    };
    let names = options.names.iter().flatten().map(|name| name.as_bytes());
    let (filter, names) = (options.filter.clone(), NameSelection::new(names));
    let lists_left_out = options.deletes.is_some();
    let lists_attributes = options.archive.is_some();
    Ok((roots, ListOptions { filter, names, lists_left_out, lists_attributes, ..ListOptions::default() }))
}

/// The handler of a put, and its transfer.
pub(crate) fn giver(paths: &[PathBuf], options: &PutOptions) -> Result<(Box<dyn Handler>, Transfer), TransferError> {
    let (roots, listing) = chosen(paths, options)?;
    let readers = Readers::start().map_err(TransferError::Thread)?;
    let ledger = Ledger::default();
    let source = GivingEnd::new(roots, share_name(paths), readers, ledger.clone())
        .with_limit(options.limit)
        .packing(options.compress)
        .listing(listing)
        .counting_holes();
    let giver = Giver {
        lists_files: options.lists_files,
        whole_file: options.whole_file,
        ..Giver::new(source, ledger.clone(), options.dry_run)
    };
    Ok((Box::new(giver), ledger.transfer()))
}

/// The client's end of a put: gives, and hears what became of it.
struct Giver {
    source: GivingEnd,
    ledger: Ledger,
    results: Option<SegmentReader>,
    told: Outcome,
    before: Before,
    /// Bytes of received result records.
    told_bytes: usize,
    is_dry: bool,
    /// Whether the results list each file.
    lists_files: bool,
    /// Whether no chunks of files are listed.
    whole_file: bool,
}

/// A taker within the bounds of its lists never sends more.
const MAX_TOLD_BYTES: usize = 64 << 20;
/// With what is done with each file, or would be in a dry run: some ten million.
const MAX_PLANNED_BYTES: usize = 1 << 30;

impl Giver {
    fn new(source: GivingEnd, ledger: Ledger, is_dry: bool) -> Self {
        let (told, before) = (Outcome::empty(Ended::Done), Before::default());
        Self {
            source,
            ledger,
            results: None,
            told,
            before,
            told_bytes: 0,
            is_dry,
            lists_files: is_dry,
            whole_file: false,
        }
    }

    /// Reads the results received so far.
    fn read(&mut self, session: &Session) {
        let Some(reader) = &mut self.results else { return };
        let broken = loop {
            let body = match reader.next() {
                Ok(Some(body)) => body,
                Ok(None) => break None,
                Err(error) => break Some(error.to_string()),
            };
            self.told_bytes += body.len();
            let most = if self.is_dry || self.lists_files { MAX_PLANNED_BYTES } else { MAX_TOLD_BYTES };
            if self.told_bytes > most {
                break Some(format!("the results exceed {} MiB", most >> 20));
            }
            for record in Records::new(&body) {
                match record {
                    Ok(ResultRecord::Failed { path, reason }) => self.told.fail(path, reason.to_owned()),
                    Ok(ResultRecord::Skipped { path, reason }) => self.told.skip(path, reason.to_owned()),
                    Ok(ResultRecord::Warned { path, reason }) => self.told.warn(path, reason.to_owned()),
                    Ok(ResultRecord::Planned { path, action, bytes }) => {
                        self.told.planned.push(PlannedFile { path, action, bytes });
                    }
                    Ok(ResultRecord::Deleted { entries, left }) => {
                        (self.told.files_deleted, self.told.files_undeleted) = (entries, left);
                    }
                    Ok(ResultRecord::Before { files, bytes }) => self.before = Before { files, bytes },
                    Ok(ResultRecord::Hash { blake3 }) => self.told.blake3 = Some(blake3),
                    Ok(ResultRecord::Done { files, bytes, failed }) => return self.end(session, files, bytes, failed),
                    Ok(ResultRecord::Broken { reason }) => {
                        return self.break_off(session, format!("the other end: {reason}"), CloseReason::Stopped);
                    }
                    Err(error) => return self.on_invalid(session, &error.to_string()),
                }
            }
        };
        if let Some(error) = broken {
            return self.on_invalid(session, &error);
        }
        while let Some(range) = reader.wants() {
            session.want(RESULTS, range);
        }
    }

    /// All is durable, as far as it did not fail.
    fn end(&mut self, session: &Session, files: u64, bytes: u64, failed: u64) {
        self.results = None;
        let (tally, before) = (self.ledger.tally(), self.before);
        // A dry run sends nothing.
        let [files_done, bytes_done] = if self.is_dry { [before.files, before.bytes] } else { [files, bytes] };
        tally.bytes_done.store(bytes_done, Ordering::Relaxed);
        tally.bytes_resumed.store(before.bytes.min(bytes_done), Ordering::Relaxed);
        // Holes of files that existed at the start do not count.
        tally.bytes_holes.fetch_min(bytes.saturating_sub(before.bytes), Ordering::Relaxed);
        tally.files_done.store(files_done, Ordering::Relaxed);
        tally.files_failed.store(failed, Ordering::Relaxed);
        tally.wait_for(None);
        let told = Outcome { files, bytes, files_failed: failed, ..self.told.clone() };
        self.ledger.end(joined(told, self.source.close()));
        session.close(CloseReason::Done);
    }

    fn on_invalid(&mut self, session: &Session, why: &str) {
        self.break_off(session, format!("invalid results from the peer: {why}"), CloseReason::Protocol);
    }

    fn break_off(&mut self, session: &Session, why: String, close: CloseReason) {
        self.results = None;
        let outcome = joined(self.told.clone(), self.source.close());
        self.ledger.end(Outcome { ended: Ended::Failed(why), ..outcome });
        session.close(close);
    }
}

/// The taker's outcome, with this end's reasons for the same paths: they are more precise.
fn joined(mut told: Outcome, seen: Option<Outcome>) -> Outcome {
    let Some(seen) = seen else { return told };
    for (told, seen) in [(&mut told.failed, &seen.failed), (&mut told.skipped, &seen.skipped)] {
        if seen.is_empty() {
            continue;
        }
        let paths: HashSet<&[u8]> = seen.iter().map(|failure| failure.path.as_slice()).collect();
        let mut all = Failures::default();
        for failure in told.iter().filter(|failure| !paths.contains(failure.path.as_slice())).chain(seen) {
            all.push(&failure.path, failure.reason.clone());
        }
        *told = all;
    }
    // Lists are bounded, and counts are not.
    told.files_failed = told.files_failed.max(told.failed.len() as u64).max(seen.files_failed);
    told.files_vanished = seen.files_vanished.min(told.files_failed);
    told.files_skipped = told.files_skipped.max(told.skipped.len() as u64).max(seen.files_skipped);
    told
}

impl Handler for Giver {
    fn on_open(&mut self, session: &Session) {
        self.source.on_open(session);
        self.results = Some(SegmentReader::new(session.secret("results")));
        self.read(session);
    }

    fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
        if stream == CHUNKS && self.whole_file {
            return session.refuse(stream, range, VoidReason::Vanished);
        }
        self.source.on_request(session, stream, range);
    }

    fn comes_later(&mut self) -> bool {
        self.source.comes_later()
    }

    fn lend(&mut self, stream: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        let outcome = self.source.lend(stream, range, take);
        if stream == TREE || is_packed(stream) {
            let tally = self.ledger.tally();
            tally.wait_for(tally.is_all_done().then_some(WaitsFor::Results));
        }
        outcome
    }

    fn on_data(&mut self, session: &Session, stream: u32, offset: u64, bytes: &[u8]) {
        if let Some(reader) = self.results.as_mut().filter(|_| stream == RESULTS) {
            reader.on_data(offset, bytes);
            self.read(session);
        }
    }

    fn on_void(&mut self, session: &Session, stream: u32, range: Range<u64>, _: VoidReason) {
        if let Some(reader) = self.results.as_mut().filter(|_| stream == RESULTS) {
            reader.on_void(&range);
            self.read(session);
        }
    }

    fn on_closed(&mut self, _: &Session, reason: CloseReason, by_peer: bool) {
        self.ledger.close(reason, by_peer);
        // After the results this adds nothing: the first outcome counts.
        let outcome = joined(self.told.clone(), self.source.close());
        self.ledger.end(Outcome { ended: Ended::from_close(reason, by_peer), ..outcome });
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration as StdDuration;

    use super::*;
    use crate::collector::{Collected, Collector, tree};
    use crate::format::segments::SegmentWriter;
    use crate::loopback::{FAIR, Loopback, LoopbackPath, ROUGH};

    const LASTS: StdDuration = StdDuration::from_secs(600);

    fn run(
        root: &Path,
        way: LoopbackPath,
        then: impl FnOnce() + Send + 'static,
    ) -> (Option<CloseReason>, Collected, Outcome) {
        let ledger = Ledger::default();
        let roots = Roots::find(&[root.to_owned()]).unwrap();
        let source = GivingEnd::new(roots, [3; 16], Readers::start().unwrap(), ledger.clone());
        let giver = Giver::new(source, ledger.clone(), false);
        let (collector, taken) = Collector::new(true, true, then);
        let closed = Loopback::open(Box::new(giver), Box::new(collector), false, way).run_out(LASTS);
        let outcome = ledger.transfer().wait(Some(fairwave_units::Duration::ZERO)).expect("it is over");
        (closed, std::mem::take(&mut taken.lock().unwrap()), outcome)
    }

    #[test]
    fn put__ends_when_the_results_are_there() {
        for way in [FAIR, ROUGH] {
            let place = tempfile::tempdir().unwrap();
            let (root, files) = tree(place.path(), &[10, 0, 5_000_000, 70_000]);
            let (closed, taken, outcome) = run(&root, way, || {});
            assert_eq!(closed, Some(CloseReason::Done));
            assert!(taken.files == files);
            assert_eq!((outcome.ended, outcome.files, outcome.bytes), (Ended::Done, 4, 5_070_010));
        }
    }

    #[test]
    fn put__a_failure_is_told_once_and_with_what_is_known_here() {
        let place = tempfile::tempdir().unwrap();
        let (root, _) = tree(place.path(), &[10, 20, 30]);
        let gone = root.join("00001");
        let (_, _, outcome) = run(&root, FAIR, move || fs::remove_file(gone).unwrap());
        assert_eq!((outcome.files, outcome.bytes, outcome.files_failed), (2, 40, 1));
        assert_eq!(outcome.failed.len(), 1);
        assert_eq!(outcome.failed[0].path, b"data/00001");
        assert_eq!(outcome.failed[0].reason, "vanished during the transfer");
        assert!(!outcome.is_complete());
    }

    /// A taker that cannot go on.
    #[derive(Default)]
    struct BrokenTaker {
        told: Vec<u8>,
    }

    impl Handler for BrokenTaker {
        fn on_open(&mut self, session: &Session) {
            let mut writer = SegmentWriter::new(session.secret("results"));
            let record = ResultRecord::Broken { reason: "the file system is read-only" };
            writer.add(|writer| record.write(writer)).unwrap();
            self.told = writer.finish().into_iter().flatten().collect();
        }

        fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
            let end = range.end.min(self.told.len() as u64);
            session.serve(stream, range.start..end);
        }

        fn lend(&mut self, _: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
            take(&self.told[range.start as usize..range.end as usize]);
            Ok(())
        }
    }

    #[test]
    fn put__ends_with_the_reason_of_a_taker_that_cannot_go_on() {
        let place = tempfile::tempdir().unwrap();
        let (root, _) = tree(place.path(), &[10]);
        let ledger = Ledger::default();
        let source = GivingEnd::new(Roots::find(&[root]).unwrap(), [3; 16], Readers::start().unwrap(), ledger.clone());
        let giver = Giver::new(source, ledger.clone(), false);
        let closed = Loopback::open(Box::new(giver), Box::new(BrokenTaker::default()), false, FAIR).run_out(LASTS);
        assert_eq!(closed, Some(CloseReason::Stopped));
        let outcome = ledger.transfer().wait(Some(fairwave_units::Duration::ZERO)).unwrap();
        assert_eq!(outcome.ended, Ended::Failed("the other end: the file system is read-only".to_owned()));
    }

    /// A taker that sends results without end.
    #[derive(Default)]
    struct EndlessResults {
        told: Vec<u8>,
    }

    impl Handler for EndlessResults {
        fn on_open(&mut self, session: &Session) {
            let (mut writer, path) = (SegmentWriter::new(session.secret("results")), [b'x'; 4096]);
            while self.told.len() < MAX_TOLD_BYTES + (8 << 20) {
                let record = ResultRecord::Failed { path: &path, reason: "as the taker says" };
                let added = writer.add(|writer| record.write(writer)).unwrap();
                self.told.extend(added.full.into_iter().flatten());
            }
        }

        fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
            session.serve(stream, range);
        }

        fn lend(&mut self, _: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
            take(self.told.get(range.start as usize..range.end as usize).ok_or(VoidReason::Shrank)?);
            Ok(())
        }
    }

    #[test]
    fn put__results_without_end_end_the_transfer() {
        let place = tempfile::tempdir().unwrap();
        let (root, _) = tree(place.path(), &[10]);
        let ledger = Ledger::default();
        let source = GivingEnd::new(Roots::find(&[root]).unwrap(), [3; 16], Readers::start().unwrap(), ledger.clone());
        let giver = Giver::new(source, ledger.clone(), false);
        let closed = Loopback::open(Box::new(giver), Box::new(EndlessResults::default()), false, FAIR).run_out(LASTS);
        assert_eq!(closed, Some(CloseReason::Protocol));
        let outcome = ledger.transfer().wait(Some(fairwave_units::Duration::ZERO)).unwrap();
        assert!(matches!(&outcome.ended, Ended::Failed(why) if why.contains("exceed 64 MiB")), "{:?}", outcome.ended);
        // Results received by then: 64 MiB of some 4100 bytes each.
        assert!(outcome.files_failed > 16_000, "{}", outcome.files_failed);
        assert!(outcome.failed.bytes() <= crate::transfer::failures::MAX_LISTED_BYTES && outcome.failed.len() < 4100);
    }

    #[test]
    fn put__a_cut_is_no_success() {
        let place = tempfile::tempdir().unwrap();
        let (root, _) = tree(place.path(), &[10]);
        let ledger = Ledger::default();
        let source = GivingEnd::new(Roots::find(&[root]).unwrap(), [3; 16], Readers::start().unwrap(), ledger.clone());
        let giver = Giver::new(source, ledger.clone(), false);
        let (collector, _) = Collector::new(true, true, || {});
        let mut loopback = Loopback::open(Box::new(giver), Box::new(collector), false, FAIR);
        loopback.step();
        loopback.cut();
        let outcome = ledger.transfer().wait(Some(fairwave_units::Duration::ZERO)).unwrap();
        assert!(matches!(outcome.ended, Ended::Failed(_)));
    }
}
