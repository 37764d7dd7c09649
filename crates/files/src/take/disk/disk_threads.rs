//! The threads that a taker has at its disk.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Receiver, Sender, unbounded};
use tracing::Span;

use crate::format::blocks::HashKey;
use crate::take::disk::committer::{Committer, GroupJob};
use crate::take::disk::compare::ComparingReader;
use crate::take::disk::disk_state::{DiskJob, DiskState};
use crate::take::disk::durable::Durable;
use crate::take::disk::tree::Tree;
use crate::take::disk::worker::Worker;
use crate::take::disk::worker_slots::{MAX_WORKERS, WorkerSlots, worker_count};
use crate::take::fetch::pool::BufferPool;
use crate::take::news::TakeNews;

/// The threads that a taker has at its disk, from when it is known what they are for, and the jobs that they have.
pub(crate) struct DiskThreads {
    /// `None` once there is no more work.
    work: Option<Sender<DiskJob>>,
    jobs: Receiver<DiskJob>,
    news: Sender<TakeNews>,
    pool: BufferPool,
    writers: Option<Writers>,
    /// Of a dry run: the only thread.
    reader: Option<JoinHandle<()>>,
    /// Jobs that are with the workers, parcels aside.
    open: usize,
    /// Of those, jobs about holes or chunks.
    open_of_holes: usize,
}

/// Threads that write.
struct Writers {
    disk: Arc<DiskState>,
    group: Sender<GroupJob>,
    committer: JoinHandle<()>,
    workers: Vec<JoinHandle<()>>,
}

impl DiskThreads {
    /// One without threads. Jobs are sent by `work` and received from `jobs`; results go to `news`.
    pub(crate) fn new(
        work: Sender<DiskJob>,
        jobs: Receiver<DiskJob>,
        news: Sender<TakeNews>,
        pool: BufferPool,
    ) -> Self {
        let (writers, reader) = (None, None);
        Self { work: Some(work), jobs, news, pool, writers, reader, open: 0, open_of_holes: 0 }
    }

    /// Starts the threads that write.
    pub(crate) fn start_writers(
        &mut self,
        disk: DiskState,
        durable: Durable,
        slots: Option<&Arc<WorkerSlots>>,
        span: &Span,
    ) -> io::Result<()> {
        let disk = Arc::new(disk);
        let (group, grouped) = unbounded();
        let committer = Committer::new(Arc::clone(&disk), durable, grouped, self.news.clone());
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        let span = span.clone();
        let committer = named("fairwave-place").spawn(move || span.in_scope(|| committer.run()))?;
        let count = worker_count();
        let mut workers = Vec::with_capacity(count);
        for _ in 0..count {
            let (disk, jobs, group) = (Arc::clone(&disk), self.jobs.clone(), group.clone());
            let (news, pool, slots) = (self.news.clone(), self.pool.clone(), slots.cloned());
            let worker = Worker { disk, jobs, slots, group, news, pool };
            workers.push(named("fairwave-disk").spawn(move || worker.run())?);
        }
        self.writers = Some(Writers { disk, group, committer, workers });
        Ok(())
    }

    /// Starts the one that compares files in a dry run.
    pub(crate) fn start_reader(&mut self, tree: Arc<Tree>, hashes: HashKey) -> io::Result<()> {
        let (jobs, news, pool) = (self.jobs.clone(), self.news.clone(), self.pool.clone());
        self.reader = Some(ComparingReader { tree, hashes, jobs, news, pool }.start()?);
        Ok(())
    }

    /// The state that the writing threads share, while they run.
    pub(crate) fn disk(&self) -> Option<&DiskState> {
        self.writers.as_ref().map(|writers| &*writers.disk)
    }

    /// Sends the workers a job that is not a parcel.
    pub(crate) fn send(&mut self, job: DiskJob) {
        self.open += 1;
        self.open_of_holes += usize::from(matches!(job, DiskJob::Holes(_) | DiskJob::Cut(..)));
        if let Some(work) = &self.work {
            let _ = work.send(job);
        }
    }

    /// Counts a finished job that was not a parcel.
    pub(crate) fn on_done(&mut self, is_of_holes: bool) {
        self.open = self.open.saturating_sub(1);
        self.open_of_holes = self.open_of_holes.saturating_sub(usize::from(is_of_holes));
    }

    /// Whether the workers have a job that is not a parcel.
    pub(crate) fn is_busy(&self) -> bool {
        self.open > 0
    }

    /// Whether a job about holes or chunks would start soon: received data do not wait for them.
    pub(crate) fn takes_holes(&self) -> bool {
        self.open_of_holes < MAX_WORKERS
    }

    /// Whether a thread has ended before its work was: it panicked, and what it had will never be reported.
    pub(crate) fn has_lost_one(&self) -> bool {
        let writers = self.writers.as_ref();
        writers.is_some_and(|writers| {
            writers.committer.is_finished() || writers.workers.iter().any(JoinHandle::is_finished)
        }) || self.reader.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Stops the committer from waiting for more. Returns whether it received that.
    pub(crate) fn flush(&self) -> bool {
        self.writers.as_ref().is_some_and(|writers| writers.group.send(GroupJob::Flush).is_ok())
    }

    /// The threads finish their work and end. Returns the writing threads' shared state, if there were any.
    pub(crate) fn stop_threads(&mut self) -> Option<Arc<DiskState>> {
        if let Some(reader) = self.reader.take() {
            if let Some(work) = &self.work {
                let _ = work.send(DiskJob::Leave);
            }
            // A thread that panicked has already reported it.
            let _ = reader.join();
        }
        let Writers { disk, group, committer, workers } = self.writers.take()?;
        if let Some(work) = self.work.take() {
            for _ in &workers {
                let _ = work.send(DiskJob::Leave);
            }
        }
        // A thread that panicked has already reported it.
        for worker in workers {
            let _ = worker.join();
        }
        let _ = group.send(GroupJob::Leave);
        let _ = committer.join();
        // All writes have ended.
        let given_back = disk.temps.give_back();
        let _ = disk.journal.append(&[], disk.temps.stamps(given_back));
        Some(disk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairwave_testing::wait_for;

    #[test]
    fn has_lost_one__if_a_thread_panicked() {
        let (work, jobs) = unbounded::<DiskJob>();
        let (news, _heard) = unbounded();
        let mut threads = DiskThreads::new(work, jobs.clone(), news, BufferPool::of_process());
        let waits = move || assert!(jobs.recv().is_err(), "a job that it cannot do");
        threads.reader = Some(thread::spawn(waits));
        assert!(!threads.has_lost_one());
        threads.send(DiskJob::Leave);
        wait_for("its end", || threads.has_lost_one());
    }
}
