//! Every order in which two threads may see each other's words, by loom: the whole protocol between a process and the
//! daemon, with rows of two values.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;

use super::{read, write};
use crate::word::{Load, Store};

impl Load for AtomicU64 {
    fn load(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }

    fn fence_acquire() {
        fence(Ordering::Acquire);
    }
}

impl Store for AtomicU64 {
    fn store(&self, value: u64) {
        self.store(value, Ordering::Relaxed);
    }

    fn store_release(&self, value: u64) {
        self.store(value, Ordering::Release);
    }

    fn fence_release() {
        fence(Ordering::Release);
    }
}

type SharedRow = Arc<[AtomicU64; 3]>;

/// All orders in which the threads are interrupted at most three times: more find nothing more here, and take minutes.
fn model(run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(run);
}

fn row() -> SharedRow {
    Arc::new([0, 0, 0].map(AtomicU64::new))
}

#[test]
fn read__in_every_order_is_one_write() {
    model(|| {
        let row = row();
        let writer = {
            let row = row.clone();
            thread::spawn(move || {
                write(&row[..], &[1, 10]);
                write(&row[..], &[2, 20]);
            })
        };
        if let Some((sequence, [first, second])) = read::<2, _>(&row[..]) {
            assert_eq!((first, second), (sequence / 2, sequence / 2 * 10));
        }
        writer.join().unwrap();
        assert_eq!(read(&row[..]), Some((4, [2, 20])));
    });
}

/// The daemon writes a grant, and then the tick report: a reader that sees the new tick report finds the grant of that
/// tick or a later one.
#[test]
fn read__of_a_grant_behind_its_tick_report_is_no_older() {
    model(|| {
        let (grant, tick_report) = (row(), row());
        let daemon = {
            let (grant, tick_report) = (grant.clone(), tick_report.clone());
            thread::spawn(move || {
                write(&grant[..], &[1, 10]);
                write(&tick_report[..], &[1, 1]);
            })
        };
        if let Some((_, [1, 1])) = read::<2, _>(&tick_report[..]) {
            assert_eq!(read(&grant[..]), Some((2, [1, 10])));
        }
        daemon.join().unwrap();
    });
}

/// A process dies in the middle of a write: a reader sees the previous values, or none, and it ends.
#[test]
fn read__of_a_writer_that_dies_is_the_former_value_or_nothing() {
    model(|| {
        let row = row();
        write(&row[..], &[1, 10]);
        let process = {
            let row = row.clone();
            thread::spawn(move || {
                row[0].store(3, Ordering::Relaxed);
                AtomicU64::fence_release();
                row[1].store(2, Ordering::Relaxed);
            })
        };
        if let Some((sequence, values)) = read(&row[..]) {
            assert_eq!((sequence, values), (2, [1, 10]));
        }
        process.join().unwrap();
        assert_eq!(read::<2, _>(&row[..]), None);
        // The next one that has the row writes it whole.
        write(&row[..], &[3, 30]);
        assert_eq!(read(&row[..]), Some((4, [3, 30])));
    });
}

/// A row goes from one session to the next while the daemon grants: by its generation a process knows whose grant it is.
#[test]
fn read__of_a_grant_for_the_session_before_is_known_by_its_generation() {
    model(|| {
        let (asked, granted) = (row(), row());
        write(&asked[..], &[1, 10]);
        let daemon = {
            let (asked, granted) = (asked.clone(), granted.clone());
            thread::spawn(move || {
                if let Some((_, [generation, measured])) = read(&asked[..]) {
                    write(&granted[..], &[generation, measured + 1]);
                }
            })
        };
        write(&asked[..], &[2, 20]);
        if let Some((_, [2, grant])) = read(&granted[..]) {
            assert_eq!(grant, 21, "a grant of generation 1 must not be taken for one of 2");
        }
        daemon.join().unwrap();
    });
}

/// Without the fence of the writer a reader may take half of a write for a whole one: the model does see such orders.
#[test]
#[should_panic(expected = "a mixture")]
fn loom__finds_a_row_without_its_fence() {
    model(|| {
        let row = row();
        let writer = {
            let row = row.clone();
            thread::spawn(move || {
                row[0].store(1, Ordering::Relaxed);
                row[1].store(1, Ordering::Relaxed);
                row[2].store(10, Ordering::Relaxed);
                row[0].store(2, Ordering::Release);
            })
        };
        if let Some((_, [first, second])) = read(&row[..]) {
            assert!(second == first * 10, "a mixture");
        }
        writer.join().unwrap();
    });
}
