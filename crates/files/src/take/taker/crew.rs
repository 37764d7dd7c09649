//! How a taker hires the threads at its disk, and dismisses them.

use std::sync::Arc;
use std::thread;

use crossbeam_channel::unbounded;
use tracing::Span;

use super::super::crew::{Crew, MOST_WORKERS};
use super::super::desk::{Desk, Job};
use super::super::group::{Group, GroupJob};
use super::super::news::News;
use super::super::worker::Worker;
use super::Taker;

impl Taker {
    /// Starts them.
    pub(super) fn hire(&self, desk: &Arc<Desk>) -> std::io::Result<Crew> {
        let (group, grouped) = unbounded();
        let grouper = Group::new(Arc::clone(desk), self.options.durable, grouped, self.news_in.clone());
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        let span = self.session.as_ref().map_or_else(Span::none, |(session, _)| session.span().clone());
        let mut threads = vec![named("fairwave-place").spawn(move || span.in_scope(|| grouper.run()))?];
        let count = thread::available_parallelism().map_or(1, |count| count.get().clamp(1, MOST_WORKERS));
        for _ in 0..count {
            let (desk, jobs, group) = (Arc::clone(desk), self.jobs.clone(), group.clone());
            let worker = Worker { desk, jobs, group, news: self.news_in.clone(), pool: self.pool.clone() };
            threads.push(named("fairwave-disk").spawn(move || worker.run())?);
        }
        Ok(Crew { desk: Arc::clone(desk), group, threads })
    }

    /// The threads at the disk do what they have, and end.
    pub(super) fn dismiss(&mut self) -> Option<Crew> {
        if let Some(reader) = self.reader.take() {
            if let Some(work) = &self.work {
                let _ = work.send(Job::Leave);
            }
            // A thread that panicked has said so itself.
            let _ = reader.join();
        }
        let Crew { desk, group, threads } = self.crew.take()?;
        if let Some(work) = self.work.take() {
            for _ in &threads {
                let _ = work.send(Job::Leave);
            }
        }
        let mut threads = threads.into_iter();
        let grouper = threads.next();
        // A thread that panicked has said so itself.
        threads.for_each(|thread| _ = thread.join());
        let _ = group.send(GroupJob::Leave);
        if let Some(grouper) = grouper {
            let _ = grouper.join();
        }
        // Nobody writes any more.
        let given_back = desk.temps.give_back();
        let _ = desk.journal.append(&[], desk.temps.stamps(given_back));
        for news in self.news.try_iter().collect::<Vec<_>>() {
            match news {
                News::Worked(report) => self.on_worked(report),
                News::Placed(placed) => self.on_placed(placed),
                News::Closed { open, .. } => self.open = open,
                _ => {}
            }
        }
        Some(Crew { desk, group, threads: Vec::new() })
    }
}
