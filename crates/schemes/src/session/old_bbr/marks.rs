//! Congestion marks (ECN CE): the share of packets that carry one.

use super::loss_floor::THRESHOLD;

/// The mean share of marked packets, as in DCTCP (RFC 8257 s3.3) and in BBR's third version in Linux after it
/// (google/bbr, `tcp_bbr.c`: `ecn_alpha_gain` 1/16, `ecn_factor` 1/3, `full_ecn_cnt` 2). The draft leaves the response
/// to marks open, except that there must be one (BBR s3.7).
///
/// Ours: while probing, more than 2 % marked is too much, as for losses, compared with a half in Linux. Linux expects
/// links that mark early and often; on any path a mark stands for a loss (RFC 3168).
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Marks {
    /// The mean; initially one, so that the first mark of a path gets a full response.
    share: f64,
    acked: u64,
    marked: u64,
    /// Whether there was a mark in the round trip.
    pub(in super::super) is_marked: bool,
    /// Consecutive round trips with too many marks.
    rounds_over: u32,
}

/// Weight of a round trip in the mean share: `ecn_alpha_gain` of Linux.
const GAIN: f64 = 1.0 / 16.0;
/// Part of the mean share by which the bytes in flight are cut: `ecn_factor` of Linux.
const FACTOR: f64 = 1.0 / 3.0;
/// Consecutive round trips with too many marks that show a full path: `full_ecn_cnt` of Linux.
const ROUNDS: u32 = 2;

impl Marks {
    pub(in super::super) fn new() -> Self {
        Self { share: 1.0, acked: 0, marked: 0, is_marked: false, rounds_over: 0 }
    }

    pub(in super::super) fn on_sample(&mut self, acked: u64, marked: u64) {
        self.acked = self.acked.saturating_add(acked);
        self.marked = self.marked.saturating_add(marked);
        self.is_marked |= marked > 0;
    }

    /// Ends a round trip; returns whether more of its packets were marked than is tolerated while probing.
    pub(in super::super) fn on_round(&mut self) -> bool {
        if self.acked == 0 {
            return false;
        }
        let share = (self.marked as f64 / self.acked as f64).min(1.0);
        self.share += GAIN * (share - self.share);
        (self.acked, self.marked, self.is_marked) = (0, 0, false);
        let is_over = share > THRESHOLD;
        self.rounds_over = if is_over { self.rounds_over.saturating_add(1) } else { 0 };
        is_over
    }

    /// Whether marks show that the path is full.
    pub(in super::super) fn show_full(&self) -> bool {
        self.rounds_over >= ROUNDS
    }

    /// Share by which the bytes in flight are reduced after a round trip with marks.
    pub(in super::super) fn cut(&self) -> f64 {
        self.share * FACTOR
    }
}
