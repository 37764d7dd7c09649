//! Rate, remaining time and limit of a transfer.

use crate::common::quantity::{rate, size, span};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use fairwave_files::{Pause, Progress, Transfer};
use fairwave_host::{Carrier, Here, LimitedBy, PathStatus, SessionStatus, StatusSample, WaitsFor};
use fairwave_units::Rate;
use serde::Serialize;

/// Rates are means over this.
const WINDOW: Duration = Duration::from_secs(3);
const BETWEEN_SAMPLES: Duration = Duration::from_millis(250);
/// Time without progress after which a stall is reported.
const STALL: Duration = Duration::from_secs(3);
/// A rate is far below the capacity if it is below half of it for this long.
const FAR_BELOW: f64 = 0.5;
const SLOW: Duration = Duration::from_secs(5);

/// Looks at a transfer again and again.
pub(crate) struct ProgressMeter {
    transfer: Transfer,
    capacity: Option<Rate>,
    here: Here,
    began: Instant,
    samples: VecDeque<(Instant, StatusSample, u64)>,
    /// When something last moved, and how far it was.
    moved: (Instant, Movement),
    /// The most bytes reported, and the number of reconnects at that time.
    seen: (u64, u64),
    /// The number of its last pause.
    paused: (u64, u32),
    /// Since when its rate has been far below the capacity.
    slow_since: Option<Instant>,
}

/// Files, bytes at the destination or in memory, bytes compared, bytes over the wire: a stall is when none of them
/// grows.
type Movement = (u64, u64, u64, u64);

/// A transfer at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    pub(crate) elapsed: Duration,
    pub(crate) progress: Progress,
    /// Bytes at the destination, including received ones that are not verified yet, and those that have been compared
    /// so far. It never decreases in a session.
    pub(crate) bytes_seen: u64,
    pub(crate) session: Option<SessionStatus>,
    /// Rate of received bytes, bit/s, a mean over the last seconds.
    pub(crate) goodput_bps: f64,
    pub(crate) capacity: Option<Rate>,
    /// Time without movement, if it is long.
    pub(crate) stalled: Option<Duration>,
    /// Whether its rate has been far below the capacity for long.
    pub(crate) is_slow: bool,
    /// The reason to wait between two sessions.
    pub(crate) pause: Option<Pause>,
    /// Pauses since the last look, in order.
    pub(crate) pauses: Vec<Pause>,
    /// Number of sessions that followed one that had ended.
    pub(crate) reconnects: u64,
}

/// Progress for programs.
#[derive(Serialize)]
pub(crate) struct ProgressEvent<'a> {
    event: &'static str,
    session: Option<&'a str>,
    carrier: Option<Carrier>,
    elapsed_s: f64,
    files_total: Option<u64>,
    files_done: u64,
    files_failed: u64,
    bytes_total: Option<u64>,
    bytes_done: u64,
    bytes_resumed: u64,
    bytes_holes: u64,
    bytes_compared: u64,
    bytes_held: u64,
    goodput_bps: f64,
    rate_bps: Option<f64>,
    expected_bps: Option<f64>,
    capacity_bps: Option<f64>,
    left_s: Option<f64>,
    limited_by: Option<LimitedBy>,
    because: Option<&'a str>,
    advice: Option<&'a str>,
    rtt_s: Option<f64>,
    path: Option<&'a PathStatus>,
    waits_for: Option<&'a str>,
}

impl ProgressMeter {
    /// Begins to look at a transfer of an end node with this capacity.
    pub(crate) fn new(transfer: Transfer, capacity: Option<Rate>) -> Self {
        let now = Instant::now();
        let here = Here { capacity };
        Self {
            transfer,
            capacity,
            here,
            began: now,
            samples: VecDeque::new(),
            moved: (now, Movement::default()),
            seen: (0, 0),
            paused: (0, 0),
            slow_since: None,
        }
    }

