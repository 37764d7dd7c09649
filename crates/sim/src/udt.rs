//! Both ends of a UDT session: the protocol around the rate rule (Gu & Grossman 2007; draft-gg-udt-03).
//!
//! The source sends a packet per period, lost ones first, and after each sixteenth packet the next immediately: a
//! packet pair. The sink reports gaps immediately and again while they last, and every 10 ms acknowledges the data that
//! it has in order, with the arrival rate and the capacity measured by packet pairs. Not implemented from the draft:
//! set-up and shutdown, and giving up on a peer that is silent for long.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use fairwave_scenario::random::{self, RandomStream};
use fairwave_schemes::session::{Udt, UdtAck, UdtConfig};
use fairwave_units::{Duration, Time};

use crate::error::SimError;
use crate::flow::FlowOptions;
use crate::gtp::GtpHosts;
use crate::kind::{NewSession, SourceKind};
use crate::messages::Messages;
use crate::packet_gaps::PacketGaps;
use crate::ranges::Ranges;
use crate::rated::{Out, Rated};
use crate::receiver::WindowReceiver;
use crate::token_bucket::TokenBucket;
use crate::transit::Transit;

pub(crate) const KIND: SourceKind = SourceKind::new(|scheme| scheme.name == "udt", add);

#[expect(clippy::unnecessary_wraps, reason = "other kinds refuse sessions here")]
fn add(transit: &mut Transit<'_>, _: &GtpHosts, new: &NewSession<'_>) -> Result<(), SimError> {
    let NewSession { scenario, session, size_packets, data_bytes, message_bytes, .. } = *new;
    let (max_window_packets, offer) = new.limits();
    let stream = random::stream(scenario.seed, &format!("udt {}", session.name));
    let setup = UdtSetup { size_packets, max_window_packets, data_bytes, message_bytes, offer, stream };
    let source = UdtSession::new(setup, session.start);
    transit.add_session(source.into(), new.bytes(), None, new.active(), FlowOptions::default());
    Ok(())
}

/// Parameters of a session.
pub(crate) struct UdtSetup {
    pub(crate) size_packets: u64,
    /// Maximum unacknowledged packets: the sink's buffer.
    pub(crate) max_window_packets: u64,
    /// Bytes on the wire: of a data packet, and of a message without its contents.
    pub(crate) data_bytes: u32,
    pub(crate) message_bytes: u32,
    pub(crate) offer: Option<TokenBucket>,
    pub(crate) stream: RandomStream,
}

pub(crate) struct UdtSession {
    source: UdtSource,
    sink: UdtSink,
}

/// The sending end.
struct UdtSource {
    rule: Udt,
    setup: UdtSetup,
    next: u64,
    /// All numbers below have arrived.
    acked: u64,
    /// The value of `acked` in the last full acknowledgement.
    acked_by_period: u64,
    /// Numbers reported lost, and not sent again yet.
    lost: Ranges,
    /// Departure of the next packet, and the remainder of rounding to whole nanoseconds.
    due: Time,
    rest_ns: f64,
    /// Whether there was nothing to send at the last attempt; and the time when the application has data, if only these
    /// are missing.
    is_blocked: bool,
    offered_at: Option<Time>,
    rtt: Estimate,
    receive_packets_per_s: f64,
    capacity_packets_per_s: f64,
    /// Time of the sink's last message, and time-outs since.
    heard: Time,
    silences: u32,
    to_sink: Messages<u64>,
}

/// The receiving end.
struct UdtSink {
    largest: Option<u64>,
    /// The number that arrived last.
    previous: Option<u64>,
    /// Missing numbers, by the first of each range.
    missing: BTreeMap<u64, MissingRange>,
    arrivals: PacketGaps,
    /// Packets since the last acknowledgement, and light acknowledgements among these.
    packets: u64,
    light: u64,
    /// Times of the next periodic acknowledgement, and of the next check for missing packets; from the first packet on.
    next_ack: Option<Time>,
    next_nak: Time,
    /// Acknowledgements in flight: number, acknowledged packets, send time.
    acks: VecDeque<(u64, u64, Time)>,
    ack_number: u64,
    last_ack: (u64, Time),
    /// Packets that the source is known to have seen acknowledged.
    confirmed: u64,
    rtt: Estimate,
    to_source: Messages<ToSource>,
}

/// A range of missing numbers up to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MissingRange {
    end: u64,
    reported: Time,
    /// Round trips until it is reported again.
    patience: u32,
}

/// Messages of the sink.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ToSource {
    Ack { ack_number: u64, next: u64, rtt: Duration, receive_packets_per_s: f64, capacity_packets_per_s: f64 },
    LightAck { next: u64 },
    Nak { begin: u64, end: u64, is_last: bool, first: u64 },
}

