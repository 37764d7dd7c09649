//! The loop: what happens next, and what follows from it.

use fairwave_scenario::random::Stream;
use fairwave_units::{Duration, Time};

use crate::constant::Constant;
use crate::delayed_ack::DelayedAck;
use crate::event_queue::{EventQueue, Key};
use crate::jitter::Jitter;
use crate::link::Fate;
use crate::offer::Offer;
use crate::packet::{BLOCKS, Block, Kind, Packet};
use crate::receiver::Receiver;
use crate::route::{Network, Route};
use crate::sender::{Next, Sender};

/// A session in the network.
pub(crate) struct Flow {
    pub(crate) source: Source,
    pub(crate) receiver: Receiver,
    routes: [Route; 2],
    pub(crate) data_bytes: u32,
    pub(crate) ack_bytes: u32,
    /// When the pending timer event fires; it is moved by firing too early, not by being taken out.
    timer: Option<Time>,
    /// What the application offers, where that is limited.
    pub(crate) offer: Option<Offer>,
    options: FlowOptions,
    jitter: Option<Box<Jitter>>,
    delayed_ack: Option<Box<DelayedAck>>,
    pub(crate) losses: Vec<Time>,
    pub(crate) completed: Option<Time>,
    pub(crate) counts: FlowCounts,
}

/// What a scenario may change in how any sender's packets leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowOptions {
    /// Packets at the most that leave at one acknowledgement; the rest wait for the next.
    pub(crate) max_burst: u64,
    /// Whether the receiver acknowledges every second packet only.
    pub(crate) delayed_ack: bool,
}

impl Default for FlowOptions {
    fn default() -> Self {
        Self { max_burst: u64::MAX, delayed_ack: false }
    }
}

/// What sends a session's packets.
pub(crate) enum Source {
    /// A window-based sender, which acknowledgements drive.
    Window(Box<Sender>),
    /// A constant rate; its sink does not answer.
    Constant(Constant),
}

impl Source {
    /// Congestion window and ssthresh, in packets; `None` for a source that has no window.
    pub(crate) fn window_packets(&self) -> Option<(f64, f64)> {
        match self {
            Self::Window(sender) => Some(sender.window_packets()),
            Self::Constant(_) => None,
        }
    }

    /// Packets to deliver.
    pub(crate) fn size_packets(&self) -> u64 {
        match self {
            Self::Window(sender) => sender.size_packets(),
            Self::Constant(constant) => constant.size_packets(),
        }
    }
}

/// What became of a session's data packets, in packets: sent = arrived + dropped + in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowCounts {
    pub(crate) sent: u64,
    pub(crate) resent: u64,
    pub(crate) arrived: u64,
    pub(crate) dropped: u64,
    pub(crate) in_flight: u64,
}

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// The first packet of a line arrives.
    Arrival(u32),
    /// A flow's retransmission timer.
    Timer(u32),
    /// A flow's delayed acknowledgement.
    AckTimer(u32),
    /// A flow's pacer lets the next packet go.
    Pace(u32),
    /// A flow starts.
    Start(u32),
    /// A flow stops.
    Stop(u32),
    /// A flow's application has the next packet's worth of data.
    Offer(u32),
}

pub(crate) struct Simulator {
    network: Network,
    pub(crate) flows: Vec<Flow>,
    queue: EventQueue<Event>,
    order: u64,
    now: Time,
    /// One pending event a packet, in place of one a line: the plain engine that tests compare with.
    is_naive: bool,
    pub(crate) events: u64,
}

impl Simulator {
    pub(crate) fn new(network: Network, is_naive: bool) -> Self {
        Self { network, flows: Vec::new(), queue: EventQueue::new(), order: 0, now: Time::ZERO, is_naive, events: 0 }
    }

    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// Adds the flow of the next route; its index.
    pub(crate) fn add_flow(
        &mut self,
        source: Source,
        [data_bytes, ack_bytes]: [u32; 2],
        offer: Option<Offer>,
        (start, stop): (Time, Option<Time>),
        options: FlowOptions,
    ) -> u32 {
        let flow = u32::try_from(self.flows.len()).expect("a scenario has at most 10^7 sessions");
        self.flows.push(Flow {
            source,
            receiver: Receiver::default(),
            routes: self.network.routes[flow as usize],
            data_bytes,
            ack_bytes,
            timer: None,
            offer,
            options,
            jitter: None,
            delayed_ack: options.delayed_ack.then(Box::default),
            losses: Vec::new(),
            completed: None,
            counts: FlowCounts::default(),
        });
        self.schedule(start, Event::Start(flow));
        if let Some(stop) = stop {
            self.schedule(stop, Event::Stop(flow));
        }
        flow
    }

