//! Paths: the links and delays that each flow's data and acknowledgements cross.

use std::collections::BTreeMap;

use fairwave_scenario::random;
use fairwave_scenario::{
    Aqm, Background, Discipline, MarkFrom, Node, QueueLimit, Red, Scenario, SchemeChoice, SessionSpec,
};
use fairwave_schemes::header::LinkId;
use fairwave_schemes::link::{LinkController, LinkSetup, link_controller};
use fairwave_schemes::scheme::{Options, Scheme, SchemeKind, find};
use fairwave_units::{Duration, Rate, Time};

use crate::conditions::LinkConditions;
use crate::controlled::Controlled;
use crate::link::{Bernoulli, LinkVerdict, SimLink};
use crate::packet::{HeaderStore, SimPacket};
use crate::propagation::{Pipe, PipeEnd, PipePool};
use crate::queue::QueueDiscipline;
use crate::queue::avq::AvqQueue;
use crate::queue::bound::QueueBound;
use crate::queue::codel::{CodelConfig, CodelQueue};
use crate::queue::dualpi2::DualPi2;
use crate::queue::flow_queues::FlowQueues;
use crate::queue::pie::PieQueue;
use crate::queue::priority::PriorityQueue;
use crate::queue::rem::RemQueue;
use crate::queue::tail_drop::TailDrop;
use crate::red_queue;

/// Marking threshold of a queue that marks, as a share of the bandwidth-delay product: a seventh (Alizadeh et al.,
/// "Data Center TCP", SIGCOMM 2010, Eq. 13), at least two packets.
const MARKS_FROM: f64 = 1.0 / 7.0;

/// One step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteStep {
    /// A link and the line after it, by their indices.
    Link { link: u32, line: u32 },
    /// A line: only propagation.
    Delay { line: u32 },
    /// End of the path.
    End,
}

/// A flow's path in one direction: from an index in [`Network::stages`] to the next [`RouteStep::End`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) begin: u32,
}

/// All links, lines and paths.
pub(crate) struct Network {
    pub(crate) links: Vec<SimLink>,
    /// Names of the links, for users: "d1:in", "s1:out", or the scenario's own.
    pub(crate) names: Vec<String>,
    pub(crate) rates: Vec<Rate>,
    pub(crate) lines: Vec<Pipe>,
    pub(crate) pool: PipePool,
    pub(crate) stages: Vec<RouteStep>,
    /// Paths of data and of acknowledgements, by session.
    pub(crate) routes: Vec<[Route; 2]>,
    /// Paths of data of sessions whose packets take several, by session: the first again, and the others.
    pub(crate) spreads: BTreeMap<u32, Vec<Route>>,
    /// Paths of background traffic: by table, one for all its sources or one for each.
    pub(crate) background_routes: Vec<Vec<[Route; 2]>>,
    /// The link of each node's direction that has a capacity: by node, and whether it is the receiving one.
    pub(crate) sides: BTreeMap<(u32, bool), u32>,
}

impl Network {
    /// A packet reaches a link.
    #[inline]
    pub(crate) fn offer(&mut self, link: u32, now: Time, packet: &SimPacket, headers: &mut HeaderStore) -> LinkVerdict {
        self.links[link as usize].offer(now, packet.bytes, packet.kind, headers)
    }

    /// Adds a separate line, and returns its index.
    pub(crate) fn add_line(&mut self, delay: Duration) -> u32 {
        let index = u32::try_from(self.lines.len()).expect("a scenario has at most 10^7 elements");
        let mut line = Pipe::new(delay);
        line.open(PipeEnd::Busy);
        self.lines.push(line);
        index
    }

    /// The line of packets that are `late` after a link, and overtaken by those on `line`.
    pub(crate) fn late_line(&mut self, link: u32, line: u32, late: Duration) -> u32 {
        let conditions = self.links[link as usize].conditions();
        if let Some(known) = conditions.and_then(|conditions| conditions.late_lines.get(&line).copied()) {
            return known;
        }
        let own = self.add_line(self.lines[line as usize].delay + late);
        if let Some(conditions) = self.links[link as usize].conditions() {
            conditions.late_lines.insert(line, own);
        }
        own
    }

    /// Propagation delay of a path.
    pub(crate) fn propagation(&self, route: Route) -> Duration {
        lines_of(&self.stages, route).fold(Duration::ZERO, |sum, line| sum + self.lines[line as usize].delay)
    }