/// SYN, the protocol's interval.
const INTERVAL: Duration = Duration::from_millis(10);
/// Packets per light acknowledgement.
const LIGHT_EVERY: u64 = 64;
/// Packets per packet pair.
const PAIR_EVERY: u64 = 16;
/// Bytes of an acknowledgement's contents: number, RTT and its variance, buffer, rate, capacity.
const ACK_BYTES: u32 = 24;
/// Bytes of one number; a range takes two.
const NUMBER_BYTES: u32 = 4;
/// Minimum time-out.
const MIN_TIMEOUT: Duration = Duration::from_millis(100);
/// Maximum number of increases of the time-out.
const MAX_SILENCES: u32 = 16;
/// Round-trip time before the first sample.
const FIRST_RTT: Duration = Duration::from_millis(100);

impl UdtSession {
    pub(crate) fn new(setup: UdtSetup, start: Time) -> Self {
        let config = UdtConfig {
            packet_bytes: setup.data_bytes,
            max_window_packets: setup.max_window_packets as f64,
            ..UdtConfig::default()
        };
        let source = UdtSource {
            rule: Udt::new(config),
            setup,
            next: 0,
            acked: 0,
            acked_by_period: 0,
            lost: Ranges::default(),
            due: start,
            rest_ns: 0.0,
            is_blocked: false,
            offered_at: None,
            rtt: Estimate::default(),
            receive_packets_per_s: 0.0,
            capacity_packets_per_s: 0.0,
            heard: start,
            silences: 1,
            to_sink: Messages::default(),
        };
        let sink = UdtSink {
            largest: None,
            previous: None,
            missing: BTreeMap::new(),
            arrivals: PacketGaps::default(),
            packets: 0,
            light: 0,
            next_ack: None,
            next_nak: start,
            acks: VecDeque::new(),
            ack_number: 0,
            last_ack: (0, start),
            confirmed: 0,
            rtt: Estimate::default(),
            to_source: Messages::default(),
        };
        Self { source, sink }
    }
}

impl Rated for UdtSession {
    fn size_packets(&self) -> u64 {
        self.source.setup.size_packets
    }

    fn stop(&mut self) {
        self.source.setup.size_packets = self.source.next;
    }

    fn on_wake(&mut self, now: Time, receiver: &WindowReceiver, out: &mut Vec<Out>) {
        let message_bytes = self.source.setup.message_bytes;
        self.sink.on_time(now, receiver.next(), message_bytes, out);
        self.source.on_time(now);
        self.source.send(now, out);
    }

    fn wake(&self) -> Option<Time> {
        [self.source.wake(), self.sink.wake(self.source.setup.size_packets)].into_iter().flatten().min()
    }

    fn on_data(&mut self, now: Time, number: u64, receiver: &WindowReceiver, out: &mut Vec<Out>) {
        self.sink.on_data(now, number, receiver.next(), self.source.setup.message_bytes, out);
    }

    fn at_source(&mut self, now: Time, message: u64, _: &WindowReceiver, out: &mut Vec<Out>) {
        let Some(said) = self.sink.to_source.take(message) else { return };
        self.source.on_message(now, said, out);
        self.source.send(now, out);
    }

    fn at_sink(&mut self, now: Time, message: u64, _: &WindowReceiver, _: &mut Vec<Out>) {
        if let Some(ack_number) = self.source.to_sink.take(message) {
            self.sink.on_confirmation(now, ack_number);
        }
    }
}

impl UdtSource {
    /// Sends all packets that are due.
    fn send(&mut self, now: Time, out: &mut Vec<Out>) {
        while self.due <= now {
            let Some((number, is_again)) = self.next_packet(now) else {
                self.is_blocked = true;
                return;
            };
            if self.next == self.acked + 1 && !is_again {
                // Nothing was in flight before: silence counts from here.
                self.heard = now;
            }
            self.is_blocked = false;
            out.push(Out::Data { number, is_again });
            // The first of a packet pair: the second follows immediately.
            let wait_ns = if !is_again && number.is_multiple_of(PAIR_EVERY) { 0.0 } else { self.rule.period_s() * 1e9 };
            let exact_ns = wait_ns + self.rest_ns;
            self.rest_ns = exact_ns.fract();
            self.due = now.saturating_add(Duration::from_nanos(exact_ns as u64));
        }
    }