    /// Delays each data packet of a flow by a random time up to `most` before its first link.
    pub(crate) fn add_jitter(&mut self, flow: u32, most: Duration, stream: Stream) {
        let line = self.network.add_line(Duration::ZERO);
        self.flows[flow as usize].jitter = Some(Box::new(Jitter::new(most, stream, line)));
    }

    /// Runs all events up to and including `end`.
    pub(crate) fn run_until(&mut self, end: Time) {
        while let Some((key, event)) = self.queue.first() {
            if key.time > end {
                break;
            }
            self.now = key.time;
            self.events += 1;
            match event {
                Event::Arrival(line) => {
                    let (packet, next) = self.network.lines[line as usize].pop();
                    match next {
                        Some(next) if !self.is_naive => self.queue.replace_first(next),
                        _ => self.queue.pop_first(),
                    }
                    self.forward(packet.expect("a line with an event holds a packet"));
                }
                Event::Timer(flow) => {
                    self.queue.pop_first();
                    self.on_timer(flow);
                }
                Event::AckTimer(flow) => {
                    self.queue.pop_first();
                    self.on_ack_timer(flow);
                }
                Event::Pace(flow) => {
                    self.queue.pop_first();
                    if let Source::Window(sender) = &mut self.flows[flow as usize].source
                        && sender.on_pace(self.now)
                    {
                        self.send_all(flow);
                    }
                }
                Event::Start(flow) => {
                    self.queue.pop_first();
                    self.send_all(flow);
                }
                Event::Offer(flow) => {
                    self.queue.pop_first();
                    if let Some(offer) = &mut self.flows[flow as usize].offer {
                        offer.is_waiting = false;
                    }
                    self.send_all(flow);
                }
                Event::Stop(flow) => {
                    self.queue.pop_first();
                    if let Source::Window(sender) = &mut self.flows[flow as usize].source {
                        sender.stop();
                    }
                }
            }
        }
        self.now = end;
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }

    #[inline]
    fn key(&mut self, time: Time) -> Key {
        self.order += 1;
        Key { time, order: self.order }
    }

    fn schedule(&mut self, time: Time, event: Event) {
        let key = self.key(time);
        self.queue.push(key, event);
    }

    /// A packet goes on: into its next link, or to its end.
    #[inline]
    fn forward(&mut self, mut packet: Packet) {
        let flow = &mut self.flows[packet.flow as usize];
        let route = flow.routes[usize::from(packet.kind == Kind::Ack)];
        let at = route.begin + u32::from(packet.hop);
        if at == route.end {
            return self.arrive(packet);
        }
        let stage = self.network.stages[at as usize];
        let leaves = match stage.link {
            None => self.now,
            Some(link) => match self.network.links[link as usize].offer(self.now, packet.bytes) {
                Fate::Leaves(leaves) => leaves,
                Fate::Dropped | Fate::Lost => {
                    flow.counts.dropped += u64::from(packet.kind == Kind::Data);
                    return;
                }
            },
        };
        packet.hop += 1;
        let arrives = leaves.saturating_add(self.network.lines[stage.line as usize].delay);
        self.put(stage.line, arrives, packet);
    }

    /// Puts a packet on a line whose end it reaches at `arrives`, after all others on it.
    #[inline]
    fn put(&mut self, index: u32, arrives: Time, packet: Packet) {
        let key = self.key(arrives);
        if self.network.lines[index as usize].push(key, packet) || self.is_naive {
            self.queue.push(key, Event::Arrival(index));
        }
    }

    fn arrive(&mut self, packet: Packet) {
        let flow = &mut self.flows[packet.flow as usize];
        match packet.kind {
            Kind::Data => {
                flow.counts.arrived += 1;
                let is_in_order = flow.delayed_ack.is_some() && flow.receiver.expects(packet.number);
                flow.receiver.on_data(packet.number);
                if flow.completed.is_none() && flow.receiver.next() >= flow.source.size_packets() {
                    flow.completed = Some(self.now);
                }
                if matches!(flow.source, Source::Constant(_)) {
                    return;
                }
                let mut stamp = packet.stamp;
                if let Some(delayed) = &mut flow.delayed_ack {
                    let Some(echo) = delayed.on_data(self.now, stamp, is_in_order) else {
                        return self.arm_ack(packet.flow);
                    };
                    stamp = echo;
                }
                self.acknowledge(packet.flow, stamp);
            }
            Kind::Ack => {
                if let Source::Window(sender) = &mut flow.source {
                    if sender.on_ack(self.now, packet.number, &packet.blocks, packet.stamp) {
                        flow.losses.push(self.now);
                    }
                    self.send_all(packet.flow);
                }
            }
        }
    }

