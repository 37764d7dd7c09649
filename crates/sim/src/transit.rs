//! Packets on their way: from a source through links and lines to the end of a path.

use fairwave_scenario::TraceKind;
use fairwave_scenario::random::RandomStream;
use fairwave_schemes::header::CongestionHeader;
use fairwave_units::{Duration, Time};

use crate::agenda::Agenda;
use crate::closing_window::{Closing, WindowTotals};
use crate::conditions::{Crossing, Refusal};
use crate::contents::Contents;
use crate::delay_log::DelayLog;
use crate::event::SimEvent;
use crate::flow::{FlowOptions, SimFlow, Spread};
use crate::flows::Flows;
use crate::jitter::Jitter;
use crate::link::LinkVerdict;
use crate::packet::{SimPacket, SimPacketKind};
use crate::rated::Out;
use crate::route::{Network, Route, RouteStep};
use crate::source::TrafficSource;
use crate::token_bucket::TokenBucket;
use crate::tracer::{Observer, Sight};

/// The network, the flows in it, and their packets. Knows no kind of source: sources send by way of it.
pub(crate) struct Transit<'a> {
    pub(crate) network: Network,
    pub(crate) flows: Flows,
    pub(crate) contents: Contents,
    pub(crate) agenda: Agenda,
    /// A session's output; kept for its allocation.
    pub(crate) outbox: Vec<Out>,
    /// Whether there is a pending event per packet, not per line: the reference engine for tests.
    is_naive: bool,
    /// Called for all events of packets.
    pub(crate) observer: Option<&'a mut Observer<'a>>,
    /// Set if the window of the means closes with the last session that ends.
    pub(crate) closing: Option<Closing>,
    /// Window of the means.
    pub(crate) window: (Time, Time),
}

