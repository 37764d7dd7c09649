//! The limit of a session, and the number that shows it.

use fairwave_units::Rate;

use super::carried::WaitsFor;
use super::limited_by::LimitedBy;
use super::session::SessionStatus;
use crate::Hold;

/// A sink that gets this share of what it grants is what limits.
const FULL: f64 = 0.95;
/// A source that sends less than this share of what it may is held by something else.
const IDLE: f64 = 0.7;
/// A node that leads a session to this much more than it has is not what holds it.
const LEADS: f64 = 1.2;
/// Fraction of this end's own limits that counts as reaching them: they are held more loosely.
const NEARLY: f64 = 0.85;

/// The limit of a session, as far as this end knows: the rest of its status is filled in. A disk has priority over the
/// network, if nothing is requested from the network.
pub(super) fn explain(
    status: &SessionStatus,
    hold: Option<Hold>,
    waits_for: Option<WaitsFor>,
    disk_bps: Option<f64>,
) -> (Option<LimitedBy>, String) {
    let gives = status.is_source;
    let by_disk = match waits_for {
        Some(WaitsFor::Disk) => Some(of_disk(gives, disk_bps)),
        Some(WaitsFor::Sync) => Some("the local disk is flushing written data".into()),
        Some(WaitsFor::List) if gives => Some("the files are still being listed".into()),
        _ => None,
    };
    if let Some(text) = by_disk {
        return (Some(LimitedBy::Disk), text);
    }
    // Packets that arrive while ours are all lost are not an answer; a transfer that waits for one waits for
    // the network.
    let waits_for_peer =
        matches!(waits_for, Some(WaitsFor::Peer | WaitsFor::List | WaitsFor::Results | WaitsFor::Comparing));
    // An end that is not heard may be gone: only of one that is heard its disk can be named.
    if status.is_silent() || waits_for_peer && status.is_mute() {
        let text = format!("no answer from {} for {:.0} s", status.peer, status.silent_s);
        return (Some(LimitedBy::Silence), text);
    }
    if waits_for_peer && status.is_unheard() {
        let text = format!("packets arrive from {}, but no replies for {:.0} s", status.peer, status.unheard_s);
        return (Some(LimitedBy::Silence), text);
    }
    if waits_for == Some(WaitsFor::Comparing) {
        let text = "existing files are being compared by hash";
        return (Some(LimitedBy::Comparing), text.into());
    }
    let by_peer = match waits_for {
        Some(WaitsFor::List) => Some("the peer is still listing its files"),
        Some(WaitsFor::Results) if gives => Some("all data is sent; the peer is writing it"),
        Some(WaitsFor::Peer) if gives => Some("the peer requests no more data while it writes to its disk"),
        Some(WaitsFor::Peer) => Some("the peer sends no data while it reads its disk"),
        _ => None,
    };
    if let Some(text) = by_peer {
        return (Some(LimitedBy::PeerDisk), text.into());
    }
    if waits_for == Some(WaitsFor::Results) {
        return (Some(LimitedBy::Idle), "all data has arrived; the results are being confirmed".into());
    }
    if gives { at_the_source(status, hold) } else { at_the_sink(status, hold) }
}

fn of_disk(gives: bool, bps: Option<f64>) -> String {
    let does = if gives { "reads" } else { "writes" };
    let all = if gives { "no faster than requested" } else { "no faster than data arrives" };
    format!("the local disk {does} {}", bps.map_or_else(|| all.into(), rate))
}

fn at_the_source(status: &SessionStatus, hold: Option<Hold>) -> (Option<LimitedBy>, String) {
    let (by, what, bps) = match hold {
        Some(Hold::Sink) => (LimitedBy::PeerNode, "the peer's node grants", status.sink_expected_bps),
        Some(Hold::Demand) => (LimitedBy::Limit, "this end allows", status.desired_bps),
        Some(Hold::Path) => (LimitedBy::Path, "its share of the estimated path rate is", status.path_rate_bps),
        Some(Hold::Silence) => {
            let text = "the peer was silent for a while: the rate is halved until it has been heard for as long";
            return (Some(LimitedBy::Silence), with_path(status, text.into()));
        }
        Some(Hold::Breaker) => {
            let text = "the dedicated path loses more than a fifth of all packets: each such second halves the rate, \
                        and ten in a row close the session";
            return (Some(LimitedBy::Breaker), with_path(status, text.into()));
        }
        Some(Hold::Application | Hold::Window) => return without_more(status),
        Some(Hold::Source) | None => (LimitedBy::Node, "this end's node grants", status.expected_bps),
    };
    let Some(bps) = bps else { return (Some(by), format!("{what} an unknown rate")) };
    if status.rate_bps >= IDLE * bps {
        let text = format!("{what} {}", rate(bps));
        // Of what it grants and allows, this end knows all.
        return (Some(by), if by == LimitedBy::Path { with_path(status, text) } else { text });
    }
    let text = format!("it sends {} of the allowed {}", rate(status.rate_bps), rate(bps));
    if status.transfer.is_some() {
        // More is asked for, and has been read.
        return (None, text + ", with more data ready: it has just started, or the CPU is busy");
    }
    (Some(LimitedBy::Idle), text + ": no more data is requested or ready")
}