    /// An acknowledgement sets out.
    #[inline]
    fn acknowledge(&mut self, index: u32, stamp: Time) {
        let flow = &self.flows[index as usize];
        let ack = Packet {
            flow: index,
            bytes: flow.ack_bytes,
            hop: 0,
            kind: Kind::Ack,
            number: flow.receiver.next(),
            stamp,
            blocks: flow.receiver.blocks(),
        };
        self.forward(ack);
    }

    /// Schedules the event of a delayed acknowledgement if none is pending.
    fn arm_ack(&mut self, index: u32) {
        if let Some(at) = self.flows[index as usize].delayed_ack.as_mut().and_then(|delayed| delayed.arm()) {
            self.schedule(at, Event::AckTimer(index));
        }
    }

    fn on_ack_timer(&mut self, index: u32) {
        let Some(delayed) = &mut self.flows[index as usize].delayed_ack else { return };
        match delayed.on_timer(self.now) {
            Some(stamp) => self.acknowledge(index, stamp),
            None => self.arm_ack(index),
        }
    }

    /// Sends all that the source has to send now, and sees to it that it is asked again.
    fn send_all(&mut self, index: u32) {
        for burst in 0_u64.. {
            let flow = &mut self.flows[index as usize];
            let sender = match &mut flow.source {
                Source::Window(sender) => sender,
                Source::Constant(constant) => {
                    let (number, again) = constant.poll_send(self.now, flow.data_bytes);
                    if let Some(number) = number {
                        self.send(index, number);
                    }
                    if let Some(again) = again {
                        self.schedule(again, Event::Offer(index));
                    }
                    return;
                }
            };
            let offered = flow.offer.as_mut().is_none_or(|offer| offer.has_packet(self.now, flow.data_bytes));
            if burst == flow.options.max_burst {
                sender.end_burst(offered);
                break;
            }
            let number = match sender.poll_send(self.now, offered) {
                None => break,
                Some(Next::New(number)) => {
                    if let Some(offer) = &mut flow.offer {
                        offer.take(flow.data_bytes);
                    }
                    number
                }
                Some(Next::Again(number)) => {
                    flow.counts.resent += 1;
                    number
                }
            };
            self.send(index, number);
        }
        self.arm(index);
        self.await_offer(index);
    }

    /// A data packet sets out.
    #[inline]
    fn send(&mut self, index: u32, number: u64) {
        let flow = &mut self.flows[index as usize];
        flow.counts.sent += 1;
        let mut packet = Packet {
            flow: index,
            bytes: flow.data_bytes,
            hop: 0,
            kind: Kind::Data,
            number,
            stamp: self.now,
            blocks: [Block::default(); BLOCKS],
        };
        let Some(jitter) = &mut flow.jitter else { return self.forward(packet) };
        // The stamp is that of the network, as ns-2 has it: the host's own delay is in no round-trip time.
        packet.stamp = jitter.enters(self.now);
        let line = jitter.line;
        self.put(line, packet.stamp, packet);
    }

    /// If the application alone holds the flow back: comes again when it has a packet.
    fn await_offer(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        let (Source::Window(sender), Some(offer)) = (&flow.source, &mut flow.offer) else { return };
        if sender.is_window_limited() || offer.is_waiting {
            return;
        }
        if let Some(at) = offer.next_packet(self.now, flow.data_bytes) {
            offer.is_waiting = true;
            self.schedule(at, Event::Offer(index));
        }
    }

    /// Schedules the timer event and the pacer's where they are needed and not pending.
    fn arm(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        let Source::Window(sender) = &mut flow.source else { return };
        let paced = sender.arm_pace();
        if let (None, Some(deadline)) = (flow.timer, sender.deadline()) {
            let at = deadline.max(self.now);
            flow.timer = Some(at);
            self.schedule(at, Event::Timer(index));
        }
        if let Some(at) = paced {
            self.schedule(at, Event::Pace(index));
        }
    }

    fn on_timer(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        flow.timer = None;
        let Source::Window(sender) = &mut flow.source else { return };
        if sender.on_timer(self.now) {
            flow.losses.push(self.now);
            self.send_all(index);
        } else {
            self.arm(index);
        }
    }

    /// Counts each flow's data packets that are under way, and checks that none came from nowhere or vanished.
    pub(crate) fn count_in_flight(&mut self) {
        for line in &self.network.lines {
            for packet in line.packets().filter(|packet| packet.kind == Kind::Data) {
                self.flows[packet.flow as usize].counts.in_flight += 1;
            }
        }
        for (index, flow) in self.flows.iter().enumerate() {
            let FlowCounts { sent, arrived, dropped, in_flight, .. } = flow.counts;
            assert_eq!(sent, arrived + dropped + in_flight, "packets of flow {index} are conserved: {:?}", flow.counts);
        }
    }
}