impl Transit<'_> {
    pub(crate) fn new(network: Network, is_naive: bool) -> Self {
        Self {
            network,
            flows: Flows::default(),
            contents: Contents::default(),
            agenda: Agenda::new(),
            outbox: Vec::new(),
            is_naive,
            observer: None,
            closing: None,
            window: (Time::ZERO, Time::MAX),
        }
    }

    #[inline]
    pub(crate) fn now(&self) -> Time {
        self.agenda.now()
    }

    /// Adds the session of the next route, and returns its index.
    pub(crate) fn add_session(
        &mut self,
        source: TrafficSource,
        bytes: [u32; 2],
        offer: Option<TokenBucket>,
        (start, stop): (Time, Option<Time>),
        options: FlowOptions,
    ) -> u32 {
        let routes = self.network.routes[self.flows.sessions().len()];
        self.open(routes, source.is_answered());
        let mut flow = SimFlow::new(source, routes, bytes);
        flow.offer = offer;
        flow.options = options;
        flow.delayed_ack = options.delayed_ack.then(Box::default);
        let is_answered = flow.source.is_answered();
        if is_answered {
            let ways = routes.map(|route| self.network.propagation(route));
            flow.delays = Some(Box::new(DelayLog::new(self.window, ways)));
        }
        let index = self.flows.add_session(flow);
        for route in self.network.spreads.get(&index).cloned().unwrap_or_default() {
            self.network.open(route, is_answered);
        }
        self.agenda.schedule(start, SimEvent::Start(index));
        if let Some(stop) = stop {
            self.agenda.schedule(stop, SimEvent::Stop(index));
        }
        index
    }

    /// Adds a flow to a table of background traffic, and returns its index.
    pub(crate) fn add_background(&mut self, table: u32, source: u32, sender: TrafficSource) -> u32 {
        let background = &self.flows.tables()[table as usize];
        let (routes, bytes) = (background.way(source), background.bytes);
        self.open(routes, sender.is_answered());
        self.flows.add_background(table, SimFlow::new(sender, routes, bytes))
    }

    /// Lets each data packet of a session take one of several paths.
    pub(crate) fn add_spread(&mut self, flow: u32, stream: RandomStream) {
        let routes = self.network.spreads.get(&flow).cloned();
        self.flows[flow].spread = routes.map(|routes| Box::new(Spread { routes, stream }));
    }

    fn open(&mut self, routes: [Route; 2], is_answered: bool) {
        self.network.open(routes[0], is_answered);
        if is_answered {
            self.network.open(routes[1], true);
        }
    }

    /// Delays each data packet of a flow by a random time up to `most` before its first link.
    pub(crate) fn add_jitter(&mut self, flow: u32, most: Duration, stream: RandomStream) {
        let line = self.network.add_line(Duration::ZERO);
        self.flows[flow].jitter = Some(Box::new(Jitter::new(most, stream, line)));
    }

    /// Reports an event of a packet. Without an observer this is one test of a pointer; the packet is passed by value,
    /// as a reference would keep it out of registers everywhere.
    #[expect(clippy::inline_always, reason = "a call a hop would cost what the observer must not")]
    #[inline(always)]
    pub(crate) fn trace(&mut self, packet: SimPacket, what: TraceKind, link: Option<u32>) {
        if self.observer.is_some() {
            self.report(packet, what, link);
        }
    }

    #[cold]
    #[inline(never)]
    fn report(&mut self, packet: SimPacket, what: TraceKind, link: Option<u32>) {
        let Self { observer: Some(observer), network, flows, contents, agenda, .. } = self else { return };
        Sight { network, flows, contents }.report(observer, agenda.now(), packet, what, link);
    }

    /// Sends a data packet, with the congestion header of its sender if it has one.
    #[inline]
    pub(crate) fn send(&mut self, index: u32, number: u64, what: TraceKind) {
        let flow = &self.flows[index];
        let sender = flow.source.sender().filter(|_| flow.options.is_headed);
        let header = sender.and_then(|sender| sender.header(what == TraceKind::Resent));
        self.send_headed(index, number, what, header);
    }

    /// Sends a data packet with this congestion header.
    #[inline]
    pub(crate) fn send_headed(&mut self, index: u32, number: u64, what: TraceKind, header: Option<CongestionHeader>) {
        let flow = &mut self.flows[index];
        flow.counts.sent += 1;
        let mut packet = SimPacket {
            number,
            stamp: self.agenda.now(),
            flow: index,
            bytes: flow.data_bytes,
            stage: flow.spread.as_mut().map_or(flow.routes[0], |spread| spread.next_route()).begin,
            kind: header.map_or(SimPacketKind::DATA, |header| self.contents.headers.keep(header)),
        };
        self.trace(packet, what, None);
        let now = self.now();
        let Some(jitter) = &mut self.flows[index].jitter else { return self.enter(packet) };
        // The stamp is that of the network, as in ns-2: round-trip times exclude the host's own delay.
        packet.stamp = jitter.enters(now);
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

    /// Sends a message of a session that sets its own rate.
    pub(crate) fn send_message(&mut self, index: u32, message: u64, bytes: u32, to_source: bool) {
        let kind = if to_source { SimPacketKind::PLAIN_ACK } else { SimPacketKind::NOTICE };
        let stage = self.flows[index].routes[usize::from(to_source)].begin;
        let stamp = self.now();
        self.launch(SimPacket { number: message, stamp, flow: index, bytes, stage, kind }, TraceKind::Sent);
    }

    /// A packet leaves its host.
    #[inline]
    pub(crate) fn launch(&mut self, packet: SimPacket, what: TraceKind) {
        self.trace(packet, what, None);
        self.enter(packet);
    }

    /// Moves a packet into the first link or line of its path.
    #[inline]
    fn enter(&mut self, packet: SimPacket) {
        self.forward(packet, self.network.stages[packet.stage as usize]);
    }

    /// Moves a packet into its next link or line.
    #[inline]
    pub(crate) fn forward(&mut self, packet: SimPacket, step: RouteStep) {
        let now = self.now();
        let (line, leaves) = match step {
            RouteStep::Link { link, line } => {
                match self.network.offer(link, now, &packet, &mut self.contents.headers) {
                    LinkVerdict::Leaves(leaves) => {
                        self.trace(packet, TraceKind::Entered, Some(link));
                        self.count_departure(link, leaves, packet);
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
                }
            }
            RouteStep::Delay { line } => (line, now),
            RouteStep::End => unreachable!("a path has a link or a line before its end"),
        };
        self.leave(line, leaves, packet);
    }

    /// Puts a packet on the line after its link, which it leaves at `leaves`.
    #[inline]
    fn leave(&mut self, line: u32, leaves: Time, packet: SimPacket) {
        let arrives = leaves.saturating_add(self.network.lines[line as usize].delay);
        self.put(line, arrives, SimPacket { stage: packet.stage + 1, ..packet });
    }

    /// A packet reaches a link whose queue decides when it leaves.
    #[inline(never)]
    fn enqueue(&mut self, link: u32, packet: SimPacket) {
        let now = self.now();
        if let Some(refusal) = self.network.links[link as usize].refuses(now, &packet) {
            let what = if refusal == Refusal::Lost { TraceKind::Lost } else { TraceKind::Dropped };
            self.trace(packet, what, Some(link));
            return self.drop(packet);
        }
        let at = &mut self.network.links[link as usize];
        let is_idle = at.enqueue(now, packet, &mut self.contents.headers);
        if at.queued.as_ref().is_none_or(|queued| !queued.dropped.contains(&packet)) {
            self.trace(packet, TraceKind::Entered, Some(link));
        }
        self.drop_selected(link);
        if is_idle {
            self.depart(link);
        }
    }

    /// The wire of a link is free: sends the next packet.
    pub(crate) fn depart(&mut self, link: u32) {
        let now = self.now();
        if let Some(at) = self.network.links[link as usize].follow_capacity(now) {
            return self.agenda.schedule(at, SimEvent::Departure(link));
        }
        let next = self.network.links[link as usize].dequeue(now, &mut self.contents.headers);
        self.drop_selected(link);
        let Some((packet, leaves)) = next else { return };
        self.agenda.schedule(leaves, SimEvent::Departure(link));
        self.count_departure(link, leaves, packet);
        let RouteStep::Link { line, .. } = self.network.stages[packet.stage as usize] else {
            unreachable!("a queued packet is at a link");
        };
        match self.network.links[link as usize].conditions().map(|conditions| conditions.cross(now)) {
            None => self.leave(line, leaves, packet),
            Some(crossing) => self.cross(link, line, leaves, packet, crossing),
        }
    }

    /// Puts a packet on the line after a link with conditions.
    fn cross(&mut self, link: u32, line: u32, leaves: Time, packet: SimPacket, crossing: Crossing) {
        let line = crossing.late.map_or(line, |late| self.network.late_line(link, line, late));
        let pipe = &self.network.lines[line as usize];
        let delay = Duration::from_nanos(pipe.delay.as_nanos().saturating_add_signed(crossing.extra_ns));
        // Packets of a line keep their order.
        let earliest = pipe.last_arrival(&self.network.pool).unwrap_or(leaves);
        let arrives = leaves.saturating_add(delay).max(earliest);
        let packet = SimPacket { stage: packet.stage + 1, ..packet };
        let copy = if crossing.is_doubled { self.copy(packet) } else { None };
        for packet in [Some(packet), copy].into_iter().flatten() {
            self.put(line, arrives, packet);
        }
    }

    /// A second copy of a packet; `None` for messages, whose contents exist once.
    fn copy(&mut self, packet: SimPacket) -> Option<SimPacket> {
        let flow = &mut self.flows[packet.flow];
        let is_data = packet.kind.is_data();
        if flow.source.is_between_hosts() || !(is_data || flow.source.is_acknowledged()) {
            return None;
        }
        let copied = if is_data { &mut flow.counts.copied } else { &mut flow.counts.acks_copied };
        *copied += 1;
        Some(self.contents.copy(packet))
    }

    /// Drops what the queue of a link selected.
    fn drop_selected(&mut self, link: u32) {
        while let Some(packet) =
            self.network.links[link as usize].queued.as_mut().and_then(|queued| queued.dropped.pop())
        {
            self.network.links[link as usize].counts.dropped_packets += 1;
            self.trace(packet, TraceKind::Dropped, Some(link));
            self.drop(packet);
        }
    }

    /// Counts a departure, if a host reads the link's counters.
    #[inline]
    fn count_departure(&mut self, link: u32, leaves: Time, packet: SimPacket) {
        if let Some(card) = self.network.links[link as usize].card() {
            let is_own = self.flows[packet.flow].source.is_between_hosts();
            card.count(self.agenda.now(), leaves, packet.bytes, is_own);
        }
    }

    fn drop(&mut self, packet: SimPacket) {
        let flow = &mut self.flows[packet.flow];
        self.contents.free(packet, flow.source.is_between_hosts());
        let counts = &mut flow.counts;
        if packet.kind.is_data() {
            counts.dropped += 1;
        } else {
            counts.acks_dropped += 1;
        }
        self.flows.free_if_over(packet.flow);
    }

    /// Puts a packet on a line whose end it reaches at `arrives`, after all others on it.
    #[inline]
    fn put(&mut self, index: u32, arrives: Time, packet: SimPacket) {
        let key = self.agenda.key(arrives);
        self.deliver_quietly(index);
        let line = &mut self.network.lines[index as usize];
        let is_quiet = line.is_quiet();
        let is_first = line.push(&mut self.network.pool, key, packet);
        if self.is_naive || (is_first && (!is_quiet || self.takes_each_in_turn())) {
            self.agenda.schedule_arrival(key, index);
        }
    }

    /// The packet at the end of a line, whose arrival is due.
    #[inline]
    pub(crate) fn take_arrival(&mut self, index: u32) -> SimPacket {
        let line = &mut self.network.lines[index as usize];
        let (packet, next) = line.pop(&mut self.network.pool);
        // Finishes the headers of all packets that have left a link with a rule.
        if let Some(link) = line.controlled
            && let Some(control) = self.network.links[link as usize].control()
        {
            control.catch_up(self.agenda.now(), &mut self.contents.headers);
        }
        if let Some(next) = next
            && !self.is_naive
        {
            self.agenda.schedule_arrival(next, index);
        }
        packet.expect("a line with an event holds a packet")
    }

    /// Whether all arrivals are events: an observer needs them in order.
    #[inline]
    fn takes_each_in_turn(&self) -> bool {
        self.is_naive || self.observer.is_some()
    }

    /// Counts arrivals at sinks that do not answer.
    #[inline]
    pub(crate) fn deliver_quietly(&mut self, line: u32) {
        if self.takes_each_in_turn() || !self.network.lines[line as usize].is_quiet() {
            return;
        }
        let now = self.now();
        while let Some((at, packet)) = self.network.lines[line as usize].pop_until(&mut self.network.pool, now) {
            self.agenda.events += 1;
            self.receive(packet, at);
        }
    }

    /// Records the arrival of a data packet at its sink.
    #[inline]
    pub(crate) fn receive(&mut self, packet: SimPacket, at: Time) {
        let flow = &mut self.flows[packet.flow];
        flow.counts.arrived += 1;
        if !flow.source.is_received() {
            return;
        }
        flow.receiver.on_data(packet.number);
        if flow.completed.is_none() && flow.receiver.next() >= flow.source.size_packets() {
            flow.completed = Some(at);
            self.note_end(packet.flow, at);
        }
    }

    /// Records that a session has delivered all, or was stopped. Repeated calls have no effect.
    pub(crate) fn note_end(&mut self, flow: u32, at: Time) {
        let Some(closing) = &mut self.closing else { return };
        if self.flows.is_session(flow) && !std::mem::replace(&mut self.flows[flow].has_ended, true) {
            closing.on_end(at, &mut self.flows, &mut self.network);
        }
    }

    /// The totals when the window of the means closed, if it has.
    pub(crate) fn closed(&self) -> Option<&WindowTotals> {
        self.closing.as_ref()?.totals.as_ref()
    }

    /// Ensures a timer event of a flow at a deadline, or before.
    #[inline]
    pub(crate) fn arm_at(&mut self, index: u32, deadline: Time) {
        if let Some(at) = self.flows[index].timer.arm(deadline, self.agenda.now()) {
            self.agenda.schedule(at, SimEvent::Timer(index));
        }
    }

    /// Counts each flow's data packets in flight, and checks that packets are conserved.
    pub(crate) fn count_in_flight(&mut self) {
        let now = self.now();
        self.network.links.iter_mut().for_each(|link| link.count_area(now));
        self.flows.count_in_flight(&self.network);
    }
}