    /// The current state.
    pub(crate) fn look(&mut self) -> Moment {
        let now = Instant::now();
        let progress = self.transfer.progress();
        let pause = self.transfer.pause();
        let session = self.transfer.session().filter(|_| pause.is_none());
        let wire_bytes = session.as_ref().map_or(0, |session| {
            let stats = session.stats();
            stats.sent_wire_bytes.saturating_add(stats.received_wire_bytes)
        });
        let sample = StatusSample::take(session.into_iter().collect(), self.transfer.carried().as_slice());
        // As they come: a block of 4 MiB takes a slow link long.
        let new_bytes = progress.bytes_come();
        while self.samples.front().is_some_and(|(at, _, _)| now.duration_since(*at) > WINDOW) && self.samples.len() > 1
        {
            self.samples.pop_front();
        }
        let (goodput_bps, status) = match self.samples.front() {
            Some((at, before, bytes)) => {
                let span_s = now.duration_since(*at).as_secs_f64().max(1e-3);
                let goodput_bps = new_bytes.saturating_sub(*bytes) as f64 * 8.0 / span_s;
                (goodput_bps, sample.since(before, self.here).pop())
            }
            None => (0.0, None),
        };
        // A session's keep-alive is not progress: a datagram's worth does not count.
        let files = progress.files_done + progress.files_known;
        let movement = (files, progress.bytes_there(), progress.bytes_compared, wire_bytes / 10_000);
        if movement != self.moved.1 {
            self.moved = (now, movement);
        }
        if self.samples.back().is_none_or(|(at, _, _)| now.duration_since(*at) >= BETWEEN_SAMPLES) {
            self.samples.push_back((now, sample, new_bytes));
        }
        let silent_s = status.as_ref().filter(|session| session.is_silent()).map_or(0.0, |session| session.silent_s);
        let still = now.duration_since(self.moved.0);
        let reconnects = self.transfer.reconnects();
        // At a block's end its bytes leave one count before they enter the other. A session's compared bytes end with
        // it.
        let before = if self.seen.1 == reconnects { self.seen.0 } else { 0 };
        self.seen = (bytes_seen(&progress).max(before), reconnects);
        let pauses = self.transfer.pauses(self.paused);
        if let Some(last) = pauses.last() {
            self.paused = (last.reconnects, last.attempt);
        }
        let is_far_below = is_far_below(status.as_ref(), self.capacity);
        self.slow_since = is_far_below.then(|| self.slow_since.unwrap_or(now));
        let is_slow = self.slow_since.is_some_and(|since| now.duration_since(since) >= SLOW);
        Moment {
            elapsed: now.duration_since(self.began),
            progress,
            bytes_seen: self.seen.0,
            session: status,
            goodput_bps,
            capacity: self.capacity,
            stalled: stalled(still, silent_s),
            is_slow,
            pause,
            pauses,
            reconnects,
        }
    }
}

/// Bytes at the destination, including those received and those that have been compared so far.
fn bytes_seen(progress: &Progress) -> u64 {
    let &Progress { bytes_done, bytes_compared, bytes_total, .. } = progress;
    let sum = progress.bytes_there().saturating_add(bytes_compared);
    sum.min(bytes_total.unwrap_or(u64::MAX).max(bytes_done))
}

/// Whether a session has less than half of a known capacity, without a limit set by this end.
fn is_far_below(session: Option<&SessionStatus>, capacity: Option<Rate>) -> bool {
    let (Some(session), Some(capacity)) = (session, capacity) else { return false };
    let is_wanted = matches!(session.limited_by, Some(LimitedBy::Limit | LimitedBy::Comparing));
    session.rate_bps < FAR_BELOW * capacity.as_bps() && !is_wanted
}

/// Time without movement, if it is long enough to report. This end's packets to a silent peer do not count as movement.
fn stalled(still: Duration, silent_s: f64) -> Option<Duration> {
    let still = still.max(Duration::try_from_secs_f64(silent_s).unwrap_or_default());
    (still >= STALL).then_some(still)
}

impl Moment {
    /// Estimated remaining time, seconds, if known.
    pub(crate) fn left_s(&self) -> Option<f64> {
        let there = self.bytes_seen.saturating_sub(self.progress.bytes_compared);
        let left = self.progress.bytes_total?.checked_sub(there)?;
        (self.goodput_bps >= 1.0).then(|| left as f64 * 8.0 / self.goodput_bps)
    }

