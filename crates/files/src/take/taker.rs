//! The coordinator of a transfer at its taking end.
//!
//! ```text
//! network thread: Sink --parcels--> Worker (several) --files--> Group
//!                  ^  \---news---\     |                          |
//!                  |              v    v                          v
//!                  \--expected-- Taker <----------news------------/
//! ```
//!
//! The taker reads the manifest, plans what is to be fetched, and asks for it.

mod comparisons;
mod concluding;
mod former;
mod last_heard;
mod listing;
mod open_parcels;
mod parts;
mod reports;
mod state;

use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, unbounded};
use fairwave_host::Session;
use fairwave_proto::codec::CloseReason;

use crate::format::segments::SegmentReader;
use crate::take::disk::disk_threads::DiskThreads;
use crate::take::disk::free_space::FreeSpace;
use crate::take::fetch::fetch_window::{FetchWindow, window};
use crate::take::fetch::pool::BufferPool;
use crate::take::fetch::results_feed::ResultsFeed;
use crate::take::fetch::taking_end::TakingEnd;
use crate::take::list::plan::TakePlan;
use crate::take::news::TakeNews;
use crate::take::options::TakeOptions;
use crate::take::resume::key::TemporaryKey;
use crate::transfer::error::TransferError;
use crate::transfer::ledger::{Ledger, Transfer};
use crate::transfer::outcome::{Ended, Outcome};
use crate::transfer::progress::WaitsFor;

use comparisons::Comparisons;
use last_heard::LastHeard;
use open_parcels::OpenParcels;
use state::TakeState;

/// Coordinates a transfer at the taker: requests the plan's blocks, and handles the results.
///
/// Its code is here and in three more files: `listing` reads the giver's list and starts, `reports` handles the reports
/// of the disk threads, `concluding` ends it.
struct Taker {
    options: TakeOptions,
    ledger: Ledger,
    news: Receiver<TakeNews>,
    state: TakeState,
    session: Option<Session>,
    /// The end of its session, if it ended before the transfer did.
    closed: Option<(CloseReason, bool)>,
    /// The giver's list, as far as it is here.
    list: Option<SegmentReader>,
    /// Names its temporaries, once they are there.
    transfer: Option<TemporaryKey>,
    plan: TakePlan,
    flow: FetchWindow,
    parcels: OpenParcels,
    last_heard: LastHeard,
    comparisons: Comparisons,
    threads: DiskThreads,
    /// Once something did not fit onto the disk.
    free: Option<FreeSpace>,
    feed: Option<ResultsFeed>,
}

/// Something is looked after this often in any case.
const TICK: Duration = Duration::from_millis(100);

/// A taker, and the handler of its session.
pub(crate) fn take(options: TakeOptions) -> Result<(TakingEnd, Transfer), TransferError> {
    let tells = options.tells;
    take_later(tells, move || Ok(options))
}

/// Takes with options that its own thread determines, since that reads the destination. On an error the session is
/// refused. `tells`: see [`TakeOptions::tells`].
pub(crate) fn take_later(
    tells: bool,
    options: impl FnOnce() -> Result<TakeOptions, TransferError> + Send + 'static,
) -> Result<(TakingEnd, Transfer), TransferError> {
    let ledger = Ledger::default();
    let (news_in, news) = unbounded();
    let (expected, expects) = unbounded();
    let (work, jobs) = unbounded();
    let pool = BufferPool::of_process();
    let feed = tells.then(ResultsFeed::default);
    let sink =
        TakingEnd::new(ledger.clone(), expects.clone(), work.clone(), news_in.clone(), pool.clone(), feed.clone());
    let transfer = ledger.transfer();
    let run = move || {
        let options = match options() {
            Ok(options) => options,
            Err(error) => {
                // Without its own senders it notices when the handler is dropped.
                drop((news_in, work, jobs, expected, expects));
                return refuse(&ledger, &news, &error);
            }
        };
        let plan = TakePlan::new(ledger.clone(), &options);
        let flow = FetchWindow::new(options.memory.get(), options.holder).packing(options.compress);
        let taker = Taker {
            options,
            ledger,
            news,
            state: TakeState::Opening,
            session: None,
            closed: None,
            list: None,
            transfer: None,
            plan,
            flow,
            parcels: OpenParcels::new(expected, expects, pool.clone()),
            last_heard: LastHeard::new(),
            comparisons: Comparisons::default(),
            threads: DiskThreads::new(work, jobs, news_in, pool),
            free: None,
            feed,
        };
        taker.run();
    };
    let thread = thread::Builder::new().name("fairwave-take".to_owned());
    thread.spawn(run).map_err(TransferError::Thread)?;
    Ok((sink, transfer))
}

/// The destination cannot be used: refuses the peer when its session opens.
fn refuse(ledger: &Ledger, news: &Receiver<TakeNews>, error: &TransferError) {
    while let Ok(news) = news.recv() {
        match news {
            TakeNews::Opened(session) => session.close(CloseReason::Refused(error.refuses())),
            TakeNews::Closed { .. } => break,
            _ => {}
        }
    }
    ledger.end(Outcome::empty(Ended::Failed(error.to_string())));
}