    /// Announces packets on a path, to an end that answers them or does not.
    pub(crate) fn open(&mut self, route: Route, is_answered: bool) {
        let mut lines = lines_of(&self.stages, route);
        let mut next = lines.next();
        while let Some(line) = next {
            next = lines.next();
            self.lines[line as usize].open(if next.is_none() && !is_answered { PipeEnd::Quiet } else { PipeEnd::Busy });
        }
    }
}

/// The lines of a path.
fn lines_of(stages: &[RouteStep], route: Route) -> impl Iterator<Item = u32> {
    stages[route.begin as usize..].iter().map_while(|stage| match stage {
        RouteStep::Link { line, .. } | RouteStep::Delay { line } => Some(*line),
        RouteStep::End => None,
    })
}

/// An element of a path, before links and lines are shared.
enum RouteElement {
    Link(u32),
    Delay(Duration),
}

/// Origin of a link of the network: a node's direction, or a link of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Send(u32),
    Receive(u32),
    Link(u32),
}

/// Builds the network of a scenario. Means are taken over `window` (the second half of the run, or as requested).
pub(crate) fn build(scenario: &Scenario, window: (Time, Time)) -> Network {
    let mut builder = Builder {
        scenario,
        window,
        largest_rtt: largest_rtts(scenario),
        hosts: hosts(scenario),
        known: BTreeMap::new(),
        shared: BTreeMap::new(),
        network: Network {
            links: Vec::new(),
            names: Vec::new(),
            rates: Vec::new(),
            lines: Vec::new(),
            pool: PipePool::default(),
            stages: Vec::new(),
            routes: Vec::new(),
            spreads: BTreeMap::new(),
            background_routes: Vec::new(),
            sides: BTreeMap::new(),
        },
    };
    for session in &scenario.sessions {
        let routes = builder.ways(&Trip::of(session));
        if !session.spread.is_empty() {
            let mut all = vec![routes[0]];
            all.extend(session.spread.iter().map(|path| builder.way(&Trip { path, ..Trip::of(session) }, false)));
            let index = builder.network.routes.len() as u32;
            builder.network.spreads.insert(index, all);
        }
        builder.network.routes.push(routes);
    }
    for table in &scenario.background {
        let routes = table.rtts.iter().map(|rtt| builder.ways(&Trip::of_background(table, *rtt))).collect();
        builder.network.background_routes.push(routes);
    }
    builder.network
}

/// A host's own queue in packets: Linux's default for a network card (`txqueuelen`, `netdev_max_backlog`).
const HOST_QUEUE_PACKETS: u64 = 1000;

fn hosts(scenario: &Scenario) -> BTreeMap<u32, u64> {
    let mut hosts = BTreeMap::new();
    for session in scenario.sessions.iter().filter(|session| scenario.scheme_of(session).scheme.runs_on_hosts()) {
        for node in [session.from, session.to] {
            *hosts.entry(node).or_default() += 1;
        }
    }
    hosts
}

struct Builder<'a> {
    scenario: &'a Scenario,
    window: (Time, Time),
    /// By origin: a queue of one BDP is sized by the largest RTT through it.
    largest_rtt: BTreeMap<Origin, Duration>,
    known: BTreeMap<Origin, u32>,
    /// Sessions at each node that is a host: a node whose rule divides its capacity.
    hosts: BTreeMap<u32, u64>,
    /// Lines by the link before them, if any, and their delay.
    shared: BTreeMap<(Option<u32>, Duration), u32>,
    network: Network,
}

/// The ends of traffic, the links that it crosses, and its round-trip delay.
struct Trip<'a> {
    from: u32,
    to: u32,
    rtt: Duration,
    path: &'a [u32],
    path_back: &'a [u32],
}

impl<'a> Trip<'a> {
    fn of(session: &'a SessionSpec) -> Self {
        let SessionSpec { from, to, rtt, path, path_back, .. } = session;
        Self { from: *from, to: *to, rtt: *rtt, path, path_back }
    }

    fn of_background(table: &'a Background, rtt: Duration) -> Self {
        let Background { from, to, path, path_back, .. } = table;
        Self { from: *from, to: *to, rtt, path, path_back }
    }

    fn origins(&self) -> impl Iterator<Item = Origin> {
        let links = self.path.iter().chain(self.path_back).map(|link| Origin::Link(*link));
        let ends = [self.from, self.to].into_iter().flat_map(|node| [Origin::Send(node), Origin::Receive(node)]);
        ends.chain(links)
    }
}