    /// Whether it only compares, and the peer is alive.
    fn is_comparing(&self) -> bool {
        let is_gone = |session: &SessionStatus| session.is_silent() || session.is_mute() || session.is_unheard();
        let is_silent = self.session.as_ref().is_some_and(is_gone);
        self.progress.waits_for == Some(WaitsFor::Comparing) && !is_silent
    }

    /// Rate, share of the end node, time left, and what limits it, for people.
    pub(crate) fn text(&self, with_reasons: bool) -> String {
        let Progress { files_total, bytes_total, files_known, bytes_known, files_done, .. } = self.progress;
        let seen = size(self.bytes_seen);
        let mut text = match bytes_total {
            Some(total) => format!("{seen} of {}", size(total)),
            // The client chooses the files.
            None if !self.progress.is_scanning => seen,
            None => format!("{seen} of {} in {files_known} files so far", size(bytes_known)),
        };
        let mut files = String::new();
        if let Some(total) = files_total.filter(|total| *total != 1) {
            let _ = write!(files, ", {files_done} of {total} files");
        }
        if self.progress.files_failed > 0 {
            let _ = write!(files, ", {} failed", self.progress.files_failed);
        }
        if let Some(pause) = &self.pause {
            let _ = write!(text, ", {}", paused(pause));
            return text + &files;
        }
        if self.is_comparing() {
            return text + ", comparing" + &files;
        }
        if let Some(still) = self.stalled {
            let _ = write!(text, ", {}", self.waiting(still));
            return text + &files;
        }
        if let Some(session) = &self.session {
            let _ = write!(text, ", {}", rate(session.rate_bps));
            if let Some(capacity) = self.capacity.filter(|capacity| *capacity > Rate::ZERO) {
                let share = session.rate_bps / capacity.as_bps() * 100.0;
                let _ = write!(text, " ({share:.0} % of {capacity:.1})");
            }
        }
        if let Some(left_s) = self.left_s() {
            let _ = write!(text, ", {} left", span(left_s));
        }
        if let Some(session) = &self.session {
            if let Some(by) = session.limited_by {
                let _ = write!(text, ", limited by {by}");
            }
            if with_reasons {
                let _ = write!(text, ": {}", session.because);
            } else if let Some(path) = self.path_in_short() {
                let _ = write!(text, " ({path})");
            }
        }
        text + &files
    }

    /// Problem of the path of a transfer that is slow for a long time, if the path may be the cause.
    fn path_in_short(&self) -> Option<String> {
        let session = self.session.as_ref().filter(|_| self.is_slow)?;
        let by_path =
            matches!(session.limited_by, None | Some(LimitedBy::Path | LimitedBy::Window | LimitedBy::Breaker));
        by_path.then(|| session.path.short(session.rtt_s)).flatten()
    }