/// All that is asked for, and that is ready, has been sent.
fn without_more(status: &SessionStatus) -> (Option<LimitedBy>, String) {
    let terms = [status.expected_bps, status.sink_expected_bps, status.desired_bps, status.path_rate_bps];
    let may = terms.into_iter().flatten().reduce(f64::min);
    let of = may.map_or_else(String::new, |bps| format!(" of the allowed {}", rate(bps)));
    let text = format!("it sends {}{of}", rate(status.rate_bps));
    if status.transfer.is_some() {
        let text = text + ": all requested data is sent, and the peer requests no more at a time";
        return (Some(LimitedBy::Window), with_path(status, text));
    }
    (Some(LimitedBy::Idle), text + ": no more data is requested or ready")
}

/// A sink knows what it allows itself, its node's grant, and what it has room for.
fn at_the_sink(status: &SessionStatus, hold: Option<Hold>) -> (Option<LimitedBy>, String) {
    let measured = status.measured_bps.unwrap_or(status.rate_bps);
    let granted = status.expected_bps.unwrap_or(f64::INFINITY);
    let desired = status.desired_bps.filter(|desired| *desired <= granted);
    if let Some(desired) = desired.filter(|desired| measured >= NEARLY * desired) {
        return (Some(LimitedBy::Limit), format!("this end allows {}", rate(desired)));
    }
    // Of a session that gets no more elsewhere a node grants a little above what it has, and leads it far above that.
    let would_have = status.target_bps.filter(|target| *target > LEADS * measured);
    if measured >= FULL * granted && would_have.is_none() {
        return (Some(LimitedBy::Node), format!("this end's node grants {}", rate(granted)));
    }
    if hold == Some(Hold::Window) {
        let text = format!("one round trip delivers everything this end requests at a time: {}", rate(measured));
        return (Some(LimitedBy::Window), with_path(status, text));
    }
    let sends = format!("the peer sends {}", rate(measured));
    let text = match (desired, status.expected_bps) {
        (Some(allowed), _) => {
            format!("{sends} of the {} that this end allows: run `fairwave why` there", rate(allowed))
        }
        (None, Some(granted)) => {
            let granted = would_have.unwrap_or(granted);
            format!("{sends} of the {} that this end's node grants: run `fairwave why` there", rate(granted))
        }
        (None, None) => format!("{sends}, and this end does not limit it: run `fairwave why` there"),
    };
    (None, with_path(status, text))
}

/// With what is known of the path.
fn with_path(status: &SessionStatus, text: String) -> String {
    match status.path.words(status.rtt_s) {
        Some(words) => format!("{text}; {words}"),
        None => text,
    }
}