    /// The next packet; records that it is sent.
    fn next_packet(&mut self, now: Time) -> Option<(u64, bool)> {
        self.offered_at = None;
        if let Some(number) = self.lost.first().map(|range| range.start) {
            self.lost.remove_below(number + 1);
            return Some((number, true));
        }
        let window = (self.rule.window_packets() as u64).min(self.setup.max_window_packets);
        if self.next >= self.setup.size_packets || self.next - self.acked >= window {
            return None;
        }
        if let Some(offer) = &mut self.setup.offer {
            if !offer.has_packet(now, self.setup.data_bytes) {
                self.offered_at = offer.next_packet(now, self.setup.data_bytes);
                return None;
            }
            offer.take(self.setup.data_bytes);
        }
        self.next += 1;
        Some((self.next - 1, false))
    }

    fn on_message(&mut self, now: Time, said: ToSource, out: &mut Vec<Out>) {
        self.heard = now;
        self.silences = 1;
        match said {
            ToSource::LightAck { next } => self.advance(next),
            ToSource::Ack { ack_number, next, rtt, receive_packets_per_s, capacity_packets_per_s } => {
                self.advance(next);
                self.rtt.on_sample(rtt);
                smooth(&mut self.receive_packets_per_s, receive_packets_per_s);
                smooth(&mut self.capacity_packets_per_s, capacity_packets_per_s);
                let acked_packets = next.saturating_sub(self.acked_by_period);
                self.acked_by_period = self.acked_by_period.max(next);
                self.rule.on_ack(&UdtAck {
                    now,
                    acked_packets,
                    receive_packets_per_s: self.receive_packets_per_s,
                    capacity_packets_per_s: self.capacity_packets_per_s,
                    rtt: self.rtt.mean(),
                });
                let message = self.to_sink.push(ack_number);
                out.push(Out::ToSink { message, bytes: self.setup.message_bytes });
            }
            ToSource::Nak { begin, end, is_last, first } => {
                let begin = begin.max(self.acked);
                if begin < end {
                    self.lost.insert_range(begin..end, |_| {});
                }
                // A report may take several packets; the rule is called once.
                if is_last && self.rule.on_nak(first, self.next.saturating_sub(1), self.setup.stream.unit()) {
                    out.push(Out::Loss);
                }
            }
        }
    }

    fn advance(&mut self, next: u64) {
        if next > self.acked {
            self.acked = next;
            self.lost.remove_below(next);
        }
    }

    /// The timer of silence.
    fn on_time(&mut self, now: Time) {
        if self.deadline().is_none_or(|deadline| deadline > now) {
            return;
        }
        if self.lost.is_empty() {
            self.lost.insert_range(self.acked..self.next, |_| {});
        }
        self.rule.on_timeout();
        self.heard = now;
        self.silences = (self.silences + 1).min(MAX_SILENCES);
    }

    fn deadline(&self) -> Option<Time> {
        let silences = u64::from(self.silences);
        let wait = self.rtt.mean_and_four_deviations().as_nanos().saturating_mul(silences);
        let wait = wait.saturating_add(INTERVAL.as_nanos()).max(MIN_TIMEOUT.as_nanos().saturating_mul(silences));
        (self.next > self.acked).then(|| self.heard.saturating_add(Duration::from_nanos(wait)))
    }

    fn wake(&self) -> Option<Time> {
        let send = if self.is_blocked { self.offered_at } else { Some(self.due) };
        [send, self.deadline()].into_iter().flatten().min()
    }
}

impl UdtSink {
    fn on_data(&mut self, now: Time, number: u64, next: u64, message_bytes: u32, out: &mut Vec<Out>) {
        let is_pair = self.largest.is_some_and(|largest| number == largest + 1 && largest.is_multiple_of(PAIR_EVERY));
        let is_pair = is_pair && self.previous == self.largest;
        self.previous = Some(number);
        self.arrivals.on_packet(now, is_pair);
        if self.next_ack.is_none() {
            self.next_ack = Some(now.saturating_add(INTERVAL));
            self.next_nak = now.saturating_add(self.nak_interval());
        }
        let expected = self.largest.map_or(0, |largest| largest + 1);
        if number >= expected {
            self.largest = Some(number);
            if number > expected {
                self.missing.insert(expected, MissingRange { end: number, reported: now, patience: 2 });
                self.report(std::iter::once(expected..number), message_bytes, out);
            }
        } else {
            self.found(number);
        }
        self.packets += 1;
        if self.packets >= LIGHT_EVERY * (self.light + 1) {
            self.light += 1;
            let message = self.to_source.push(ToSource::LightAck { next });
            out.push(Out::ToSource { message, bytes: message_bytes + NUMBER_BYTES });
        }
    }

    /// Removes a number from the missing ones.
    fn found(&mut self, number: u64) {
        let Some((&begin, &range)) = self.missing.range(..=number).next_back() else { return };
        if number >= range.end {
            return;
        }
        self.missing.remove(&begin);
        if begin < number {
            self.missing.insert(begin, MissingRange { end: number, ..range });
        }
        if number + 1 < range.end {
            self.missing.insert(number + 1, range);
        }
    }

