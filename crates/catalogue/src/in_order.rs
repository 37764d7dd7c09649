//! Parallel execution with results in order: of the cases of a scenario file, and of the runs of experiments.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Default number of threads: `RAYON_NUM_THREADS`, or one per processor that this process may use.
pub fn threads() -> usize {
    let said = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse().ok());
    said.filter(|threads| *threads > 0).unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
}

/// Executes the pieces `0..count` on `threads` threads, each of which takes the next free piece, while `collect`
/// receives their results on this thread.
///
/// If the system gives fewer threads, those do all the work; if it gives none, this thread does a piece whenever
/// `collect` waits for one.
///
/// After an error no further piece starts. All earlier ones have started, so the first error in order is the same on
/// any number of threads. When `collect` returns, running pieces finish without being collected, and no other starts.
///
/// # Panics
/// With the panic of `work`, if it panics.
pub fn in_order<T: Send, E: Send, R>(
    count: usize,
    threads: usize,
    work: impl Fn(usize) -> Result<T, E> + Sync,
    collect: impl FnOnce(&mut InOrder<'_, T, E>) -> R,
) -> R {
    begin_with(count, threads, thread::Builder::new, work, collect)
}

/// [`in_order`] with a given way to start threads.
fn begin_with<T: Send, E: Send, R>(
    count: usize,
    threads: usize,
    builder: impl Fn() -> thread::Builder,
    work: impl Fn(usize) -> Result<T, E> + Sync,
    collect: impl FnOnce(&mut InOrder<'_, T, E>) -> R,
) -> R {
    let next = &AtomicUsize::new(0);
    let work = &work;
    let stop = || next.store(count, Ordering::Relaxed);
    let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|piece| *piece < count);
    thread::scope(|scope| {
        let (sender, outcomes) = mpsc::channel();
        let begin = |_| {
            let sender = sender.clone();
            let works = move || {
                while let Some(piece) = take() {
                    let outcome = catch_unwind(AssertUnwindSafe(|| work(piece))).unwrap_or_else(|cause| {
                        stop();
                        resume_unwind(cause)
                    });
                    if outcome.is_err() {
                        stop();
                    }
                    if sender.send((piece, outcome)).is_err() {
                        // The receiver is gone.
                        stop();
                    }
                }
            };
            builder().spawn_scoped(scope, works).ok()
        };
        let threads: Vec<_> = (0..threads.clamp(1, count.max(1))).map_while(begin).collect();
        // The channel closes at the end of the last thread.
        drop(sender);
        let mut here = || {
            let piece = take()?;
            let outcome = work(piece);
            if outcome.is_err() {
                stop();
            }
            Some((piece, outcome))
        };
        let here: Option<&mut NextPiece<'_, T, E>> = if threads.is_empty() { Some(&mut here) } else { None };
        let mut outcomes = InOrder { outcomes, here, early: BTreeMap::new(), next: 0 };
        let collected = collect(&mut outcomes);
        // Without a receiver the threads stop.
        drop(outcomes);
        // A panic continues here with its cause: callers stop long work that way.
        if let Some(cause) = threads.into_iter().filter_map(|thread| thread.join().err()).reduce(|first, _| first) {
            resume_unwind(cause);
        }
        collected
    })
}

/// Executes the next piece, and returns its result.
type NextPiece<'a, T, E> = dyn FnMut() -> Option<(usize, Result<T, E>)> + 'a;

/// The outcomes of [`in_order`], as they arrive.
pub struct InOrder<'a, T, E> {
    outcomes: Receiver<(usize, Result<T, E>)>,
    /// Executes the next piece on this thread, if there is no other.
    here: Option<&'a mut NextPiece<'a, T, E>>,
    /// Outcomes that arrived before an earlier one.
    early: BTreeMap<usize, Result<T, E>>,
    next: usize,
}

/// The results of all pieces, in order, or the first error.
pub fn collected<T: Send, E: Send>(
    count: usize,
    threads: usize,
    work: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    in_order(count, threads, work, |outcomes| {
        std::iter::from_fn(|| outcomes.wait()).map(|(_, outcome)| outcome).collect()
    })
}

/// Result of [`InOrder::hear`].
#[derive(Debug, PartialEq, Eq)]
pub enum Heard<T, E> {
    /// The next piece in order, and its result.
    Next(usize, Result<T, E>),
    /// No result within the time.
    Silence,
    /// All pieces are finished.
    End,
}

