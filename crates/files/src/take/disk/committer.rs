//! Moves files to their places in batches: their contents are synced first, once for a whole batch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use rustix::io::Errno;

use crate::sys::{fdatasync, fsync, syncfs};
use crate::take::disk::disk_error::{DiskError, Doing};
use crate::take::disk::disk_state::DiskState;
use crate::take::disk::durable::Durable;
use crate::take::disk::sync_choice::SyncChoice;
use crate::take::fetch::taken_file::TakenFile;
use crate::take::news::{Placed, TakeNews};
use crate::take::resume::homes::FileSystem;
use crate::take::resume::temps::PLACE;

/// A message to the committer.
#[derive(Debug)]
pub(crate) enum GroupJob {
    /// Files whose temporaries are complete.
    Finished(Vec<Arc<TakenFile>>),
    /// This many bytes were written of a file that is not complete yet.
    Touched(Arc<TakenFile>, u64),
    /// Nothing follows for the time being.
    Flush,
    /// Nothing follows at all.
    Leave,
}

/// The thread that makes files durable and moves them to their places.
pub(crate) struct Committer {
    disk: Arc<DiskState>,
    durable: Durable,
    jobs: Receiver<GroupJob>,
    news: Sender<TakeNews>,
    finished: Vec<Arc<TakenFile>>,
    /// By their numbers.
    touched: BTreeMap<usize, Arc<TakenFile>>,
    bytes: u64,
    since: Option<Instant>,
    choice: SyncChoice,
}

/// Max bytes of a batch,
const MOST_BYTES: u64 = 64 << 20;
/// max files of a batch,
const MAX_FILES: usize = 2000;
/// or after this time.
const LONGEST: Duration = Duration::from_secs(1);
const SYNC: &str = "flush it";

impl Committer {
    pub(crate) fn new(
        disk: Arc<DiskState>,
        durable: Durable,
        jobs: Receiver<GroupJob>,
        news: Sender<TakeNews>,
    ) -> Self {
        let (finished, touched) = (Vec::new(), BTreeMap::new());
        Self { disk, durable, jobs, news, finished, touched, bytes: 0, since: None, choice: SyncChoice::default() }
    }

    /// Works until all senders are gone; then commits the rest.
    pub(crate) fn run(mut self) {
        loop {
            let left = self.since.map_or(LONGEST, |since| LONGEST.saturating_sub(since.elapsed()));
            let is_over = match self.jobs.recv_timeout(left) {
                Ok(GroupJob::Leave) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(job) => self.take(job),
                Err(RecvTimeoutError::Timeout) => true,
            };
            if is_over || self.is_large() || self.since.is_some_and(|since| since.elapsed() >= LONGEST) {
                self.commit();
            }
        }
        self.commit();
    }

    /// Adds a job; returns whether the batch ends with it.
    fn take(&mut self, job: GroupJob) -> bool {
        match job {
            GroupJob::Finished(items) => {
                self.bytes += items.iter().filter(|item| item.is_whole()).map(|item| item.bytes()).sum::<u64>();
                self.finished.extend(items);
            }
            GroupJob::Touched(item, bytes) => {
                self.bytes += bytes;
                self.touched.insert(item.span.file, item);
            }
            GroupJob::Flush | GroupJob::Leave => return self.jobs.is_empty(),
        }
        self.since.get_or_insert_with(Instant::now);
        false
    }

    fn is_large(&self) -> bool {
        match self.durable {
            Durable::Each => !self.finished.is_empty() || self.bytes >= MOST_BYTES,
            Durable::Group => self.bytes >= MOST_BYTES || self.finished.len() >= MAX_FILES,
            Durable::None => self.jobs.is_empty() || self.finished.len() >= MAX_FILES,
        }
    }

    /// Syncs the batch and moves its files to their places.
    fn commit(&mut self) {
        let (bytes, begin) = (std::mem::take(&mut self.bytes), Instant::now());
        self.since = None;
        let touched = std::mem::take(&mut self.touched);
        let mut finished = std::mem::take(&mut self.finished);
        if finished.is_empty() && touched.is_empty() {
            return;
        }
        let mut placed = Placed::default();
        if self.durable == Durable::Each {
            for item in finished {
                self.commit_some(vec![item], &touched, &mut placed);
            }
        } else {
            finished.sort_unstable_by(|one, other| one.path.parent().cmp(other.path.parent()));
            self.commit_some(finished, &touched, &mut placed);
        }
        let ms = begin.elapsed().as_millis() as u64;
        tracing::debug!(bytes, files = placed.files, failed = placed.failed.len(), ms, "a group is at its place");
        // After the news of it nothing of the group is under way.
        let _ = self.news.send(TakeNews::Placed(placed));
    }