impl Builder<'_> {
    fn ways(&mut self, trip: &Trip<'_>) -> [Route; 2] {
        [self.way(trip, false), self.way(trip, true)]
    }

    fn way(&mut self, trip: &Trip<'_>, is_back: bool) -> Route {
        let (from, to, path) =
            if is_back { (trip.to, trip.from, trip.path_back) } else { (trip.from, trip.to, trip.path) };
        let mut elements = Vec::with_capacity(path.len() * 2 + 3);
        self.add(&mut elements, Origin::Send(from));
        elements.push(RouteElement::Delay(self.access_delay(trip, is_back)));
        for link in path {
            self.add(&mut elements, Origin::Link(*link));
            elements.push(RouteElement::Delay(self.scenario.links[*link as usize].delay));
        }
        self.add(&mut elements, Origin::Receive(to));
        self.stages(&elements)
    }

    /// Propagation that the scenario's links do not account for: half in each direction.
    fn access_delay(&self, trip: &Trip<'_>, is_back: bool) -> Duration {
        let links = trip.path.iter().chain(trip.path_back);
        let on_links = links.map(|link| self.scenario.links[*link as usize].delay.as_nanos()).sum();
        let own = trip.rtt.as_nanos().saturating_sub(on_links);
        Duration::from_nanos(if is_back { own - own / 2 } else { own / 2 })
    }

    /// Adds a link unless it is unlimited.
    fn add(&mut self, elements: &mut Vec<RouteElement>, origin: Origin) {
        if let Some(index) = self.known.get(&origin) {
            elements.push(RouteElement::Link(*index));
        } else if let Some((name, rate, link)) = self.link(origin) {
            let index = u32::try_from(self.network.links.len()).expect("a scenario has at most 10^7 elements");
            self.known.insert(origin, index);
            match origin {
                Origin::Send(node) => _ = self.network.sides.insert((node, false), index),
                Origin::Receive(node) => _ = self.network.sides.insert((node, true), index),
                Origin::Link(_) => {}
            }
            self.network.links.push(link);
            self.network.names.push(name);
            self.network.rates.push(rate);
            elements.push(RouteElement::Link(index));
        }
    }

    fn link(&self, origin: Origin) -> Option<(String, Rate, SimLink)> {
        let direction = |node: &Node, way: &str| format!("{}:{way}", node.name);
        let (name, capacity, queue, loss, discipline, aqm, red) = match origin {
            Origin::Send(node) => {
                let node = &self.scenario.nodes[node as usize];
                (
                    direction(node, "out"),
                    node.send?,
                    node.queue,
                    node.send_loss,
                    node.discipline,
                    node.aqm,
                    Red::default(),
                )
            }
            Origin::Receive(node) => {
                let node = &self.scenario.nodes[node as usize];
                let (loss, rule) = (node.receive_loss, node.discipline);
                (direction(node, "in"), node.receive?, node.queue, loss, rule, node.aqm, Red::default())
            }
            Origin::Link(link) => {
                let link = &self.scenario.links[link as usize];
                (link.name.to_string(), link.capacity?, link.queue, link.loss, link.discipline, link.aqm, link.red)
            }
        };
        let rtt = self.largest_rtt.get(&origin).copied().unwrap_or_default();
        let packet = self.scenario.full_packet();
        let bdp_packets = |share: f64| {
            let bits = capacity.as_bps() * rtt.as_secs_f64() * share;
            (bits / packet.as_bits_f64()).round() as u64
        };
        let limit = match queue {
            QueueLimit::Packets(packets) => QueueBound::Packets(packets),
            QueueLimit::Bytes(bytes) => QueueBound::Bytes(bytes.get()),
            QueueLimit::Bdp(share) => QueueBound::Packets(bdp_packets(share).max(2)),
            QueueLimit::Usual => QueueBound::Packets(match discipline.and_then(usual_packets) {
                Some(packets) => packets,
                None => bdp_packets(1.0).max(self.least_queue_packets(origin)),
            }),
        };
        let losses = Bernoulli::new(loss, random::stream(self.scenario.seed, &format!("loss {name}")));
        let mut link = SimLink::new(capacity.as_bps().round() as u64, limit, losses, self.window);
        if discipline == Some(Discipline::Red) {
            let packets_per_s = capacity.as_bps() / packet.as_bits_f64();
            let stream = random::stream(self.scenario.seed, &format!("red {name}"));
            let red = red_queue::RedQueue::new(red, packets_per_s, stream);
            link = link.with_red(red, packet.get() as f64, aqm.marks(Discipline::Red));
        }
        if discipline == Some(Discipline::EcnStep) {
            let bdp = capacity.as_bps() / 8.0 * rtt.as_secs_f64();
            let from = aqm.mark_from.map(|from| from.bytes(capacity, packet));
            link = link.with_marks(from.unwrap_or(((bdp * MARKS_FROM) as u64).max(2 * packet.get())));
        }
        if let Some(discipline) = discipline {
            link.is_marking = aqm.marks(discipline);
            if let Some(queue) = self.queue(discipline, &aqm, limit, capacity, &name) {
                return Some(self.with_conditions(origin, name, capacity, link, queue));
            }
        }
        if let Origin::Link(index) = origin
            && self.scenario.links[index as usize].conditions.is_some()
        {
            let marks_from = link.marks_from();
            let queue = Box::new(TailDrop::new(limit, marks_from));
            return Some(self.with_conditions(origin, name, capacity, link, queue));
        }
        if let Some(rule) = self.rule(discipline, &name, capacity) {
            link = link.with_control(Controlled::new(rule));
        }
        Some((name, capacity, link))
    }

    /// A link whose queue decides when packets leave, with the conditions of its scenario.
    fn with_conditions(
        &self,
        origin: Origin,
        name: String,
        capacity: Rate,
        link: SimLink,
        queue: Box<dyn QueueDiscipline>,
    ) -> (String, Rate, SimLink) {
        let spec = match origin {
            Origin::Link(index) => Some(&self.scenario.links[index as usize]),
            Origin::Send(_) | Origin::Receive(_) => None,
        };
        let conditions = spec.and_then(|spec| {
            let conditions = spec.conditions.as_deref()?;
            let stream = random::stream(self.scenario.seed, &format!("conditions {name}"));
            Some(LinkConditions::new(conditions.clone(), spec.delay, stream))
        });
        (name, capacity, link.with_queue(queue, conditions))
    }

    /// The queue of a link whose discipline decides when packets leave.
    fn queue(
        &self,
        discipline: Discipline,
        aqm: &Aqm,
        limit: QueueBound,
        capacity: Rate,
        name: &str,
    ) -> Option<Box<dyn QueueDiscipline>> {
        let packet = self.scenario.full_packet();
        let ecn = aqm.marks(discipline);
        let codel = CodelConfig::new(aqm, ecn, packet.get());
        let quantum = aqm.quantum.unwrap_or(packet).get();
        let stream = || random::stream(self.scenario.seed, &format!("aqm {name}"));
        Some(match discipline {
            Discipline::Codel => Box::new(CodelQueue::new(codel, limit)),
            Discipline::FqCodel => Box::new(FlowQueues::new(quantum, Some(codel), limit)),
            Discipline::Fq => Box::new(FlowQueues::new(quantum, None, limit)),
            Discipline::Pie => Box::new(PieQueue::new(aqm, ecn, limit, packet.get(), stream())),
            Discipline::DualPi2 => {
                let step = aqm.mark_from.and_then(|from| match from {
                    MarkFrom::Delay(delay) => Some(delay),
                    _ => Duration::from_secs_f64(from.bytes(capacity, packet) as f64 * 8.0 / capacity.as_bps()),
                });
                Box::new(DualPi2::new(aqm, step, limit, packet.get(), stream()))
            }
            Discipline::Rem => Box::new(RemQueue::new(aqm, ecn, limit, capacity, packet.get(), stream())),
            Discipline::Priority => Box::new(PriorityQueue::new(limit)),
            Discipline::Avq => Box::new(AvqQueue::new(ecn, limit, capacity, packet.get())),
            _ => return None,
        })
    }

    /// Minimum size in packets of a queue without a configured size. A host's own queue does not lose them: its
    /// messages to all sessions leave at one instant, and packets of many sources arrive at one.
    fn least_queue_packets(&self, origin: Origin) -> u64 {
        match origin {
            Origin::Send(node) | Origin::Receive(node) => {
                self.hosts.get(&node).map_or(2, |sessions| HOST_QUEUE_PACKETS.max(4 * sessions))
            }
            Origin::Link(_) => 2,
        }
    }

    /// The rule for congestion headers of the next link: of its discipline, or else of the scenario's scheme.
    fn rule(&self, discipline: Option<Discipline>, name: &str, capacity: Rate) -> Option<Box<dyn LinkController>> {
        let SchemeChoice { scheme, options } = &*self.scenario.scheme;
        let of_scheme = link_rule(scheme);
        let rule = discipline.map_or(of_scheme, |discipline| Some(discipline.name()))?;
        // The options are the scheme's; a link that runs another's rule has that one's defaults.
        let options = if of_scheme == Some(rule) { options.clone() } else { Options::default() };
        let bytes = self.scenario.packet.on_link(find(rule).unwrap_or(scheme)).get();
        let setup = LinkSetup {
            id: LinkId::of(u32::try_from(self.network.links.len()).unwrap_or(u32::MAX)),
            capacity,
            packet_bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            phase: random::stream(self.scenario.seed, &format!("control {name}")).unit(),
        };
        link_controller(rule, &options, &setup)
    }

    /// Turns elements into stages: consecutive delays are merged, and all packets that leave a link, or start, with the
    /// same delay share a line.
    fn stages(&mut self, elements: &[RouteElement]) -> Route {
        let begin = self.network.stages.len();
        let mut at = elements.iter().peekable();
        let mut link = None;
        loop {
            let mut delay = Duration::ZERO;
            while let Some(RouteElement::Delay(more)) = at.peek() {
                delay = delay + *more;
                at.next();
            }
            // A path starts with propagation only if there is some.
            if link.is_some() || !delay.is_zero() || at.peek().is_none() {
                let line = self.line(link, delay);
                let stage = link.map_or(RouteStep::Delay { line }, |link| RouteStep::Link { link, line });
                self.network.stages.push(stage);
            }
            match at.next() {
                Some(RouteElement::Link(next)) => link = Some(*next),
                Some(RouteElement::Delay(_)) => unreachable!("delays were taken above"),
                None => break,
            }
        }
        self.network.stages.push(RouteStep::End);
        Route { begin: u32::try_from(begin).expect("a scenario has at most 10^7 elements") }
    }

    fn line(&mut self, link: Option<u32>, delay: Duration) -> u32 {
        let index = u32::try_from(self.network.lines.len()).expect("a scenario has at most 10^7 elements");
        // Also without a preceding link packets leave in the order in which they enter.
        let line = *self.shared.entry((link, delay)).or_insert(index);
        if line == index {
            let mut line = Pipe::new(delay);
            line.controlled = link.filter(|link| self.network.links[*link as usize].control().is_some());
            self.network.lines.push(line);
        }
        line
    }
}

