//! The loop: what happens next, and what follows from it.

use fairwave_schemes::session::CongestionController;
use fairwave_units::Time;

use crate::event_queue::{EventQueue, Key};
use crate::link::Fate;
use crate::offer::Offer;
use crate::packet::{BLOCKS, Block, Kind, Packet};
use crate::receiver::Receiver;
use crate::route::{Network, Route};
use crate::sender::{Next, Sender, SenderConfig};

/// A session in the network.
pub(crate) struct Flow {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    routes: [Route; 2],
    pub(crate) data_bytes: u32,
    pub(crate) ack_bytes: u32,
    /// When the pending timer event fires; it is moved by firing too early, not by being taken out.
    timer: Option<Time>,
    /// What the application offers, where that is limited.
    pub(crate) offer: Option<Offer>,
    pub(crate) losses: Vec<Time>,
    pub(crate) completed: Option<Time>,
    pub(crate) counts: FlowCounts,
}

/// What became of a session's data packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowCounts {
    pub(crate) sent_packets: u64,
    pub(crate) resent_packets: u64,
    pub(crate) arrived_packets: u64,
    pub(crate) dropped_packets: u64,
    pub(crate) in_flight_packets: u64,
}

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// The first packet of a line arrives.
    Arrival(u32),
    /// A flow's retransmission timer.
    Timer(u32),
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
    pub(crate) events: u64,
}