    /// Reports ranges, in as few packets as possible.
    fn report(&mut self, ranges: impl Iterator<Item = Range<u64>>, message_bytes: u32, out: &mut Vec<Out>) {
        let mut ranges = ranges.peekable();
        let first = ranges.peek().map_or(0, |range| range.start);
        while let Some(range) = ranges.next() {
            let is_last = ranges.peek().is_none();
            let bytes = if range.end - range.start > 1 { 2 * NUMBER_BYTES } else { NUMBER_BYTES };
            let nak = ToSource::Nak { begin: range.start, end: range.end, is_last, first };
            let message = self.to_source.push(nak);
            out.push(Out::ToSource { message, bytes: message_bytes + bytes });
        }
    }

    fn on_time(&mut self, now: Time, next: u64, message_bytes: u32, out: &mut Vec<Out>) {
        let Some(due) = self.next_ack.filter(|due| *due <= now) else { return };
        self.next_ack = Some(due.max(now).saturating_add(INTERVAL));
        if self.next_nak <= now {
            self.next_nak = now.saturating_add(self.nak_interval());
            self.report_again(now, message_bytes, out);
        }
        (self.packets, self.light) = (0, 0);
        let (last, sent) = self.last_ack;
        if next == self.confirmed || (next == last && now.since(sent) < self.rtt.mean_and_four_deviations()) {
            return;
        }
        self.last_ack = (next, now);
        self.ack_number += 1;
        self.acks.push_back((self.ack_number, next, now));
        let ack = ToSource::Ack {
            ack_number: self.ack_number,
            next,
            rtt: self.rtt.mean(),
            receive_packets_per_s: self.arrivals.rate_packets_per_s(),
            capacity_packets_per_s: self.arrivals.capacity_packets_per_s(),
        };
        let message = self.to_source.push(ack);
        out.push(Out::ToSource { message, bytes: message_bytes + ACK_BYTES });
    }

    /// Reports ranges again that are still missing after their waiting time.
    fn report_again(&mut self, now: Time, message_bytes: u32, out: &mut Vec<Out>) {
        let rtt = self.rtt.mean().as_nanos();
        let mut late = Vec::new();
        for (begin, range) in &mut self.missing {
            let patience = Duration::from_nanos(rtt.saturating_mul(u64::from(range.patience)));
            if now.since(range.reported) >= patience {
                range.reported = now;
                range.patience = range.patience.saturating_add(1);
                late.push(*begin..range.end);
            }
        }
        self.report(late.into_iter(), message_bytes, out);
    }

    fn nak_interval(&self) -> Duration {
        let rtt = self.rtt.mean().as_nanos().saturating_mul(4);
        Duration::from_nanos(rtt.saturating_add(self.rtt.deviation_ns).saturating_add(INTERVAL.as_nanos()))
    }

    /// The source has received an acknowledgement.
    fn on_confirmation(&mut self, now: Time, ack_number: u64) {
        while let Some((number, next, sent)) = self.acks.pop_front() {
            if number == ack_number {
                self.rtt.on_sample(now.since(sent));
                self.confirmed = self.confirmed.max(next);
                return;
            }
        }
    }

    /// From the first packet until all has arrived and the source has confirmed it.
    fn wake(&self, size_packets: u64) -> Option<Time> {
        self.next_ack.filter(|_| self.confirmed < size_packets)
    }
}

/// A smoothed time and its mean deviation: RTT and RTTVar of the draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Estimate {
    mean_ns: u64,
    deviation_ns: u64,
}

impl Default for Estimate {
    fn default() -> Self {
        Self { mean_ns: FIRST_RTT.as_nanos(), deviation_ns: FIRST_RTT.as_nanos() / 2 }
    }
}

impl Estimate {
    fn on_sample(&mut self, sample: Duration) {
        let sample_ns = sample.as_nanos();
        let error_ns = self.mean_ns.abs_diff(sample_ns);
        self.deviation_ns = self.deviation_ns - self.deviation_ns / 4 + error_ns / 4;
        self.mean_ns = self.mean_ns - self.mean_ns / 8 + sample_ns / 8;
    }

    fn mean(self) -> Duration {
        Duration::from_nanos(self.mean_ns)
    }

    fn mean_and_four_deviations(self) -> Duration {
        Duration::from_nanos(self.mean_ns.saturating_add(self.deviation_ns.saturating_mul(4)))
    }
}

/// Adds an eighth of each sample, all of the first; zero means no sample.
fn smooth(mean: &mut f64, sample: f64) {
    if sample > 0.0 {
        *mean = if *mean > 0.0 { *mean * 0.875 + sample * 0.125 } else { sample };
    }
}

#[cfg(test)]
mod tests;