impl Taker {
    fn run(mut self) {
        let ended = match self.fetch() {
            Ok(()) => self.conclude(),
            Err(ended) => {
                self.break_off(&ended);
                ended
            }
        };
        let outcome = self.plan.end(ended);
        if let (Some(admission), Some(transfer)) = (&self.options.admission, &self.transfer) {
            admission.leave(transfer);
        }
        self.ledger.end(outcome);
    }

    /// Until every file is at its place or failed; or until it cannot go on.
    fn fetch(&mut self) -> Result<(), Ended> {
        loop {
            if let Ok(news) = self.news.recv_timeout(TICK) {
                self.on_news(news)?;
            }
            while let Ok(news) = self.news.try_recv() {
                self.on_news(news)?;
            }
            self.read_manifest().map_err(|error| self.explain(&error))?;
            if self.threads.has_lost_one() {
                return Err(Ended::Failed("a thread that writes files panicked: please report its message".to_owned()));
            }
            self.hand_out();
            self.ask();
            if self.state.is_listed() && self.plan.unresolved() == 0 {
                self.state = TakeState::Concluding;
                return Ok(());
            }
            self.flush();
            self.listen();
            self.ledger.tally().wait_for(self.waits_for());
        }
    }

    fn on_news(&mut self, news: TakeNews) -> Result<(), Ended> {
        match news {
            TakeNews::Opened(session) => {
                if self.options.limit.is_some() {
                    session.set_ceiling(self.options.limit);
                }
                self.list = Some(SegmentReader::new(session.secret("manifest")));
                self.session = Some(session);
            }
            TakeNews::Manifest(offset, bytes) => {
                if let Some(list) = &mut self.list {
                    list.on_data(offset, &bytes);
                }
            }
            TakeNews::ManifestVoid(range) => {
                if let Some(list) = &mut self.list {
                    list.on_void(&range);
                }
            }
            TakeNews::Arrived(bytes) => self.flow.on_arrived(bytes),
            TakeNews::Worked(report) => self.on_worked(report),
            TakeNews::Placed(placed) => self.on_placed(placed),
            TakeNews::Closed { reason, by_peer, open } => {
                self.parcels.on_closed(open);
                self.ledger.close(reason, by_peer);
                let is_stopped = self.ledger.is_stopped();
                return Err(if is_stopped { Ended::Stopped } else { Ended::from_close(reason, by_peer) });
            }
        }
        Ok(())
    }

    /// Gives the workers and the queue what was planned.
    fn hand_out(&mut self) {
        if self.options.look.is_dry {
            // Blocks that a real run would fetch count as done.
            let checks = self.plan.count_as_done(self.comparisons.files());
            self.comparisons.begin(checks.len() as u64);
            for wanted in checks {
                self.flow.want(wanted);
            }
            return;
        }
        if self.plan.has_wanted() {
            self.plan.take_wanted().for_each(|wanted| self.flow.want(wanted));
            self.drop_what_does_not_fit();
        }
        for job in self.plan.jobs(self.state.is_listed() || self.flow.is_idle()) {
            self.threads.send(job);
        }
        // Few at a time, so that what comes does not wait for what need not.
        while let Some(job) = self.threads.takes_holes().then(|| self.plan.next_segment()).flatten() {
            self.threads.send(job);
        }
        while let Some(job) = self.threads.takes_holes().then(|| self.plan.next_hollow()).flatten() {
            self.threads.send(job);
        }
    }

    /// Asks for as much as is good.
    fn ask(&mut self) {
        let Some(session) = &self.session else { return };
        let window = window(session);
        while let Some(parcel) = self.flow.next(window) {
            self.state.go_on();
            self.ledger.tally().recall(self.parcels.ask(session, parcel));
        }
    }

    /// When nothing more can come, the group need not wait for it.
    fn flush(&mut self) {
        let is_still = self.flow.is_idle() && !self.threads.is_busy() && self.plan.unresolved() > 0;
        if self.state == TakeState::Fetching && is_still && self.threads.flush() {
            self.state = TakeState::Flushing;
        }
    }

    /// Notes whether anything comes.
    fn listen(&mut self) {
        let bytes = self.session.as_ref().map_or(0, |session| session.stats().received_bytes);
        self.last_heard.listen(bytes, self.flow.is_on_way());
    }

    fn waits_for(&self) -> Option<WaitsFor> {
        if self.flow.is_comparing() {
            Some(WaitsFor::Comparing)
        } else if self.flow.is_held_by_disk() || (self.threads.is_busy() && !self.flow.is_on_way()) {
            Some(WaitsFor::Disk)
        } else if self.flow.is_on_way() {
            self.last_heard.is_quiet().then_some(WaitsFor::Peer)
        } else if !self.state.is_listed() {
            Some(WaitsFor::List)
        } else {
            (self.plan.unresolved() > 0).then_some(WaitsFor::Sync)
        }
    }
}

#[cfg(test)]
mod tests;
