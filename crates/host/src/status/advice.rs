//! Advice for a session, in one line, with what to type.

use fairwave_units::Rate;

use super::here::Here;
use super::limited_by::LimitedBy;
use super::session::SessionStatus;
use crate::session::SessionStats;

/// A share of less is chance, or what any path has.
const MUCH_LOSS: f64 = 0.005;
/// Shares of fewer packets say little.
const MANY_PACKETS: u64 = 1000;
/// A condition that lasts this long is not an accident.
const LONG_S: f64 = 9.5;
/// Packets that wait for longer than this, and for more than half of the least round-trip time, wait in a queue that
/// is larger than any path needs: half of a round trip is what three flows with windows leave in one on average.
const LONG_QUEUE_S: f64 = 0.025;
const LONG_QUEUE_SHARE: f64 = 0.5;
/// Of what arrives: a source that sends no more than this lets a queue that is its own run empty.
const BELOW: f64 = 0.9;
/// A limit is low that is below this share of the capacity.
const LOW: f64 = 0.5;
/// Datagrams that every path takes: none larger got through, or none was tried.
const MIN_DATAGRAM: u32 = 1200;
/// Rate from which the number of datagrams of 1200 bytes is the main cost, bit/s.
const FAST_BPS: f64 = 5e8;
/// A socket overflows if it drops one packet in this many.
const OVERFLOWS_ONE_IN: u64 = 1000;
/// Receive buffer that an endpoint requests from its system, bytes.
const RECEIVE_BUFFER: u64 = 16 << 20;

/// The first of these that is so, if any is.
pub(super) fn advice(status: &SessionStatus, stats: &SessionStats, here: Here) -> Option<String> {
    small_socket(status, stats)
        .or_else(|| low_limit(status, here))
        .or_else(|| long_queue(status))
        .or_else(|| loss_without_queue(status, here))
        .or_else(|| small_datagrams(status))
}

/// A sink whose socket overflows, and is smaller than what was asked for.
fn small_socket(status: &SessionStatus, stats: &SessionStats) -> Option<String> {
    let least = status.received_packets / OVERFLOWS_ONE_IN;
    let is_so = !status.is_source && stats.overflows > least.max(10) && stats.receive_buffer.get() < RECEIVE_BUFFER;
    is_so.then(|| {
        let kib = stats.receive_buffer.get() >> 10;
        let overflows = stats.overflows;
        format!(
            "the socket buffer of {kib} KiB overflowed and dropped {overflows} datagrams: run `sysctl -w \
             net.core.rmem_max={RECEIVE_BUFFER}` as root and restart the transfer"
        )
    })
}

/// A limit that somebody set, and that is all that holds.
fn low_limit(status: &SessionStatus, here: Here) -> Option<String> {
    let (limit, capacity) = (status.desired_bps?, here.capacity?.as_bps());
    (status.limited_by == Some(LimitedBy::Limit) && limit < LOW * capacity).then(|| {
        format!(
            "only --limit \"{}\" limits it, and the capacity of this end is {}: raise or remove the limit",
            rate(limit),
            rate(capacity)
        )
    })
}

/// Whether the path may be what holds: a source knows, and a sink at least that nothing holds it here.
fn may_be_the_path(status: &SessionStatus) -> bool {
    status.limited_by == Some(LimitedBy::Path) || (!status.is_source && status.limited_by.is_none())
}

fn is_long(status: &SessionStatus) -> bool {
    status.path.span_s >= LONG_S && status.path.packets >= MANY_PACKETS
}

fn long_queue(status: &SessionStatus) -> Option<String> {
    let (queueing, least) = (status.path.queueing_s?, status.path.least_rtt_s?);
    let is_so = queueing > LONG_QUEUE_S && queueing > LONG_QUEUE_SHARE * least && is_long(status);
    let delivered = status.path.delivery_rate_bps?;
    (is_so && may_be_the_path(status)).then(|| {
        format!(
            "packets wait {:.0} ms in a queue of the path: `--limit \"{}\"` keeps the queue empty, unless other \
             traffic fills it",
            queueing * 1e3,
            rate(BELOW * delivered)
        )
    })
}

/// Loss of which no queue is the cause: no congestion, as far as can be seen.
fn loss_without_queue(status: &SessionStatus, here: Here) -> Option<String> {
    let is_so = status.path.loss_share? >= MUCH_LOSS && !status.path.has_queue() && is_long(status);
    (is_so && !status.is_dedicated && may_be_the_path(status)).then(|| {
        let capacity = here.capacity.map_or_else(|| "RATE".to_owned(), |capacity| rate(capacity.as_bps()));
        format!(
            "packets are lost without queueing: if no other traffic uses the path, use `--path dedicated --capacity \
             \"{capacity}\"` at both ends"
        )
    })
}

fn small_datagrams(status: &SessionStatus) -> Option<String> {
    let is_so = status.is_source && status.datagram_bytes <= MIN_DATAGRAM && status.rate_bps >= FAST_BPS;
    (is_so && status.path.span_s >= LONG_S).then(|| {
        let host = status.peer.ip();
        format!(
            "datagrams are limited to 1200 bytes, which costs CPU time: run `ping -M do -s 1472 {host}` to check \
                 whether the path carries 1500"
        )
    })
}

fn rate(bps: f64) -> String {
    format!("{:.1}", Rate::nearest_bps(bps))
}

#[cfg(test)]
mod tests {
    use fairwave_units::Bytes;

    use super::*;
    use crate::status::PathStatus;

    const HERE: Here = Here { capacity: None };

