//! Both ends of a NETBLT session (RFC 998): bursts at a fixed rate, and the repair of each buffer by itself.
//!
//! The sink opens buffers with GO and closes each with OK when it is complete, or requests with RESEND what it lacks
//! when the last requested packet arrives or its data timer expires. Control messages are numbered and repeated until
//! they are acknowledged.
//!
//! Ours, as the text that was available leaves it open: a message acknowledges each control message at once (NULL-ACK,
//! where the RFC also uses data packets), and the data timer is 1.5 times the time that the missing packets need. The
//! round-trip time is that of the path, which connection set-up has measured.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use fairwave_scenario::Demand;
use fairwave_schemes::session::netblt;
use fairwave_units::{Duration, Rate, Time};

use crate::error::SimError;
use crate::flow::FlowOptions;
use crate::gtp::GtpHosts;
use crate::kind::{NewSession, SourceKind};
use crate::messages::Messages;
use crate::ranges::Ranges;
use crate::rated::{Out, Rated};
use crate::receiver::WindowReceiver;
use crate::transit::Transit;

/// Sessions that send buffers at their demand.
pub(crate) const KIND: SourceKind = SourceKind::new(|scheme| scheme.name == "netblt", add);

fn add(transit: &mut Transit<'_>, _: &GtpHosts, asked: &NewSession<'_>) -> Result<(), SimError> {
    let NewSession { session, choice, size_packets, data_bytes, message_bytes, .. } = *asked;
    if session.demand.at(session.start).is_none() {
        let (session, scheme) = (session.name.clone(), choice.scheme.name);
        let hint = "that is the rate of its bursts: demand = \"500 Mb/s\"";
        return Err(SimError::Incomplete { session, scheme, what: "a demand", hint });
    }
    let config = NetbltConfig {
        rate: session.demand.clone(),
        size_packets,
        data_bytes,
        message_bytes,
        burst: netblt::BURST.of(&choice.options),
        buffer: netblt::BUFFER.of(&choice.options),
        buffers: netblt::BUFFERS.of(&choice.options) as usize,
        rtt: session.rtt,
    };
    let source = NetbltSession::new(config, session.start);
    transit.add_session(source.into(), asked.bytes(), None, asked.active(), FlowOptions::default());
    Ok(())
}

/// Parameters of a session.
struct NetbltConfig {
    rate: Demand,
    size_packets: u64,
    /// Bytes on the wire: of a data packet, and of a message without its contents.
    data_bytes: u32,
    message_bytes: u32,
    /// Packets per burst and per buffer, and outstanding buffers.
    burst: u64,
    buffer: u64,
    buffers: usize,
    rtt: Duration,
}

pub(crate) struct NetbltSession {
    config: NetbltConfig,
    source: NetbltSource,
    sink: NetbltSink,
}

/// The sending end.
struct NetbltSource {
    /// Packets that it may send, and those that it has to send again, which go first.
    new: VecDeque<Range<u64>>,
    again: VecDeque<Range<u64>>,
    /// Earliest time of the next burst.
    due: Time,
    /// Numbers of the control messages that have arrived.
    seen: Ranges,
    /// Numbers that it acknowledges.
    acks: Messages<u64>,
}

/// The receiving end.
struct NetbltSink {
    /// Open buffers by number, and the number of the next.
    open: BTreeMap<u64, OpenBuffer>,
    next_buffer: u64,
    /// Control messages without acknowledgement by number, and the number of the next.
    pending: BTreeMap<u64, PendingControl>,
    next_control: u64,
    controls: Messages<(u64, Control)>,
    is_over: bool,
}

/// A buffer that the sink has opened.
#[derive(Clone, Copy, Debug, Default)]
struct OpenBuffer {
    /// The data timer; `None` until its GO is acknowledged or a packet has arrived.
    expires: Option<Time>,
    has_packets: bool,
    /// The last packet of the last request, if there was one.
    requested: Option<u64>,
}

/// A control message that is not acknowledged yet.
struct PendingControl {
    control: Control,
    first_sent: Time,
    repeat_at: Time,
}

/// Control messages of the sink.
#[derive(Clone, Debug, PartialEq)]
enum Control {
    /// The source may send this buffer.
    Go(u64),
    /// The buffer is complete.
    Ok,
    /// The source has to send these packets again.
    Resend(Vec<Range<u64>>),
}

/// Data timer, relative to the time that the missing packets need.
const SLACK: f64 = 1.5;
/// Control timer beyond the round-trip time.
const CONTROL_TIMER: Duration = Duration::from_millis(100);
/// Time without acknowledgement of a control message after which the sink gives up.
const DEATH_TIMER: Duration = Duration::from_secs(60);
/// Bytes of a buffer's or packet's number in a message; a range has two.
const NUMBER_BYTES: u32 = 4;