impl<T, E> InOrder<'_, T, E> {
    /// The next outcome in order; waits for it, at most `patience`.
    pub fn hear(&mut self, patience: Duration) -> Heard<T, E> {
        loop {
            if let Some(outcome) = self.early.remove(&self.next) {
                self.next += 1;
                return Heard::Next(self.next - 1, outcome);
            }
            let heard = match &mut self.here {
                Some(next) => next().ok_or(RecvTimeoutError::Disconnected),
                None => self.outcomes.recv_timeout(patience),
            };
            match heard {
                Ok((piece, outcome)) => {
                    self.early.insert(piece, outcome);
                }
                Err(RecvTimeoutError::Timeout) => return Heard::Silence,
                Err(RecvTimeoutError::Disconnected) => return Heard::End,
            }
        }
    }

    /// The next outcome in order; waits for it. `None` if all are finished.
    pub fn wait(&mut self) -> Option<(usize, Result<T, E>)> {
        loop {
            match self.hear(Duration::MAX) {
                Heard::Next(piece, outcome) => return Some((piece, outcome)),
                Heard::Silence => {}
                Heard::End => return None,
            }
        }
    }

    /// Outcomes that have arrived out of order, while an earlier one is missing.
    pub fn early(&mut self) -> BTreeMap<usize, Result<T, E>> {
        self.early.extend(self.outcomes.try_iter());
        std::mem::take(&mut self.early)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    fn all<T, E>(outcomes: &mut InOrder<'_, T, E>) -> Vec<(usize, Result<T, E>)> {
        std::iter::from_fn(|| outcomes.wait()).collect()
    }

    #[test]
    fn in_order__is_the_same_on_any_number_of_threads() {
        let squares: Vec<_> = (0..50).map(|n| (n, Ok::<_, ()>(n * n))).collect();
        for threads in [0, 1, 2, 7, 100] {
            assert_eq!(in_order(50, threads, |n| Ok(n * n), all), squares, "{threads} threads");
        }
        assert!(in_order(0, 2, Ok::<_, ()>, all).is_empty());
    }

    #[test]
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method is not general over its lifetime")]
    fn in_order__runs_on_this_thread_without_others() {
        // No system has room for such a stack.
        let none = || thread::Builder::new().stack_size(1 << 60);
        let here = thread::current().id();
        let work = |n: usize| {
            assert_eq!(thread::current().id(), here);
            if n < 5 { Ok(n * n) } else { Err(n) }
        };
        let until_the_error = [(0, Ok(0)), (1, Ok(1)), (2, Ok(4)), (3, Ok(9)), (4, Ok(16)), (5, Err(5))];
        assert_eq!(begin_with(50, 2, none, work, all), until_the_error);
        assert_eq!(begin_with(usize::MAX / 2, 2, none, Ok::<_, ()>, |outcomes| outcomes.wait()), Some((0, Ok(0))));
        assert!(begin_with(0, 2, none, Ok::<_, ()>, all).is_empty());
    }

    #[test]
    fn in_order__returns_results_up_to_the_first_error() {
        // Piece 0 ends after the failure of piece 1 was received.
        let (heard, waits) = channel();
        let waits = Mutex::new(waits);
        let work = |piece| match piece {
            0 => waits.lock().unwrap().recv().map_err(|_| "never"),
            1 => Err("one"),
            _ => Ok(()),
        };
        let outcomes = in_order(1000, 2, work, |outcomes| {
            while !outcomes.early.contains_key(&1) {
                assert_eq!(outcomes.hear(Duration::from_millis(1)), Heard::Silence);
            }
            heard.send(()).unwrap();
            all(outcomes)
        });
        assert_eq!(outcomes, [(0, Ok(())), (1, Err("one"))]);
    }

    #[test]
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method is not general over its lifetime")]
    fn in_order__starts_no_pieces_without_a_receiver() {
        // Otherwise this would never end.
        let first = in_order(usize::MAX / 2, 2, Ok::<_, ()>, |outcomes| outcomes.wait());
        assert_eq!(first, Some((0, Ok(0))));
    }

    #[test]
    fn in_order__propagates_panics() {
        let work = |piece| if piece == 5 { resume_unwind(Box::new("the cause")) } else { Ok::<usize, ()>(piece) };
        let cause = catch_unwind(|| in_order(usize::MAX / 2, 2, work, all)).unwrap_err();
        assert_eq!(cause.downcast_ref(), Some(&"the cause"));
    }

    #[test]
    fn early__has_results_that_wait_for_an_earlier_one() {
        let (go_on, waits) = channel::<()>();
        let waits = Mutex::new(waits);
        let work = |piece: usize| {
            if piece == 0 {
                let _ = waits.lock().unwrap().recv();
            }
            Ok::<_, ()>(piece)
        };
        in_order(3, 2, work, |outcomes| {
            let mut early = BTreeMap::new();
            while early.len() < 2 {
                assert_eq!(outcomes.hear(Duration::from_millis(1)), Heard::Silence);
                early.extend(outcomes.early());
            }
            assert_eq!(early, [(1, Ok(1)), (2, Ok(2))].into());
            drop(go_on);
            assert_eq!(outcomes.wait(), Some((0, Ok(0))));
        });
    }
}