    /// A hint for a transfer that is slow for a long time.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.session.as_ref().filter(|_| self.is_slow)?.advice.as_deref()
    }

    /// The reason why a transfer does not move.
    fn waiting(&self, still: Duration) -> String {
        let (session, gives) = (self.session.as_ref(), self.progress.gives);
        let silent = session.filter(|session| session.is_silent() || session.is_mute());
        let is_unheard = session.is_some_and(SessionStatus::is_unheard);
        let is_here = match self.progress.waits_for {
            Some(WaitsFor::Disk | WaitsFor::Sync | WaitsFor::Session) => true,
            Some(WaitsFor::List) => gives,
            _ => false,
        };
        if let Some(session) = silent.filter(|_| !is_here) {
            return format!("no answer from {} for {:.0} s", session.peer, session.silent_s);
        }
        let what = match self.progress.waits_for {
            Some(WaitsFor::Disk) if gives => "the local disk to be read",
            Some(WaitsFor::Disk) => "the local disk",
            Some(WaitsFor::Sync) => "the local disk to flush written data",
            Some(WaitsFor::List) if gives => "the local disk to list the files",
            _ if is_unheard => "the network: packets arrive, but no replies",
            Some(WaitsFor::List) => "the peer to list its files",
            Some(WaitsFor::Results) if gives => "the peer to write what was sent",
            Some(WaitsFor::Results) => "the peer to confirm the results",
            Some(WaitsFor::Session) => "another session",
            Some(WaitsFor::Comparing) => "the comparison",
            Some(WaitsFor::Peer) if gives => "the peer to write what it received",
            Some(WaitsFor::Peer) => "the peer to read its disk",
            None => "the network",
        };
        format!("waiting for {what} ({})", span(still.as_secs_f64()))
    }

    /// The progress event for programs.
    pub(crate) fn event(&self) -> ProgressEvent<'_> {
        let session = self.session.as_ref();
        ProgressEvent {
            event: "progress",
            session: session.map(|session| session.id.as_str()),
            carrier: session.map(|session| session.carrier),
            elapsed_s: self.elapsed.as_secs_f64(),
            files_total: self.progress.files_total,
            files_done: self.progress.files_done,
            files_failed: self.progress.files_failed,
            bytes_total: self.progress.bytes_total,
            bytes_done: self.progress.bytes_done,
            bytes_resumed: self.progress.bytes_resumed,
            bytes_holes: self.progress.bytes_holes,
            bytes_compared: self.progress.bytes_compared,
            bytes_held: self.progress.bytes_held,
            goodput_bps: self.goodput_bps,
            rate_bps: session.map(|session| session.rate_bps),
            expected_bps: session.and_then(|session| session.expected_bps),
            capacity_bps: self.capacity.map(Rate::as_bps),
            left_s: self.left_s(),
            limited_by: session.and_then(|session| session.limited_by),
            because: session.map(|session| session.because.as_str()),
            advice: session.and_then(|session| session.advice.as_deref()),
            rtt_s: session.and_then(|session| session.rtt_s),
            path: session.map(|session| &session.path),
            waits_for: match &self.pause {
                Some(_) => Some("session"),
                None => session.and_then(|session| session.transfer.as_ref()?.waits_for.as_deref()),
            },
        }
    }
}

