//! What may help a session, in one line, with what to type.

use fairwave_units::Rate;

use super::limited_by::LimitedBy;
use super::sample::Here;
use super::session::SessionStatus;
use crate::session::SessionStats;

/// A share of less is chance, or what any path has.
const MUCH_LOSS: f64 = 0.005;
/// Shares of fewer packets say little.
const MANY_PACKETS: u64 = 1000;
/// What is so for as long is no accident.
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
const LEAST_DATAGRAM: u32 = 1200;
/// Where so much goes in datagrams of 1200 bytes, their number is what costs.
const FAST_BPS: f64 = 5e8;
/// A socket overflows where it has no room for one in so many packets.
const OVERFLOWS_ONE_IN: u64 = 1000;
/// What an endpoint asks its system for.
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
            "the socket here holds {kib} KiB and had no room for {overflows} datagrams: `sysctl -w \
             net.core.rmem_max={RECEIVE_BUFFER}` as root, and begin again"
        )
    })
}

/// A limit that somebody set, and that is all that holds.
fn low_limit(status: &SessionStatus, here: Here) -> Option<String> {
    let (limit, capacity) = (status.desired_bps?, here.capacity?.as_bps());
    (status.limited_by == Some(LimitedBy::Limit) && limit < LOW * capacity).then(|| {
        format!(
            "--limit \"{}\" is all that holds it, and this end has {}: leave it out, or raise it",
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
            "packets wait {:.0} ms in a queue on the way: where nobody else fills it, `--limit \"{}\"` keeps it empty; \
             else whoever fills it takes the rest of the line",
            queueing * 1e3,
            rate(BELOW * delivered)
        )
    })
}

/// Loss of which no queue is the cause: no congestion, as far as can be seen.
fn loss_without_queue(status: &SessionStatus, here: Here) -> Option<String> {
    let is_so = status.path.loss_share? >= MUCH_LOSS && !status.path.has_queue() && is_long(status);
    (is_so && !status.is_dedicated && may_be_the_path(status)).then(|| {
        let capacity = here.capacity.map_or_else(|| "RATE OF THE LINE".to_owned(), |capacity| rate(capacity.as_bps()));
        format!(
            "packets get lost where none wait: if nobody else uses the path, `--path dedicated --capacity \"{capacity}\"` \
             at both ends"
        )
    })
}

fn small_datagrams(status: &SessionStatus) -> Option<String> {
    let is_so = status.is_source && status.datagram_bytes <= LEAST_DATAGRAM && status.rate_bps >= FAST_BPS;
    (is_so && status.path.span_s >= LONG_S).then(|| {
        let host = status.peer.ip();
        format!("datagrams of 1200 bytes alone get through, which costs processor time: `ping -M do -s 1472 {host}` tells whether the path takes 1500")
    })
}

fn rate(bps: f64) -> String {
    format!("{:.1}", Rate::nearest_bps(bps))
}