/// Limit in packets of a queue that controls its delay or divides it by flows, if none is set: Linux's.
fn usual_packets(discipline: Discipline) -> Option<u64> {
    match discipline {
        Discipline::Codel | Discipline::Pie => Some(1000),
        Discipline::FqCodel => Some(10_240),
        Discipline::Fq | Discipline::DualPi2 => Some(10_000),
        _ => None,
    }
}

/// The discipline that a scheme sets for links that name none.
pub(crate) fn link_rule(scheme: &Scheme) -> Option<&'static str> {
    match scheme.name {
        "endpoint-xcp" => Some("xcp"),
        name => (scheme.kind == SchemeKind::Link).then_some(name),
    }
}

/// The largest RTT through each link, of a session or, if no session crosses it, of background traffic.
fn largest_rtts(scenario: &Scenario) -> BTreeMap<Origin, Duration> {
    let mut largest = BTreeMap::new();
    let mut of_background = BTreeMap::new();
    let take = |largest: &mut BTreeMap<Origin, Duration>, trip: &Trip<'_>| {
        for origin in trip.origins() {
            let rtt = largest.entry(origin).or_default();
            *rtt = (*rtt).max(trip.rtt);
        }
    };
    for session in &scenario.sessions {
        take(&mut largest, &Trip::of(session));
        for path in &session.spread {
            take(&mut largest, &Trip { path, ..Trip::of(session) });
        }
    }
    for table in &scenario.background {
        let rtt = table.rtts.iter().copied().max().unwrap_or_default();
        take(&mut of_background, &Trip::of_background(table, rtt));
    }
    for (origin, rtt) in of_background {
        largest.entry(origin).or_insert(rtt);
    }
    largest
}