/// The reason why a transfer has no session, and the next step.
pub(crate) fn paused(pause: &Pause) -> String {
    let Pause { reason, attempt, next_in, gives_up_in, .. } = pause;
    let next = match next_in {
        Some(wait) => format!("reconnecting in {}", span(wait.as_secs_f64().ceil())),
        None => "reconnecting".into(),
    };
    let times = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
    format!("{reason}: {next}{times}; gives up in {}", span(gives_up_in.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text__says_how_far_it_is_and_how_long_it_takes() {
        let moment = moment();
        assert_eq!(moment.text(false), "1.0 GB of 3.0 GB, 0:20 left");
        // 20 s = (3 - 1) GB x 8 / 800 Mb/s
        assert_eq!(moment.left_s(), Some(20.0));
    }

    #[test]
    fn text__a_slow_one_says_what_is_bad_about_its_path() {
        let quick = Moment { session: Some(session()), capacity: Some(Rate::gbps(1.0)), ..moment() };
        let begin = "1.0 GB of 3.0 GB, 100.00 Mb/s (10 % of 1.0 Gb/s), 0:20 left, limited by path";
        assert_eq!((quick.text(false).as_str(), quick.advice()), (begin, None));
        let slow = Moment { is_slow: true, ..quick };
        assert_eq!(slow.text(false), format!("{begin} (1.2 % lost, RTT 60 ms)"));
        assert_eq!(slow.advice(), Some("do that"));
        // The limit is at this end.
        let by_node = SessionStatus { limited_by: Some(LimitedBy::Node), ..session() };
        let by_node = Moment { session: Some(by_node), ..slow };
        assert!(by_node.text(false).ends_with("limited by node"), "{}", by_node.text(false));
    }

    #[test]
    fn is_far_below__is_half_of_a_capacity_that_is_known() {
        let (at, limited) = (session(), SessionStatus { limited_by: Some(LimitedBy::Limit), ..session() });
        let below = |session, mbps| is_far_below(Some(session), Some(Rate::mbps(mbps)));
        assert_eq!([below(&at, 199.0), below(&at, 201.0), below(&limited, 201.0)], [false, true, false]);
        assert!(!is_far_below(Some(&at), None) && !is_far_below(None, Some(Rate::gbps(1.0))));
    }

    #[test]
    fn text__a_stall_says_what_it_waits_for() {
        let progress = Progress { waits_for: Some(WaitsFor::Disk), ..moment().progress };
        let stalled = Moment { progress, stalled: Some(Duration::from_secs(7)), ..moment() };
        assert_eq!(stalled.text(false), "1.0 GB of 3.0 GB, waiting for the local disk (0:07)");
    }

    #[test]
    fn text__each_end_waits_for_its_own_disk_or_for_the_other_ones() {
        for (gives, waits_for, what) in [
            (true, WaitsFor::Disk, "the local disk to be read"),
            (true, WaitsFor::Peer, "the peer to write what it received"),
            (false, WaitsFor::Peer, "the peer to read its disk"),
        ] {
            let progress = Progress { waits_for: Some(waits_for), gives, ..moment().progress };
            let stalled = Moment { progress, stalled: Some(Duration::from_secs(7)), ..moment() };
            assert_eq!(stalled.text(false), format!("1.0 GB of 3.0 GB, waiting for {what} (0:07)"));
        }
    }

    #[test]
    fn text__who_is_heard_and_answers_nothing_is_the_networks_fault() {
        for waits_for in [WaitsFor::Peer, WaitsFor::Comparing] {
            let progress = Progress { waits_for: Some(waits_for), gives: false, ..moment().progress };
            let session = Some(SessionStatus { unheard_s: 7.0, ..session() });
            let stalled = Moment { progress, session, stalled: Some(Duration::from_secs(7)), ..moment() };
            let what = "the network: packets arrive, but no replies";
            assert_eq!(stalled.text(false), format!("1.0 GB of 3.0 GB, waiting for {what} (0:07)"));
        }
    }

    #[test]
    fn text__who_is_not_heard_is_not_said_to_read_its_disk() {
        for waits_for in [Some(WaitsFor::Peer), Some(WaitsFor::Comparing), Some(WaitsFor::List), None] {
            let progress = Progress { waits_for, gives: false, ..moment().progress };
            let session = Some(SessionStatus { silent_s: 12.2, unanswered_s: 0.0, ..session() });
            let peer = session.as_ref().unwrap().peer;
            let stalled = Moment { progress, session, stalled: Some(Duration::from_secs(12)), ..moment() };
            assert_eq!(stalled.text(false), format!("1.0 GB of 3.0 GB, no answer from {peer} for 12 s"));
        }
    }

    #[test]
    fn text__a_comparison_goes_on_while_nothing_moves() {
        let progress =
            Progress { waits_for: Some(WaitsFor::Comparing), bytes_compared: 1_500_000_000, ..moment().progress };
        let comparing =
            Moment { bytes_seen: bytes_seen(&progress), progress, stalled: Some(Duration::from_secs(7)), ..moment() };
        assert_eq!(
            (comparing.text(false).as_str(), comparing.bytes_seen),
            ("2.5 GB of 3.0 GB, comparing", 2_500_000_000)
        );
    }

    #[test]
    fn text__without_a_session_it_says_what_comes_next() {
        let span = fairwave_units::Duration::from_millis;
        let pause = Pause {
            reconnects: 0,
            reason: "no answer".into(),
            attempt: 3,
            next_in: Some(span(3200)),
            gives_up_in: span(540_000),
        };
        let paused = |pause: Pause| Moment { pause: Some(pause), ..moment() };
        let waits = "1.0 GB of 3.0 GB, no answer: reconnecting in 0:04, attempt 3; gives up in 9:00";
        assert_eq!(paused(pause.clone()).text(true), waits);
        assert_eq!(paused(pause.clone()).event().waits_for, Some("session"));
        let connects = "1.0 GB of 3.0 GB, no answer: reconnecting; gives up in 9:00";
        assert_eq!(paused(Pause { attempt: 1, next_in: None, ..pause }).text(false), connects);
    }

    #[test]
    fn text__without_totals_counts_what_is_known() {
        let progress = Progress {
            files_total: None,
            bytes_total: None,
            files_known: 12,
            bytes_known: 900,
            is_scanning: true,
            ..moment().progress
        };
        let listing = Moment { progress, goodput_bps: 0.0, ..moment() };
        assert_eq!(listing.text(false), "1.0 GB of 900 B in 12 files so far");
        assert_eq!(listing.left_s(), None);
        let progress = Progress { is_scanning: false, ..progress };
        assert_eq!(Moment { progress, ..listing }.text(false), "1.0 GB");
    }

    #[test]
    fn event__has_the_units_in_its_keys() {
        let json = serde_json::to_value(moment().event()).unwrap();
        assert_eq!((json["event"].as_str(), json["left_s"].as_f64()), (Some("progress"), Some(20.0)));
        assert_eq!(json["bytes_done"].as_u64(), Some(1_000_000_000));
    }

    #[test]
    fn stalled__lasts_as_long_as_the_silence() {
        let half = STALL / 2;
        assert_eq!(stalled(half, 0.0), None);
        assert_eq!(stalled(2 * STALL, 0.0), Some(2 * STALL));
        // Keep-alives were sent during it.
        assert_eq!(stalled(half, 17.0), Some(Duration::from_secs(17)));
    }

    #[test]
    fn span__is_read_as_a_clock() {
        assert_eq!(
            [span(7.4), span(62.0), span(3723.0), span(f64::INFINITY)],
            ["0:07", "1:02", "1:02:03", "2400:00:00"]
        );
    }

    #[test]
    fn bytes_seen__counts_what_came_of_a_block() {
        let progress = Progress { bytes_done: 0, bytes_held: 750_000_000, ..moment().progress };
        let moment = Moment { bytes_seen: bytes_seen(&progress), progress, goodput_bps: 1e8, ..moment() };
        // 180 s = (3 - 0.75) GB x 8 / 100 Mb/s
        assert_eq!(moment.text(false), "750.0 MB of 3.0 GB, 3:00 left");
        assert_eq!(moment.left_s(), Some(180.0));
        // Bytes received twice do not exceed the total.
        assert_eq!(bytes_seen(&Progress { bytes_held: 2_500_000_000, ..progress }), 2_500_000_000);
        assert_eq!(bytes_seen(&Progress { bytes_held: 9_000_000_000, ..progress }), 3_000_000_000);
    }

    fn moment() -> Moment {
        Moment {
            bytes_seen: 1_000_000_000,
            elapsed: Duration::from_secs(10),
            progress: Progress {
                files_total: Some(1),
                bytes_total: Some(3_000_000_000),
                files_known: 1,
                bytes_known: 3_000_000_000,
                bytes_done: 1_000_000_000,
                ..Progress::default()
            },
            session: None,
            goodput_bps: 8e8,
            capacity: None,
            stalled: None,
            is_slow: false,
            pause: None,
            pauses: Vec::new(),
            reconnects: 0,
        }
    }

    /// A session of 100 Mb/s, as its source knows it.
    fn session() -> SessionStatus {
        serde_json::from_value(serde_json::json!({
            "id": "20ab5c64505c0000", "peer": "192.0.2.7:50000", "is_initiator": false, "sends": true,
            "receives": false, "is_source": true, "is_dedicated": false, "is_plain": false, "rate_bps": 1e8,
            "measured_bps": 1e8, "expected_bps": 1e9, "target_bps": 1e9, "sink_expected_bps": null,
            "desired_bps": null, "path_rate_bps": 1e8, "limited_by": "path", "because": "", "advice": "do that",
            "path": { "least_rtt_s": 0.06, "queueing_s": 0.0, "loss_share": 0.012, "span_s": 10.0 },
            "rtt_s": 0.06, "datagram_bytes": 1400, "sent_packets": 1, "lost_packets": 0, "received_packets": 0,
            "silent_s": 0.0, "unanswered_s": 0.0, "transfer": null,
        }))
        .unwrap()
    }
}
