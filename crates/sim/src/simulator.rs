//! The event loop.

mod closing;
mod reception;

use fairwave_scenario::TraceKind;
use fairwave_scenario::random::RandomStream;
use fairwave_units::{Duration, Time};

use crate::background::BackgroundTable;
use crate::delay_log::DelayLog;
use crate::event_queue::{EventQueue, EventTime};
use crate::flow::{FlowCounts, FlowOptions, SimFlow};
use crate::gtp::GtpHosts;
use crate::jitter::Jitter;
use crate::link::LinkVerdict;
use crate::packet::{BlockStore, HeaderStore, SimPacket, SimPacketKind};
use crate::rated::Out;
use crate::receiver::WindowReceiver;
use crate::route::{Network, Route, RouteStep};
use crate::sender::WindowSender;
use crate::source::TrafficSource;
use crate::token_bucket::TokenBucket;
use crate::tracer::Observer;
use closing::Unfinished;

/// An event of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimEvent {
    /// The first packet of a line arrives.
    Arrival(u32),
    /// A flow's retransmission timer.
    Timer(u32),
    /// A flow's delayed acknowledgement.
    AckTimer(u32),
    /// A flow's pacer releases the next packet.
    Pace(u32),
    Start(u32),
    Stop(u32),
    /// A flow's application has the next packet's worth of data.
    Offer(u32),
    /// A table of web traffic has a new flow, or stops.
    Background(u32),
    /// The wire of a link is free, and the rule of its queue decides what leaves.
    Departure(u32),
    /// The rule of a link is due.
    Control(u32),
    /// The timer of a host of GTP is due.
    Host(u32),
    /// The demand of a session of GTP changes.
    Demand(u32),
}

/// Interval of progress reports, in events: some milliseconds of work, so that their cost is negligible.
const STEP_EVENTS: u64 = 65_536;

pub(crate) struct Simulator<'a> {
    pub(crate) network: Network,
    /// The sessions, then the flows of background traffic.
    pub(crate) flows: Vec<SimFlow>,
    /// How many of `flows` are sessions.
    pub(crate) sessions: usize,
    pub(crate) backgrounds: Vec<BackgroundTable>,
    /// By background flow: index of the table that it belongs to.
    pub(crate) owners: Vec<u32>,
    pub(crate) blocks: BlockStore,
    pub(crate) headers: HeaderStore,
    pub(crate) gtp: GtpHosts,
    /// A session's output; kept for its allocation.
    pub(crate) outbox: Vec<Out>,
    /// Arrivals, one entry per line.
    queue: EventQueue<SimEvent>,
    /// All other events. Short flows leave many timers that fire without effect; in a separate queue they do not slow
    /// arrivals down.
    timers: EventQueue<SimEvent>,
    order: u64,
    now: Time,
    /// Whether there is a pending event per packet, not per line: the reference engine for tests.
    is_naive: bool,
    pub(crate) events: u64,
    /// Number of events at the next progress report.
    next_beat: u64,
    /// Called for all events of packets.
    pub(crate) observer: Option<&'a mut Observer<'a>>,
    /// Set if the window of the means closes with the last session that ends.
    pub(crate) closing: Option<Unfinished>,
    /// Window of the means.
    pub(crate) window: (Time, Time),
}