impl NetbltConfig {
    /// Time that this many packets need at the rate.
    fn time_of(&self, now: Time, packets: u64) -> Duration {
        let bps = self.rate.at(now).map_or(0.0, Rate::as_bps).max(1.0);
        Duration::from_secs_f64(packets as f64 * f64::from(self.data_bytes) * 8.0 / bps).unwrap_or(DEATH_TIMER)
    }

    /// When packets that the source is asked for now have arrived, with some slack.
    fn expiry(&self, now: Time, round_trips: u64, packets: u64) -> Time {
        let needs = self.rtt.as_secs_f64() * round_trips as f64 + self.time_of(now, packets).as_secs_f64();
        now.saturating_add(Duration::from_secs_f64(SLACK * needs).unwrap_or(DEATH_TIMER))
    }

    /// The packets of a buffer.
    fn packets(&self, buffer: u64) -> Range<u64> {
        let begin = buffer.saturating_mul(self.buffer).min(self.size_packets);
        begin..begin.saturating_add(self.buffer).min(self.size_packets)
    }
}

impl NetbltSession {
    fn new(config: NetbltConfig, start: Time) -> Self {
        let source = NetbltSource {
            new: VecDeque::new(),
            again: VecDeque::new(),
            due: start,
            seen: Ranges::default(),
            acks: Messages::default(),
        };
        let sink = NetbltSink {
            open: BTreeMap::new(),
            next_buffer: 0,
            pending: BTreeMap::new(),
            next_control: 0,
            controls: Messages::default(),
            is_over: false,
        };
        Self { config, source, sink }
    }
}

impl Rated for NetbltSession {
    fn size_packets(&self) -> u64 {
        self.config.size_packets
    }

    fn stop(&mut self) {
        self.source.new.clear();
        self.source.again.clear();
        self.sink.end();
    }

    fn on_wake(&mut self, now: Time, receiver: &WindowReceiver, out: &mut Vec<Out>) {
        self.sink.on_time(now, &self.config, receiver, out);
        self.source.send(now, &self.config, out);
    }

    fn wake(&self) -> Option<Time> {
        self.source.wake().into_iter().chain(self.sink.wake()).min()
    }

    fn on_data(&mut self, now: Time, number: u64, receiver: &WindowReceiver, out: &mut Vec<Out>) {
        self.sink.on_data(now, number, &self.config, receiver, out);
    }

    fn at_source(&mut self, now: Time, message: u64, _: &WindowReceiver, out: &mut Vec<Out>) {
        let Some((number, control)) = self.sink.controls.take(message) else { return };
        let message = self.source.acks.push(number);
        out.push(Out::ToSink { message, bytes: self.config.message_bytes });
        if self.source.seen.insert(number) && !self.sink.is_over {
            self.source.obey(control, &self.config);
            self.source.send(now, &self.config, out);
        }
    }

    fn at_sink(&mut self, now: Time, message: u64, _: &WindowReceiver, _: &mut Vec<Out>) {
        if let Some(number) = self.source.acks.take(message) {
            self.sink.on_acknowledgement(now, number, &self.config);
        }
    }
}

impl NetbltSource {
    fn obey(&mut self, control: Control, config: &NetbltConfig) {
        match control {
            Control::Go(buffer) => self.new.push_back(config.packets(buffer)),
            Control::Ok => {}
            Control::Resend(ranges) => {
                for range in ranges {
                    // Packets that were not sent yet are not sent twice.
                    let unsent = self.new.iter().find(|new| new.start < range.end && range.start < new.end);
                    let range = range.start..unsent.map_or(range.end, |new| new.start.max(range.start));
                    self.again.retain(|old| old.end <= range.start || range.end <= old.start);
                    self.again.extend((!range.is_empty()).then_some(range));
                }
            }
        }
    }

    /// Sends a burst if one is due.
    fn send(&mut self, now: Time, config: &NetbltConfig, out: &mut Vec<Out>) {
        if now < self.due || !self.has_packets() {
            return;
        }
        if config.rate.at(now).is_none_or(|rate| rate <= Rate::ZERO) {
            self.due = config.rate.next_change(now).unwrap_or(Time::MAX);
            return;
        }
        for _ in 0..config.burst {
            let is_again = !self.again.is_empty();
            let Some(number) = next(&mut self.again).or_else(|| next(&mut self.new)) else { break };
            out.push(Out::Data { number, is_again });
        }
        self.due = now.saturating_add(config.time_of(now, config.burst));
    }

    fn has_packets(&self) -> bool {
        !self.new.is_empty() || !self.again.is_empty()
    }

    fn wake(&self) -> Option<Time> {
        self.has_packets().then_some(self.due)
    }
}

/// Takes the first number.
pub(crate) fn next(ranges: &mut VecDeque<Range<u64>>) -> Option<u64> {
    let first = ranges.front_mut()?;
    let number = first.start;
    first.start += 1;
    if first.is_empty() {
        ranges.pop_front();
    }
    Some(number)
}