fn rate(bps: f64) -> String {
    format!("{:.2}", Rate::nearest_bps(bps))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{PathStatus, TransferStatus};

    const ALL: [LimitedBy; 11] = [
        LimitedBy::Path,
        LimitedBy::Silence,
        LimitedBy::Breaker,
        LimitedBy::Window,
        LimitedBy::Node,
        LimitedBy::PeerNode,
        LimitedBy::Disk,
        LimitedBy::PeerDisk,
        LimitedBy::Limit,
        LimitedBy::Idle,
        LimitedBy::Comparing,
    ];

    #[test]
    fn limited_by__is_the_same_in_words_and_in_json() {
        for by in ALL {
            assert_eq!(serde_json::to_value(by).unwrap(), by.to_string());
        }
    }

    #[test]
    fn explain__a_source_names_the_term_and_its_number() {
        let status = SessionStatus {
            rate_bps: 8.5e8,
            expected_bps: Some(9e8),
            sink_expected_bps: Some(5e8),
            desired_bps: Some(7e8),
            path_rate_bps: Some(6e8),
            ..status()
        };
        for (limit, by, number) in [
            (Hold::Source, LimitedBy::Node, "900.00 Mb/s"),
            (Hold::Sink, LimitedBy::PeerNode, "500.00 Mb/s"),
            (Hold::Demand, LimitedBy::Limit, "700.00 Mb/s"),
            (Hold::Path, LimitedBy::Path, "600.00 Mb/s"),
        ] {
            let (found, because) = explain(&status, Some(limit), None, None);
            assert_eq!(found, Some(by));
            assert!(because.ends_with(number), "{because}");
        }
    }

    #[test]
    fn explain__a_source_that_sends_less_than_it_may_has_no_more() {
        let status = SessionStatus { rate_bps: 1e8, expected_bps: Some(9e8), ..status() };
        let (by, because) = explain(&status, Some(Hold::Source), None, None);
        assert_eq!(by, Some(LimitedBy::Idle));
        assert_eq!(because, "it sends 100.00 Mb/s of the allowed 900.00 Mb/s: no more data is requested or ready");
        // Of files it is known that there is more.
        let moving = SessionStatus { transfer: Some(transfer()), ..status };
        assert_eq!(explain(&moving, Some(Hold::Source), None, None).0, None);
    }

    #[test]
    fn explain__each_end_names_its_own_disk_and_the_other_ones() {
        let (gives, takes) = (status(), SessionStatus { is_source: false, ..status() });
        for (status, waits_for, by, because) in [
            (&takes, WaitsFor::Disk, LimitedBy::Disk, "the local disk writes 80.00 Mb/s"),
            (&gives, WaitsFor::Disk, LimitedBy::Disk, "the local disk reads 80.00 Mb/s"),
            (&takes, WaitsFor::Sync, LimitedBy::Disk, "the local disk is flushing written data"),
            (&takes, WaitsFor::List, LimitedBy::PeerDisk, "the peer is still listing its files"),
            (&gives, WaitsFor::List, LimitedBy::Disk, "the files are still being listed"),
            (&takes, WaitsFor::Peer, LimitedBy::PeerDisk, "the peer sends no data while it reads its disk"),
            (&gives, WaitsFor::Peer, LimitedBy::PeerDisk, "the peer requests no more data while it writes to its disk"),
        ] {
            let limit = status.is_source.then_some(Hold::Sink);
            let found = explain(status, limit, Some(waits_for), Some(8e7));
            assert_eq!(found, (Some(by), because.into()), "{waits_for:?}");
        }
        assert_eq!(explain(&gives, Some(Hold::Sink), Some(WaitsFor::Results), None).0, Some(LimitedBy::PeerDisk));
    }

    #[test]
    fn explain__a_comparison_is_no_stall() {
        for is_source in [true, false] {
            let status = SessionStatus { is_source, ..status() };
            let limit = is_source.then_some(Hold::Sink);
            assert_eq!(explain(&status, limit, Some(WaitsFor::Comparing), None).0, Some(LimitedBy::Comparing));
        }
    }

    #[test]
    fn explain__a_question_without_an_answer_is_silence() {
        let silent = SessionStatus { silent_s: 7.2, unanswered_s: 7.0, ..status() };
        for waits_for in [None, Some(WaitsFor::Peer), Some(WaitsFor::Results)] {
            let (by, because) = explain(&silent, Some(Hold::Sink), waits_for, None);
            assert_eq!((by, because.as_str()), (Some(LimitedBy::Silence), "no answer from 192.0.2.1:8642 for 7 s"));
        }
        // A peer without requests is silent, and while the disk has work, the session waits for the disk.
        let idle = SessionStatus { unanswered_s: 0.0, ..silent.clone() };
        assert_ne!(explain(&idle, Some(Hold::Sink), None, None).0, Some(LimitedBy::Silence));
        assert_eq!(explain(&silent, None, Some(WaitsFor::Disk), None).0, Some(LimitedBy::Disk));
    }

    #[test]
    fn explain__the_disk_of_an_end_that_is_not_heard_is_not_blamed() {
        // It owes no answer yet, since it has not been asked for one.
        let mute = SessionStatus { silent_s: 3.4, unanswered_s: 0.0, ..status() };
        let heard = SessionStatus { silent_s: 1.2, ..mute.clone() };
        for waits_for in [WaitsFor::Peer, WaitsFor::List, WaitsFor::Results, WaitsFor::Comparing] {
            for is_source in [true, false] {
                let by = |status: &SessionStatus| {
                    explain(&SessionStatus { is_source, ..status.clone() }, None, Some(waits_for), None).0
                };
                let is_local = is_source && waits_for == WaitsFor::List;
                assert_eq!(by(&mute) == Some(LimitedBy::Silence), !is_local, "{waits_for:?}");
                assert_ne!(by(&heard), Some(LimitedBy::Silence), "{waits_for:?}");
            }
        }
        assert_eq!(explain(&mute, None, Some(WaitsFor::Peer), None).1, "no answer from 192.0.2.1:8642 for 3 s");
    }

    #[test]
    fn explain__an_end_that_is_heard_and_answers_nothing_is_silence() {
        let unheard = SessionStatus { is_source: false, silent_s: 0.2, unheard_s: 6.0, ..status() };
        for waits_for in [WaitsFor::Peer, WaitsFor::List, WaitsFor::Results, WaitsFor::Comparing] {
            let (by, because) = explain(&unheard, None, Some(waits_for), None);
            assert_eq!(by, Some(LimitedBy::Silence), "{waits_for:?}");
            assert_eq!(because, "packets arrive from 192.0.2.1:8642, but no replies for 6 s");
        }
        // If data arrive, or the disk has work, lost answers are not a reason.
        assert_eq!(explain(&unheard, None, None, None).0, None);
        assert_eq!(explain(&unheard, None, Some(WaitsFor::Disk), None).0, Some(LimitedBy::Disk));
        let answered = SessionStatus { unheard_s: 1.1, ..unheard };
        assert_eq!(explain(&answered, None, Some(WaitsFor::Peer), None).0, Some(LimitedBy::PeerDisk));
    }

    #[test]
    fn explain__a_sink_that_gets_what_it_grants_is_the_limit() {
        let full = SessionStatus { is_source: false, measured_bps: Some(4.8e8), expected_bps: Some(5e8), ..status() };
        assert_eq!(explain(&full, None, None, None).0, Some(LimitedBy::Node));
        let half = SessionStatus { measured_bps: Some(2.4e8), ..full };
        let (by, because) = explain(&half, None, None, None);
        assert_eq!(by, None);
        assert!(because.contains("240.00 Mb/s of the 500.00 Mb/s that this end's node grants"), "{because}");
        // Its node grants a little above what it has, and would lead it to much more: what holds it is elsewhere.
        let follows = SessionStatus { expected_bps: Some(2.5e8), target_bps: Some(9e8), ..half };
        let (by, because) = explain(&follows, None, None, None);
        assert_eq!(by, None);
        assert!(because.contains("240.00 Mb/s of the 900.00 Mb/s that this end's node grants"), "{because}");
        let led = SessionStatus { target_bps: Some(2.6e8), ..follows };
        assert_eq!(explain(&led, None, None, None).0, Some(LimitedBy::Node));
    }

    #[test]
    fn explain__a_sink_that_gets_what_it_allows_is_limited_by_that() {
        let allowed = SessionStatus { is_source: false, rate_bps: 1.9e8, desired_bps: Some(2e8), ..status() };
        let (by, because) = explain(&allowed, None, None, None);
        assert_eq!((by, because.as_str()), (Some(LimitedBy::Limit), "this end allows 200.00 Mb/s"));
        // Its node grants less than that.
        let granted = SessionStatus { expected_bps: Some(1.95e8), ..allowed };
        assert_eq!(explain(&granted, None, None, None).0, Some(LimitedBy::Node));
    }

    fn transfer() -> TransferStatus {
        TransferStatus {
            files_total: None,
            files_done: 0,
            files_failed: 0,
            bytes_total: None,
            bytes_done: 0,
            bytes_held: 0,
            bytes_compared: 0,
            waits_for: None,
        }
    }

    fn status() -> SessionStatus {
        SessionStatus {
            id: "0".into(),
            peer: "192.0.2.1:8642".parse().unwrap(),
            is_initiator: true,
            sends: true,
            receives: false,
            is_source: true,
            carrier: crate::carrier::Carrier::Udp,
            is_dedicated: false,
            is_plain: false,
            rate_bps: 0.0,
            measured_bps: None,
            expected_bps: None,
            target_bps: None,
            sink_expected_bps: None,
            desired_bps: None,
            path_rate_bps: None,
            limited_by: None,
            because: String::new(),
            path_note: None,
            advice: None,
            path: PathStatus::default(),
            rtt_s: None,
            datagram_bytes: 1200,
            sent_packets: 0,
            lost_packets: 0,
            received_packets: 0,
            silent_s: 0.0,
            unanswered_s: 0.0,
            unheard_s: 0.0,
            transfer: None,
        }
    }
}