    fn commit_some(
        &mut self,
        items: Vec<Arc<TakenFile>>,
        touched: &BTreeMap<usize, Arc<TakenFile>>,
        placed: &mut Placed,
    ) {
        let is_durable = self.durable != Durable::None;
        let file_systems = if is_durable { self.file_systems(items.iter().chain(touched.values())) } else { vec![] };
        let items = if is_durable { self.sync(items, touched, &file_systems, placed) } else { items };
        let is_together = |one: &Arc<TakenFile>, other: &Arc<TakenFile>| one.path.parent() == other.path.parent();
        let mut turn = self.choice.begin(items.chunk_by(is_together).count());
        for items in items.chunk_by(is_together) {
            let Some(first) = items.first() else { continue };
            let directory = match self.disk.temps.tree().directory(first.path.parent()).doing("open its directory") {
                Ok(directory) => directory,
                Err(error) => {
                    for item in items {
                        self.fail(item, error, placed);
                    }
                    continue;
                }
            };
            for item in items {
                match self.disk.temps.place(&item.key, &directory, &item.path, item.old).doing(PLACE) {
                    Ok(()) => {
                        placed.files += 1;
                        placed.bytes += item.bytes();
                        placed.items.push(Arc::clone(item));
                    }
                    Err(error) => self.fail(item, error, placed),
                }
            }
            if is_durable && !turn.is_over() {
                // A name that is not durable is the file's absence after a crash, and then it is fetched again.
                let _ = turn.sync(|| fsync(directory));
            }
        }
        if is_durable {
            self.choice.end(&turn, || sync_all(&file_systems).is_ok());
            let _ = self.disk.journal.sync();
        }
    }

    /// Syncs files; returns those that succeeded.
    fn sync(
        &mut self,
        items: Vec<Arc<TakenFile>>,
        touched: &BTreeMap<usize, Arc<TakenFile>>,
        file_systems: &[Arc<FileSystem>],
        placed: &mut Placed,
    ) -> Vec<Arc<TakenFile>> {
        let on_disk = |item: &&Arc<TakenFile>| !self.is_in_memory(item);
        let count = items.iter().chain(touched.values()).filter(on_disk).count();
        let mut turn = self.choice.begin(count);
        for item in touched.values().filter(on_disk) {
            if !turn.is_over() {
                // It may be complete and at its place by now; if not, the thread that completes it will see the error.
                let _ = turn.sync(|| self.disk.temps.read(&item.key).and_then(fdatasync));
            }
        }
        let mut synced = Vec::with_capacity(items.len());
        let mut rest = items.into_iter();
        while let Some(item) = (!turn.is_over()).then(|| rest.next()).flatten() {
            match if self.is_in_memory(&item) { Ok(()) } else { turn.sync(|| self.sync_file(&item)) } {
                Ok(()) => synced.push(item),
                Err(error) => self.fail(&item, error, placed),
            }
        }
        let is_synced = self.choice.end(&turn, || sync_all(file_systems).is_ok());
        for item in rest {
            match if is_synced || self.is_in_memory(&item) { Ok(()) } else { self.sync_file(&item) } {
                Ok(()) => synced.push(item),
                Err(error) => self.fail(&item, error, placed),
            }
        }
        synced
    }

    fn sync_file(&self, item: &TakenFile) -> Result<(), DiskError> {
        match self.disk.temps.read(&item.key).and_then(fsync).doing(SYNC) {
            // A mode without read permission is not an error: sync the whole file system then.
            Err(DiskError { error: Errno::ACCESS, .. }) if self.sync_around(item).is_ok() => Ok(()),
            synced => synced,
        }
    }

    /// The file systems of these files, except those without storage.
    fn file_systems<'a>(&self, items: impl Iterator<Item = &'a Arc<TakenFile>>) -> Vec<Arc<FileSystem>> {
        let mut all: Vec<Arc<FileSystem>> = Vec::new();
        for file_system in items.filter_map(|item| self.disk.temps.file_system(&item.key)) {
            if !file_system.is_in_memory && !all.iter().any(|known| Arc::ptr_eq(known, &file_system)) {
                all.push(file_system);
            }
        }
        all
    }

    fn is_in_memory(&self, item: &TakenFile) -> bool {
        self.disk.temps.file_system(&item.key).is_some_and(|around| around.is_in_memory)
    }

    fn sync_around(&self, item: &TakenFile) -> rustix::io::Result<()> {
        self.disk.temps.file_system(&item.key).map_or(Err(Errno::NOENT), |around| syncfs(&around.directory))
    }

    fn fail(&self, item: &Arc<TakenFile>, error: DiskError, placed: &mut Placed) {
        if item.fail() {
            self.disk.discard(item);
            placed.failed.push((Arc::clone(item), error.into()));
        }
    }
}

fn sync_all(file_systems: &[Arc<FileSystem>]) -> rustix::io::Result<()> {
    file_systems.iter().try_for_each(|around| syncfs(&around.directory))
}