impl NetbltSink {
    fn end(&mut self) {
        self.is_over = true;
        self.open.clear();
        self.pending.clear();
    }

    fn on_time(&mut self, now: Time, config: &NetbltConfig, receiver: &WindowReceiver, out: &mut Vec<Out>) {
        if self.pending.values().any(|pending| now.since(pending.first_sent) > DEATH_TIMER) {
            self.end();
        }
        if self.is_over {
            return;
        }
        self.open_buffers(now, config, out);
        let late: Vec<u64> =
            self.open.iter().filter(|(_, open)| open.expires.is_some_and(|at| at <= now)).map(|(k, _)| *k).collect();
        for buffer in late {
            self.request(now, buffer, config, receiver, out);
        }
        let due: Vec<u64> =
            self.pending.iter().filter(|(_, pending)| pending.repeat_at <= now).map(|(n, _)| *n).collect();
        for number in due {
            self.transmit(now, number, config, out);
        }
    }

    fn on_data(
        &mut self,
        now: Time,
        number: u64,
        config: &NetbltConfig,
        receiver: &WindowReceiver,
        out: &mut Vec<Out>,
    ) {
        let buffer = number / config.buffer;
        let packets = config.packets(buffer);
        let Some(open) = self.open.get_mut(&buffer) else { return };
        if !std::mem::replace(&mut open.has_packets, true) {
            open.expires = Some(config.expiry(now, 0, packets.end - number));
        }
        let is_last = number == open.requested.unwrap_or(packets.end - 1);
        if !is_last && open.requested.is_none() {
            return;
        }
        if missing(&packets, receiver).next().is_none() {
            self.open.remove(&buffer);
            self.control(now, Control::Ok, config, out);
            self.open_buffers(now, config, out);
        } else if is_last {
            self.request(now, buffer, config, receiver, out);
        }
    }

    /// Requests what a buffer lacks.
    fn request(
        &mut self,
        now: Time,
        buffer: u64,
        config: &NetbltConfig,
        receiver: &WindowReceiver,
        out: &mut Vec<Out>,
    ) {
        let ranges: Vec<_> = missing(&config.packets(buffer), receiver).collect();
        let (Some(open), Some(last)) = (self.open.get_mut(&buffer), ranges.last()) else { return };
        open.requested = Some(last.end - 1);
        let count: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        open.expires = Some(config.expiry(now, 1, count + config.burst));
        let room = (config.data_bytes.saturating_sub(config.message_bytes) / (2 * NUMBER_BYTES)).max(1);
        for part in ranges.chunks(room as usize) {
            self.control(now, Control::Resend(part.to_vec()), config, out);
        }
    }

    fn open_buffers(&mut self, now: Time, config: &NetbltConfig, out: &mut Vec<Out>) {
        while self.open.len() < config.buffers && !config.packets(self.next_buffer).is_empty() {
            self.open.insert(self.next_buffer, OpenBuffer::default());
            self.control(now, Control::Go(self.next_buffer), config, out);
            self.next_buffer += 1;
        }
    }

    /// Sends a new control message.
    fn control(&mut self, now: Time, control: Control, config: &NetbltConfig, out: &mut Vec<Out>) {
        self.pending.insert(self.next_control, PendingControl { control, first_sent: now, repeat_at: now });
        self.transmit(now, self.next_control, config, out);
        self.next_control += 1;
    }

    fn transmit(&mut self, now: Time, number: u64, config: &NetbltConfig, out: &mut Vec<Out>) {
        let Some(pending) = self.pending.get_mut(&number) else { return };
        pending.repeat_at = now.saturating_add(config.rtt).saturating_add(CONTROL_TIMER);
        let numbers = if let Control::Resend(ranges) = &pending.control { 2 * ranges.len() as u32 } else { 1 };
        let message = self.controls.push((number, pending.control.clone()));
        out.push(Out::ToSource { message, bytes: config.message_bytes + NUMBER_BYTES * numbers });
    }

    fn on_acknowledgement(&mut self, now: Time, number: u64, config: &NetbltConfig) {
        let Some(PendingControl { control: Control::Go(buffer), .. }) = self.pending.remove(&number) else { return };
        let outstanding = self.open.len() as u64 * config.buffer;
        if let Some(open) = self.open.get_mut(&buffer).filter(|open| !open.has_packets) {
            open.expires = Some(config.expiry(now, 1, outstanding));
        }
    }

    fn wake(&self) -> Option<Time> {
        let timers = self.open.values().filter_map(|open| open.expires);
        timers.chain(self.pending.values().map(|pending| pending.repeat_at)).min()
    }
}

/// Missing packets of a range.
fn missing(packets: &Range<u64>, receiver: &WindowReceiver) -> impl Iterator<Item = Range<u64>> {
    let begin = packets.start;
    let below = receiver.missing_below(packets.end);
    below.map(move |range| range.start.max(begin)..range.end).filter(|range| !range.is_empty())
}