impl Simulator {
    pub(crate) fn new(network: Network) -> Self {
        Self { network, flows: Vec::new(), queue: EventQueue::new(), order: 0, now: Time::ZERO, events: 0 }
    }

    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// Adds the flow of the next route.
    pub(crate) fn add_flow(
        &mut self,
        controller: Box<dyn CongestionController>,
        config: SenderConfig,
        [data_bytes, ack_bytes]: [u32; 2],
        offer: Option<Offer>,
        (start, stop): (Time, Option<Time>),
    ) {
        let flow = u32::try_from(self.flows.len()).expect("a scenario has at most 10^7 sessions");
        self.flows.push(Flow {
            sender: Sender::new(controller, config),
            receiver: Receiver::default(),
            routes: self.network.routes[flow as usize],
            data_bytes,
            ack_bytes,
            timer: None,
            offer,
            losses: Vec::new(),
            completed: None,
            counts: FlowCounts::default(),
        });
        self.schedule(start, Event::Start(flow));
        if let Some(stop) = stop {
            self.schedule(stop, Event::Stop(flow));
        }
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
                        Some(next) => self.queue.replace_first(next),
                        None => self.queue.pop_first(),
                    }
                    self.forward(packet.expect("a line with an event holds a packet"));
                }
                Event::Timer(flow) => {
                    self.queue.pop_first();
                    self.on_timer(flow);
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
                    self.flows[flow as usize].sender.stop();
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
                    flow.counts.dropped_packets += u64::from(packet.kind == Kind::Data);
                    return;
                }
            },
        };
        packet.hop += 1;
        let line = &mut self.network.lines[stage.line as usize];
        self.order += 1;
        let key = Key { time: leaves.saturating_add(line.delay), order: self.order };
        if line.push(key, packet) {
            self.queue.push(key, Event::Arrival(stage.line));
        }
    }

    fn arrive(&mut self, packet: Packet) {
        let flow = &mut self.flows[packet.flow as usize];
        match packet.kind {
            Kind::Data => {
                flow.counts.arrived_packets += 1;
                flow.receiver.on_data(packet.number);
                if flow.completed.is_none() && flow.receiver.next() >= flow.sender.size_packets() {
                    flow.completed = Some(self.now);
                }
                let ack = Packet {
                    flow: packet.flow,
                    bytes: flow.ack_bytes,
                    hop: 0,
                    kind: Kind::Ack,
                    number: flow.receiver.next(),
                    stamp: packet.stamp,
                    blocks: flow.receiver.blocks(),
                };
                self.forward(ack);
            }
            Kind::Ack => {
                if flow.sender.on_ack(self.now, packet.number, &packet.blocks, packet.stamp) {
                    flow.losses.push(self.now);
                }
                self.send_all(packet.flow);
            }
        }
    }

    /// Sends all that the window allows, and keeps the timer running.
    fn send_all(&mut self, index: u32) {
        loop {
            let flow = &mut self.flows[index as usize];
            let offered = flow.offer.as_mut().is_none_or(|offer| offer.has_packet(self.now, flow.data_bytes));
            let Some(next) = flow.sender.poll_send(self.now, offered) else { break };
            flow.counts.sent_packets += 1;
            let number = match next {
                Next::New(number) => {
                    if let Some(offer) = &mut flow.offer {
                        offer.take(flow.data_bytes);
                    }
                    number
                }
                Next::Again(number) => {
                    flow.counts.resent_packets += 1;
                    number
                }
            };
            let packet = Packet {
                flow: index,
                bytes: flow.data_bytes,
                hop: 0,
                kind: Kind::Data,
                number,
                stamp: self.now,
                blocks: [Block::default(); BLOCKS],
            };
            self.forward(packet);
        }
        self.arm(index);
        self.await_offer(index);
    }

    /// If the application alone holds the flow back: comes again when it has a packet.
    fn await_offer(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        if flow.sender.is_window_limited() {
            return;
        }
        let Some(offer) = &mut flow.offer else { return };
        if offer.is_waiting {
            return;
        }
        if let Some(at) = offer.next_packet(self.now, flow.data_bytes) {
            offer.is_waiting = true;
            self.schedule(at, Event::Offer(index));
        }
    }

    /// Schedules the timer event if none is pending.
    fn arm(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        if let (None, Some(deadline)) = (flow.timer, flow.sender.deadline()) {
            let at = deadline.max(self.now);
            flow.timer = Some(at);
            self.schedule(at, Event::Timer(index));
        }
    }

    fn on_timer(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        flow.timer = None;
        if flow.sender.on_timer(self.now) {
            flow.losses.push(self.now);
            self.send_all(index);
        } else {
            self.arm(index);
        }
    }

    /// Data packets of each flow that are in links and lines.
    pub(crate) fn count_in_flight(&mut self) {
        for line in &self.network.lines {
            for packet in line.packets().filter(|packet| packet.kind == Kind::Data) {
                self.flows[packet.flow as usize].counts.in_flight_packets += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fairwave_scenario::{Demand, DemandBy, Node, Packet as Sizes, QueueLimit, Scenario, SchemeChoice, Session};
    use fairwave_schemes::scheme::{Options, find};
    use fairwave_schemes::session::{NewReno, WindowConfig, Windowed};
    use fairwave_units::{Bytes, Duration, Rate};

    use super::*;
    use crate::route;

    fn node(name: &str, mbps: f64) -> Node {
        Node {
            name: name.into(),
            send: Some(Rate::mbps(mbps)),
            receive: Some(Rate::mbps(mbps)),
            queue: QueueLimit::Bdp(1.0),
            send_loss: 0.0,
            receive_loss: 0.0,
            discipline: None,
            gtp_share: 1.0,
            alpha: None,
            beta: None,
            interval: None,
            interval_is_rtt: false,
            router: None,
        }
    }

    fn star(sources: u32, mbps: f64, sink_mbps: f64, rtt_ms: &[u64]) -> Scenario {
        let mut nodes: Vec<Node> = (0..sources).map(|i| node(&format!("s{i}"), mbps)).collect();
        nodes.push(node("d", sink_mbps));
        let session = |from: u32| Session {
            name: format!("{from}").into(),
            from,
            to: sources,
            rtt: Duration::from_millis(rtt_ms[from as usize % rtt_ms.len()]),
            demand: Demand::Unlimited,
            demand_by: DemandBy::Application,
            start: Time::ZERO,
            stop: None,
            size: None,
            weight: 1.0,
            minimum: Rate::ZERO,
            scheme: None,
            alpha: None,
            beta: None,
            initial_rate: Rate::ZERO,
            path: Box::new([]),
            path_back: Box::new([]),
        };
        Scenario {
            name: "star".into(),
            title: String::new(),
            cites: String::new(),
            variant: None,
            duration: Duration::from_secs(10),
            seed: 1,
            scheme: Arc::new(SchemeChoice { scheme: find("sack").unwrap(), options: Options::default() }),
            sample: Duration::from_millis(100),
            packet: Sizes { payload: Bytes::new(1000), header: Bytes::new(40) },
            nodes,
            sessions: (0..sources).map(session).collect(),
            routers: Vec::new(),
            links: Vec::new(),
            background: Vec::new(),
        }
    }

    fn run(scenario: &Scenario, sack: bool) -> Simulator {
        let half = Time::from_nanos(scenario.duration.as_nanos() / 2);
        let mut simulator = Simulator::new(route::build(scenario, (half, scenario.end())));
        for _ in &scenario.sessions {
            let config = SenderConfig {
                sack,
                max_window_packets: u64::MAX,
                min_rto: Duration::from_millis(200),
                size_packets: u64::MAX,
            };
            let controller = Box::new(Windowed::new(NewReno, WindowConfig::default()));
            simulator.add_flow(controller, config, [1040, 40], None, (Time::ZERO, None));
        }
        simulator.run_until(scenario.end());
        simulator.count_in_flight();
        simulator
    }

    #[test]
    fn conservation__sent_is_arrived_dropped_or_in_flight() {
        for sack in [true, false] {
            let simulator = run(&star(5, 100.0, 90.0, &[10, 30, 50, 70, 90]), sack);
            for flow in &simulator.flows {
                let c = flow.counts;
                assert!(c.sent_packets > 1000, "{c:?}");
                assert_eq!(c.sent_packets, c.arrived_packets + c.dropped_packets + c.in_flight_packets, "{c:?}");
            }
        }
    }

    #[test]
    fn one_flow__fills_a_link_with_a_bdp_of_buffer() {
        let scenario = star(1, 100.0, 90.0, &[40]);
        for sack in [true, false] {
            let simulator = run(&scenario, sack);
            let network = simulator.network();
            let sink = network.names.iter().position(|name| name == "d:in").unwrap();
            let carried = network.links[sink].counts.carried_bytes as f64 * 8.0 / 5.0;
            println!(
                "{sack} {} {:?} {:?}",
                carried / 90e6,
                simulator.flows[0].counts,
                simulator.flows[0].sender.window_packets()
            );
        }
    }

    #[test]
    fn speed() {
        let scenario = star(5, 500.0, 450.0, &[10, 30, 50, 70, 90]);
        let started = std::time::Instant::now();
        let simulator = run(&scenario, true);
        let wall = started.elapsed().as_secs_f64();
        let hops: u64 = simulator.network().links.iter().map(|link| link.counts.hops).sum();
        println!("{hops} hops, {} events, {wall} s, {} M hops/s", simulator.events, hops as f64 / wall / 1e6);
        for flow in &simulator.flows {
            println!("{:?} {}", flow.counts, flow.sender.loss_events());
        }
    }
}
