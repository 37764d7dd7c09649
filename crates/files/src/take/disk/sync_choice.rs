//! Whether to make files durable one by one, or with all that their file system holds.

use std::time::{Duration, Instant};

/// Chooses the cheaper way to sync by the recent cost of each.
///
/// For many small files one `syncfs` is cheaper by an order of magnitude; but it also waits for the writes of other
/// processes, which can be any amount.
#[derive(Debug, Default)]
pub(crate) struct SyncChoice {
    /// Recent seconds per file, one by one.
    each_s: Option<f64>,
    /// Recent seconds of all together.
    together_s: Option<f64>,
}

/// A number of files that are being synced.
#[derive(Debug)]
pub(crate) struct SyncTurn {
    /// Cost of syncing together: while the rest is expected to cost more one by one, it is synced together.
    together_s: f64,
    count: usize,
    done: usize,
    took: Duration,
}

/// Max files or directories that are synced one by one, whatever that takes.
const FEW: usize = 16;
/// Files that show what one by one costs.
const PROBES: usize = 4;
/// An expensive way is tried again when its cost has decayed to this share.
const FORGETS: f64 = 0.95;

impl SyncChoice {
    /// This many files or directories are to be synced.
    pub(crate) fn begin(&self, count: usize) -> SyncTurn {
        let together_s = match self.together_s {
            _ if count <= FEW => f64::INFINITY,
            // A cost that is not known yet is taken for none.
            Some(together_s) if self.each_s.unwrap_or(0.0) * count as f64 <= together_s => together_s,
            _ => 0.0,
        };
        SyncTurn { together_s, count, done: 0, took: Duration::ZERO }
    }

    /// Ends a turn: `sync_all` is called if not all were synced one by one, and syncs the rest. Returns whether all are
    /// synced. A `sync_all` that fails is not called again.
    pub(crate) fn end(&mut self, turn: &SyncTurn, sync_all: impl FnOnce() -> bool) -> bool {
        if turn.done > 0 {
            self.on_one_by_one(turn.done, turn.took);
        }
        if !turn.is_over() {
            return true;
        }
        let since = Instant::now();
        let is_synced = sync_all();
        self.on_together(since.elapsed());
        if !is_synced {
            self.together_s = Some(f64::INFINITY);
        }
        is_synced
    }

    fn on_one_by_one(&mut self, count: usize, took: Duration) {
        self.each_s = Some(took.as_secs_f64() / count as f64);
        self.together_s = self.together_s.map(|cost| cost * FORGETS);
    }

    fn on_together(&mut self, took: Duration) {
        self.together_s = Some(took.as_secs_f64());
        self.each_s = self.each_s.map(|cost| cost * FORGETS);
    }
}

impl SyncTurn {
    /// Whether the rest is to be synced together.
    pub(crate) fn is_over(&self) -> bool {
        let rest = self.count.saturating_sub(self.done) as f64;
        let each_s = self.took.as_secs_f64() / self.done.max(1) as f64;
        rest > 0.0 && (self.together_s == 0.0 || (self.done >= PROBES && rest * each_s > self.together_s))
    }

    /// Syncs one of them by `sync`.
    pub(crate) fn sync<R>(&mut self, sync: impl FnOnce() -> R) -> R {
        let since = Instant::now();
        let done = sync();
        self.on_done(since.elapsed());
        done
    }

    fn on_done(&mut self, took: Duration) {
        self.done += 1;
        self.took += took;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Syncs this many files at such costs, and returns those that were synced one by one.
    fn sync(choice: &mut SyncChoice, count: usize, each: Duration, together: Duration) -> usize {
        let mut turn = choice.begin(count);
        while !turn.is_over() && turn.done < count {
            turn.on_done(each);
        }
        let done = turn.done;
        if done > 0 {
            choice.on_one_by_one(done, turn.took);
        }
        if turn.is_over() {
            choice.on_together(together);
        }
        done
    }

    #[test]
    fn begin__few_are_synced_one_by_one() {
        let mut choice = SyncChoice::default();
        choice.on_together(MS);
        choice.on_one_by_one(1, 100 * MS);
        assert!(!choice.begin(FEW).is_over() && choice.begin(FEW + 1).is_over());
    }

    #[test]
    fn begin__an_unknown_cost_is_tried_with_some() {
        let mut choice = SyncChoice::default();
        assert_eq!(sync(&mut choice, 200, 6 * MS, 130 * MS), 0);
        // 196 x 6 ms are more than 130 ms: the rest goes together, and from then on all does.
        assert_eq!(sync(&mut choice, 200, 6 * MS, 130 * MS), PROBES);
        assert_eq!(sync(&mut choice, 200, 6 * MS, 130 * MS), 0);
    }

    #[test]
    fn begin__is_the_cheaper_way_and_the_other_is_tried_again() {
        let mut choice = SyncChoice::default();
        // Another process writes gigabytes.
        let (each, together) = (MS / 4, 5000 * MS);
        assert_eq!(sync(&mut choice, 2000, each, together), 0);
        let mut turns = 0;
        while sync(&mut choice, 2000, each, together) == 2000 {
            turns += 1;
        }
        // 0.95^45 = 0.0994 < 0.1 = 500 ms / 5 s < 0.95^44.
        assert_eq!(turns, 45);
    }
}