impl Simulator<'_> {
    pub(crate) fn new(network: Network, is_naive: bool) -> Self {
        Self {
            network,
            flows: Vec::new(),
            sessions: 0,
            backgrounds: Vec::new(),
            owners: Vec::new(),
            blocks: BlockStore::default(),
            headers: HeaderStore::default(),
            gtp: GtpHosts::default(),
            outbox: Vec::new(),
            queue: EventQueue::new(),
            timers: EventQueue::new(),
            order: 0,
            now: Time::ZERO,
            is_naive,
            events: 0,
            next_beat: STEP_EVENTS,
            observer: None,
            closing: None,
            window: (Time::ZERO, Time::MAX),
        }
    }

    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    pub(crate) fn network_mut(&mut self) -> &mut Network {
        &mut self.network
    }

    /// The flows that are sessions, in the scenario's order.
    pub(crate) fn sessions(&self) -> &[SimFlow] {
        &self.flows[..self.sessions]
    }

    /// Arms the rules of all links.
    pub(crate) fn arm_links(&mut self) {
        for link in 0..self.network.links.len() {
            if let Some(at) = self.network.links[link].control().map(|control| control.next_timer()) {
                self.schedule(at, SimEvent::Control(link as u32));
            }
        }
    }

    /// Adds the session of the next route, and returns its index.
    pub(crate) fn add_flow(
        &mut self,
        source: TrafficSource,
        [data_bytes, ack_bytes]: [u32; 2],
        offer: Option<TokenBucket>,
        (start, stop): (Time, Option<Time>),
        options: FlowOptions,
    ) -> u32 {
        let index = self.push_flow(source, self.network.routes[self.sessions], [data_bytes, ack_bytes]);
        self.sessions += 1;
        let flow = &mut self.flows[index as usize];
        flow.offer = offer;
        flow.options = options;
        flow.delayed_ack = options.delayed_ack.then(Box::default);
        if flow.source.is_answered() {
            let ways = flow.routes.map(|route| self.network.propagation(route));
            flow.delays = Some(Box::new(DelayLog::new(self.window, ways)));
        }
        self.schedule(start, SimEvent::Start(index));
        if let Some(stop) = stop {
            self.schedule(stop, SimEvent::Stop(index));
        }
        index
    }

    /// Adds a flow on a path, and returns its index.
    pub(crate) fn push_flow(
        &mut self,
        source: TrafficSource,
        routes: [Route; 2],
        [data_bytes, ack_bytes]: [u32; 2],
    ) -> u32 {
        let flow = u32::try_from(self.flows.len()).expect("a scenario has at most 10^7 elements");
        self.network.open(routes[0], source.is_answered());
        if source.is_answered() {
            self.network.open(routes[1], true);
        }
        self.flows.push(SimFlow {
            source,
            receiver: WindowReceiver::default(),
            routes,
            data_bytes,
            ack_bytes,
            timer: None,
            later_timer: None,
            offer: None,
            options: FlowOptions::default(),
            jitter: None,
            delayed_ack: None,
            losses: Vec::new(),
            completed: None,
            has_ended: false,
            counts: FlowCounts::default(),
            delays: None,
            life: 0,
        });
        flow
    }

    /// Delays each data packet of a flow by a random time up to `most` before its first link.
    pub(crate) fn add_jitter(&mut self, flow: u32, most: Duration, stream: RandomStream) {
        let line = self.network.add_line(Duration::ZERO);
        self.flows[flow as usize].jitter = Some(Box::new(Jitter::new(most, stream, line)));
    }

    /// Runs all events up to and including `end`; calls `on_step` once in [`STEP_EVENTS`] events.
    pub(crate) fn run_until(&mut self, end: Time, on_step: &mut dyn FnMut(Time)) {
        let end_key = EventTime::after(end);
        loop {
            let timer = self.timers.first().min(end_key);
            let next = self.queue.pop_before(timer).or_else(|| self.timers.pop_before(end_key));
            let Some((now, event)) = next else { break };
            self.now = now;
            self.events += 1;
            if self.events >= self.next_beat {
                self.next_beat = self.events + STEP_EVENTS;
                on_step(now);
            }
            match event {
                SimEvent::Arrival(line) => {
                    let line = &mut self.network.lines[line as usize];
                    let (packet, next) = line.pop(&mut self.network.pool);
                    if let Some(link) = line.controlled {
                        self.settle(link);
                    }
                    if let Some(next) = next
                        && !self.is_naive
                    {
                        self.queue.push(next, event);
                    }
                    self.forward(packet.expect("a line with an event holds a packet"));
                }
                SimEvent::Timer(flow) => self.on_timer(flow),
                SimEvent::AckTimer(flow) => self.on_ack_timer(flow),
                SimEvent::Pace(flow) => {
                    if let Some(sender) = self.flows[flow as usize].source.sender_mut()
                        && sender.on_pace(self.now)
                    {
                        self.send_all(flow);
                    }
                }
                SimEvent::Start(flow) => self.send_all(flow),
                SimEvent::Offer(flow) => {
                    if let Some(offer) = &mut self.flows[flow as usize].offer {
                        offer.is_waiting = false;
                    }
                    self.send_all(flow);
                }
                SimEvent::Background(index) => self.on_background(index),
                SimEvent::Departure(link) => self.depart(link),
                SimEvent::Control(link) => self.on_control(link),
                SimEvent::Host(host) => self.on_host_timer(host),
                SimEvent::Demand(flow) => self.change_demand(flow),
                SimEvent::Stop(flow) => self.stop(flow),
            }
        }
        self.now = end;
        for line in 0..self.network.lines.len() {
            self.deliver_quietly(line as u32);
        }
    }

    /// Whether all arrivals are events: an observer needs them in order.
    #[inline]
    fn takes_each_in_turn(&self) -> bool {
        self.is_naive || self.observer.is_some()
    }

    /// Finishes the headers of all packets that have left a link with a rule.
    #[inline]
    fn settle(&mut self, link: u32) {
        if let Some(control) = self.network.links[link as usize].control() {
            control.catch_up(self.now, &mut self.headers);
        }
    }

    fn stop(&mut self, flow: u32) {
        self.stop_source(flow);
        self.note_end(flow, self.now);
    }

    fn on_control(&mut self, link: u32) {
        let Some(control) = self.network.links[link as usize].control() else { return };
        control.on_timer(self.now, &mut self.headers);
        let next = control.next_timer();
        self.schedule(next, SimEvent::Control(link));
    }

    /// Counts arrivals at sinks that do not answer.
    #[inline]
    fn deliver_quietly(&mut self, line: u32) {
        if self.takes_each_in_turn() || !self.network.lines[line as usize].is_quiet() {
            return;
        }
        while let Some((at, packet)) = self.network.lines[line as usize].pop_until(&mut self.network.pool, self.now) {
            self.events += 1;
            self.arrive_data(packet, at);
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }

    #[inline]
    fn key(&mut self, time: Time) -> EventTime {
        self.order += 1;
        EventTime::new(time, self.order)
    }

    pub(crate) fn schedule(&mut self, time: Time, event: SimEvent) {
        let key = self.key(time);
        self.timers.push(key, event);
    }

    /// Moves a packet into its next link, or to its end.
    #[inline]
    pub(crate) fn forward(&mut self, packet: SimPacket) {
        let (line, leaves) = match self.network.stages[packet.stage as usize] {
            RouteStep::Link { link, line } => match self.network.offer(link, self.now, &packet, &mut self.headers) {
                LinkVerdict::Leaves(leaves) => {
                    self.trace(packet, TraceKind::Entered, Some(link));
                    if let Some(card) = self.network.links[link as usize].card() {
                        let is_own = self.flows[packet.flow as usize].source.is_between_hosts();
                        card.count(self.now, leaves, packet.bytes, is_own);
                    }
                    (line, leaves)
                }
                LinkVerdict::Dropped => {
                    self.trace(packet, TraceKind::Dropped, Some(link));
                    return self.drop(packet);
                }
                LinkVerdict::Lost => {
                    self.trace(packet, TraceKind::Lost, Some(link));
                    return self.drop(packet);
                }
                LinkVerdict::Queued => return self.enqueue(link, packet),
            },
            RouteStep::Delay { line } => (line, self.now),
            RouteStep::End => return self.arrive(packet),
        };
        self.leave(line, leaves, packet);
    }

    /// Puts a packet on the line after its link, which it leaves at `leaves`.
    #[inline]
    pub(crate) fn leave(&mut self, line: u32, leaves: Time, packet: SimPacket) {
        let arrives = leaves.saturating_add(self.network.lines[line as usize].delay);
        self.put(line, arrives, SimPacket { stage: packet.stage + 1, ..packet });
    }

    pub(crate) fn drop(&mut self, packet: SimPacket) {
        let (_, plain) = self.headers.take(packet.kind);
        self.blocks.take(plain);
        let flow = &mut self.flows[packet.flow as usize];
        if flow.source.is_between_hosts() {
            self.gtp.parcels.take(packet.number);
        }
        let counts = &mut flow.counts;
        if packet.kind.is_data() {
            counts.dropped += 1;
        } else {
            counts.acks_dropped += 1;
        }
        if packet.flow as usize >= self.sessions {
            self.free_if_over(packet.flow);
        }
    }

    /// Puts a packet on a line whose end it reaches at `arrives`, after all others on it.
    #[inline]
    fn put(&mut self, index: u32, arrives: Time, packet: SimPacket) {
        let key = self.key(arrives);
        self.deliver_quietly(index);
        let line = &mut self.network.lines[index as usize];
        let is_quiet = line.is_quiet();
        let is_first = line.push(&mut self.network.pool, key, packet);
        if self.is_naive || (is_first && (!is_quiet || self.takes_each_in_turn())) {
            self.queue.push(key, SimEvent::Arrival(index));
        }
    }

    /// Sends a data packet.
    #[inline]
    pub(crate) fn send(&mut self, index: u32, number: u64, what: TraceKind) {
        let flow = &mut self.flows[index as usize];
        flow.counts.sent += 1;
        let sender = flow.source.sender().filter(|_| flow.options.is_headed);
        let header = sender.and_then(WindowSender::header);
        let mut packet = SimPacket {
            number,
            stamp: self.now,
            flow: index,
            bytes: flow.data_bytes,
            stage: flow.routes[0].begin,
            kind: header.map_or(SimPacketKind::DATA, |header| self.headers.keep(header)),
        };
        self.trace(packet, what, None);
        let Some(jitter) = &mut self.flows[index as usize].jitter else { return self.forward(packet) };
        // The stamp is that of the network, as in ns-2: round-trip times exclude the host's own delay.
        packet.stamp = jitter.enters(self.now);
        match self.network.stages[packet.stage as usize] {
            // Propagation comes first: both delays together, on a separate line, as other flows' packets would
            // overtake.
            RouteStep::Delay { line: shared } => {
                let line = jitter.line;
                packet.stage += 1;
                let arrives = packet.stamp.saturating_add(self.network.lines[shared as usize].delay);
                self.put(line, arrives, packet);
            }
            RouteStep::Link { .. } | RouteStep::End => {
                let line = jitter.line;
                self.put(line, packet.stamp, packet);
            }
        }
    }

    /// Ensures a timer event at a deadline, or before.
    #[inline]
    pub(crate) fn arm_at(&mut self, index: u32, deadline: Time) {
        let flow = &mut self.flows[index as usize];
        if flow.timer.is_none_or(|timer| deadline < timer) {
            let at = deadline.max(self.now);
            flow.later_timer = flow.later_timer.or(flow.timer);
            flow.timer = Some(at);
            self.schedule(at, SimEvent::Timer(index));
        }
    }

    fn on_timer(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        if flow.timer != Some(self.now) {
            return;
        }
        flow.timer = flow.later_timer.take();
        self.wake(index);
    }

    /// Counts each flow's data packets in flight, and checks that packets are conserved.
    pub(crate) fn count_in_flight(&mut self) {
        let now = self.now;
        self.network.links.iter_mut().for_each(|link| link.count_area(now));
        let mut in_flight = vec![[0_u64; 2]; self.flows.len()];
        let mut count = |packet: &SimPacket| in_flight[packet.flow as usize][usize::from(packet.kind.is_data())] += 1;
        for line in &self.network.lines {
            line.packets(&self.network.pool).for_each(&mut count);
        }
        self.visit_queued(&mut count);
        for (flow, [acks, data]) in self.flows.iter_mut().zip(in_flight) {
            flow.counts.in_flight += data;
            flow.counts.acks_in_flight += acks;
        }
        for (index, flow) in self.flows.iter().enumerate() {
            let FlowCounts { sent, arrived, dropped, in_flight, acks_arrived, acks_dropped, acks_in_flight, .. } =
                flow.counts;
            assert_eq!(sent, arrived + dropped + in_flight, "packets of flow {index} are conserved: {:?}", flow.counts);
            if flow.source.is_acknowledged() && flow.delayed_ack.is_none() {
                let acks = acks_arrived + acks_dropped + acks_in_flight;
                assert_eq!(arrived, acks, "acknowledgements of flow {index} are conserved: {:?}", flow.counts);
            }
        }
    }
}