    /// A source that the path holds, and of which all is known for ten seconds.
    fn status() -> SessionStatus {
        let path = PathStatus {
            least_rtt_s: Some(0.06),
            queueing_s: Some(0.0),
            span_s: 10.0,
            packets: 10_000,
            loss_share: Some(0.0),
            delivery_rate_bps: Some(1e7),
            ..PathStatus::default()
        };
        let text = serde_json::json!({
            "id": "0", "peer": "192.0.2.1:8642", "is_initiator": false, "sends": true, "receives": false,
            "is_source": true, "is_dedicated": false, "is_plain": false, "rate_bps": 1e7, "measured_bps": null,
            "expected_bps": null, "target_bps": null, "sink_expected_bps": null, "desired_bps": null,
            "path_rate_bps": 1e7, "limited_by": "path", "because": "", "path": path, "rtt_s": 0.06,
            "datagram_bytes": 1400, "sent_packets": 0, "lost_packets": 0, "received_packets": 0, "silent_s": 0.0,
            "unanswered_s": 0.0, "transfer": null,
        });
        serde_json::from_value(text).unwrap()
    }

    fn said(status: &SessionStatus, here: Here) -> Option<String> {
        advice(status, &SessionStats::default(), here)
    }

    fn with_path(path: PathStatus) -> SessionStatus {
        SessionStatus { path, ..status() }
    }

    #[test]
    fn advice__there_is_none_where_nothing_is_wrong() {
        assert_eq!(said(&status(), HERE), None);
    }

    #[test]
    fn advice__loss_without_a_queue_for_long_proposes_a_dedicated_path() {
        let lossy = PathStatus { loss_share: Some(0.005), ..status().path };
        let here = Here { capacity: Some(Rate::mbps(100.0)) };
        let expected = "packets are lost without queueing: if no other traffic uses the path, use `--path dedicated --capacity \"100.0 Mb/s\"` at both ends";
        assert_eq!(said(&with_path(lossy), here).as_deref(), Some(expected));
        assert!(said(&with_path(lossy), HERE).unwrap().contains("--capacity \"RATE\""));
        // Also at a sink that nothing holds.
        let sink = SessionStatus { is_source: false, limited_by: None, ..with_path(lossy) };
        assert_eq!(said(&sink, here).as_deref(), Some(expected));
        for other in [
            PathStatus { loss_share: Some(0.0049), ..lossy },
            PathStatus { queueing_s: Some(0.007), ..lossy },
            PathStatus { span_s: 9.0, ..lossy },
            PathStatus { packets: 999, ..lossy },
        ] {
            assert_eq!(said(&with_path(other), here), None, "{other:?}");
        }
        assert_eq!(said(&SessionStatus { is_dedicated: true, ..with_path(lossy) }, here), None);
        assert_eq!(said(&SessionStatus { limited_by: Some(LimitedBy::Node), ..with_path(lossy) }, here), None);
    }

    #[test]
    fn advice__a_long_queue_names_the_limit_that_keeps_it_empty() {
        let queued = PathStatus { queueing_s: Some(0.031), loss_share: Some(0.02), ..status().path };
        let expected = "packets wait 31 ms in a queue of the path: `--limit \"9.0 Mb/s\"` keeps the queue empty, unless other traffic fills it";
        assert_eq!(said(&with_path(queued), HERE).as_deref(), Some(expected));
        // Half of the least round trip, and 25 ms.
        assert_eq!(said(&with_path(PathStatus { queueing_s: Some(0.029), ..queued }), HERE), None);
        let short = PathStatus { least_rtt_s: Some(0.001), queueing_s: Some(0.024), ..queued };
        assert_eq!(said(&with_path(short), HERE), None);
    }

    #[test]
    fn advice__a_low_limit_is_named() {
        let limited = SessionStatus { desired_bps: Some(2e7), limited_by: Some(LimitedBy::Limit), ..status() };
        let here = |mbps| Here { capacity: Some(Rate::mbps(mbps)) };
        let expected = "only --limit \"20.0 Mb/s\" limits it, and the capacity of this end is 100.0 Mb/s: raise or remove the limit";
        assert_eq!(said(&limited, here(100.0)).as_deref(), Some(expected));
        assert_eq!(said(&limited, here(40.0)), None);
        assert_eq!(said(&SessionStatus { limited_by: Some(LimitedBy::Path), ..limited }, here(100.0)), None);
    }

    #[test]
    fn advice__a_socket_that_overflows_names_the_line_that_makes_it_larger() {
        let sink = SessionStatus { is_source: false, received_packets: 100_000, ..status() };
        let with = |overflows, receive_buffer| SessionStats { overflows, receive_buffer, ..SessionStats::default() };
        let small = Bytes::new(212_992);
        let expected = "the socket buffer of 208 KiB overflowed and dropped 101 datagrams: run `sysctl -w net.core.rmem_max=16777216` as root and restart the transfer";
        assert_eq!(advice(&sink, &with(101, small), HERE).as_deref(), Some(expected));
        assert_eq!(advice(&sink, &with(100, small), HERE), None);
        assert_eq!(advice(&sink, &with(101, Bytes::new(16 << 20)), HERE), None);
        assert_eq!(advice(&status(), &with(101, small), HERE), None);
    }

    #[test]
    fn advice__small_datagrams_cost_a_fast_path() {
        let small = SessionStatus { datagram_bytes: 1200, rate_bps: 5e8, ..status() };
        let expected = "datagrams are limited to 1200 bytes, which costs CPU time: run `ping -M do -s 1472 192.0.2.1` to check whether the path carries 1500";
        assert_eq!(said(&small, HERE).as_deref(), Some(expected));
        assert_eq!(said(&SessionStatus { rate_bps: 4.9e8, ..small.clone() }, HERE), None);
        assert_eq!(said(&SessionStatus { datagram_bytes: 1400, ..small }, HERE), None);
    }
}
