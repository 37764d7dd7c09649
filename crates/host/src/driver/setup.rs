//! Construction of an endpoint's thread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::ArcSwap;
use crossbeam_channel::Receiver;
use fairwave_proto::codec::SessionId;
use fairwave_proto::{DATA_OVERHEAD, Direction, ExchangeConfig, Host, HostConfig, IntervalRule, NodeConfig};
use fairwave_schemes::node::gtp_options::DRAIN;
use fairwave_schemes::node::host_rule;
use fairwave_schemes::node::tally::TallyOptions;
use fairwave_schemes::scheme::{NodeRule, Options};
use fairwave_units::{Bytes, Duration, Rate, Time};

use super::attempts::Attempts;
use super::clock::Clock;
use super::entry::OpenSessions;
use super::inbox::Inbox;
use super::outbox::Outbox;
use super::overflow::{Overflow, OverflowVerdict};
use super::run::{Arrivals, Driver};
use super::socket::Socket;
use super::tunnels::Tunnels;
use super::visits::Visits;
use crate::commands::{Commands, SessionCommand};
use crate::config::{BindError, EndpointConfig, EndpointFacts};
use crate::crypto::{Noise, NoiseResponder};
use crate::membership::{MakeNode, Membership, NodeFacts, OwnCapacities};
use crate::orders::{EndpointOrder, EndpointShared};
use crate::thread_waker::ThreadWaker;

/// Bytes of IPv4 and UDP around a datagram.
const LOWER_BYTES: u32 = 28;
/// Delay of the extra tick of a node that shares by claims and grants, after news.
const REACT: Duration = Duration::from_millis(1);
/// Max bytes of one read of the system.
const RECEIVED_BURST: Bytes = Bytes::new(1 << 16);
/// Max bytes of one send of the system, with all headers; a burst may be several of them, but never more than 1 ms.
const SEND_BYTES: Bytes = Bytes::new(4 << 16);
/// Ports tried to find one that is also free for TCP, if any port will do.
const PORTS_TRIED: usize = 16;

impl Driver {
    pub(crate) fn new(
        config: &EndpointConfig,
        bell: Arc<ThreadWaker>,
        commands: Commands,
        incoming: Receiver<(SessionId, SessionCommand)>,
        orders: Receiver<EndpointOrder>,
    ) -> Result<Self, BindError> {
        let random = |error: getrandom::Error| BindError::System(error.into());
        let rule = host_rule(&config.rule)?;
        let mut tunnels = Tunnels::new(config.largest_datagram);
        let (socket, facts) = bind(config, &mut tunnels, || Socket::bind(config.listen))?;
        tracing::info!(
            local = %facts.local,
            tcp = facts.listens_tcp,
            path = ?config.path,
            is_plain = config.is_plain,
            rule = config.rule,
            segments = facts.segments,
            receive_buffer_bytes = facts.receive_buffer_bytes,
            "listens"
        );
        let clock = Clock::start();
        let now = clock.now();
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(random)?;
        let crypto = NoiseResponder::new(facts.local).map_err(random)?;
        let plan = NodePlan::of(config, rule, seed);
        let mut host = host(now, config, &plan, facts.receive_buffer_bytes, seed, crypto);
        let own = [config.send_capacity, config.receive_capacity];
        let [send, receive] = own;
        let node = Arc::new(ArcSwap::from_pointee(NodeFacts { send, receive, ..NodeFacts::default() }));
        let make: MakeNode = Box::new(move |direction, capacity| plan.node(direction, capacity));
        let own = OwnCapacities { rates: own, is_bound: !config.is_card_capacity };
        let membership =
            Membership::start(&config.node, now, make, own, Arc::clone(&bell), Arc::clone(&node), &mut host)
                .map_err(BindError::System)?;
        Ok(Self {
            clock,
            host,
            inbox: Inbox::new(),
            outbox: Outbox::new(),
            entries: OpenSessions::default(),
            tunnels,
            tunnel_room: Vec::new(),
            carriers: config.carriers,
            attempts: Attempts::new(config.tunnels_after),
            visits: Visits::default(),
            bell,
            commands,
            incoming,
            orders,
            shared: Arc::new(EndpointShared {
                facts,
                sessions: ArcSwap::default(),
                overflows: AtomicU64::new(0),
                node,
            }),
            membership,
            is_plain: config.is_plain,
            publish_at: now,
            overflow: Overflow::new(&socket),
            verdict: OverflowVerdict::default(),
            answer_from: None,
            arrivals: Arrivals::default(),
            sent_at_once: 0,
            stops_at: None,
            socket,
        })
    }

    pub(crate) fn shared(&self) -> Arc<EndpointShared> {
        Arc::clone(&self.shared)
    }
}

/// A UDP socket of `make`, with `tunnels` listening at the TCP port of the same number. A connection of any other program
/// may have that number, also one that has just ended: where the system chooses, it chooses again.
pub(super) fn bind(
    config: &EndpointConfig,
    tunnels: &mut Tunnels,
    mut make: impl FnMut() -> io::Result<Socket>,
) -> Result<(Socket, EndpointFacts), BindError> {
    let mut make = || {
        make().map_err(|source| BindError::Socket {
            address: config.listen.map_or_else(|| "any port".to_owned(), |address| address.to_string()),
            source,
        })
    };
    let is_any = config.listen.is_none_or(|address| address.port() == 0);
    // A port that was given back would be chosen again.
    let mut passed_over = Vec::new();
    loop {
        let socket = make()?;
        let mut facts = facts(&socket).map_err(BindError::System)?;
        if config.listens_tcp {
            let listens = tunnels.listen(facts.local);
            let is_taken = listens.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse);
            if is_taken && is_any && passed_over.len() < PORTS_TRIED {
                passed_over.push(socket);
                continue;
            }
            facts.listens_tcp = listens.is_ok();
            facts.tcp_error = listens.err().map(|error| error.to_string());
        }
        return Ok((socket, facts));
    }
}

fn facts(socket: &Socket) -> io::Result<EndpointFacts> {
    let buffers = socket.buffers();
    Ok(EndpointFacts {
        local: socket.local_addr()?,
        listens_tcp: false,
        tcp_error: None,
        segments: socket.segments(),
        receives_in_batches: socket.receives_in_batches(),
        receive_buffer_bytes: buffers.receive,
        send_buffer_bytes: buffers.send,
    })
}

/// How the end nodes of a process are made.
struct NodePlan {
    rule: NodeRule,
    interval: IntervalRule,
    drain: bool,
    largest_datagram: u32,
    /// Nodes that tick together would react to each other's reactions: the phase of each in an interval, 0 to 1.
    phases: [f64; 2],
}

impl NodePlan {
    fn of(config: &EndpointConfig, rule: NodeRule, seed: [u8; 32]) -> Self {
        let draws = blake3::hash(&seed);
        let phase = |at: usize| {
            let draw = std::array::from_fn(|byte| draws.as_bytes()[at + byte]);
            f64::from(u32::from_ne_bytes(draw)) / f64::from(u32::MAX)
        };
        let EndpointConfig { interval, drain, largest_datagram, .. } = *config;
        Self { rule, interval, drain, largest_datagram, phases: [phase(0), phase(4)] }
    }

    fn node(&self, direction: Direction, capacity: Rate) -> NodeConfig {
        let first = match self.interval {
            IntervalRule::Fixed(interval) => interval,
            IntervalRule::Rtt { least, .. } => least,
        };
        let mut options = Options::default();
        DRAIN.set(&mut options, self.drain);
        let packet = match direction {
            Direction::Sending => Bytes::new(u64::from(LOWER_BYTES + self.largest_datagram)),
            Direction::Receiving => RECEIVED_BURST,
        };
        NodeConfig {
            capacity,
            share: 1.0,
            interval: self.interval,
            phase: Duration::from_nanos((self.phases[direction as usize] * first.as_nanos() as f64) as u64),
            // Sessions of one ticket share what the ticket gets.
            allocator: self.rule.over_groups.unwrap_or(self.rule.make)(&options),
            exchange: self.rule.exchange.map(|constants| self.exchange(constants(&options), packet)),
        }
    }

    /// Configuration of a node for the rule by claims and grants. A sink receives in bursts, which show no rate:
    /// `packet` is one of them there.
    fn exchange(&self, constants: TallyOptions, packet: Bytes) -> ExchangeConfig {
        let interval = match self.interval {
            IntervalRule::Fixed(interval) => interval,
            IntervalRule::Rtt { most, .. } => most,
        };
        ExchangeConfig { options: TallyOptions { interval, packet, ..constants }, react: Some(REACT) }
    }
}

fn host(
    now: Time,
    config: &EndpointConfig,
    plan: &NodePlan,
    buffer_bytes: usize,
    seed: [u8; 32],
    crypto: NoiseResponder,
) -> Host<Noise> {
    let node = |direction, capacity: Option<Rate>| capacity.map(|capacity| plan.node(direction, capacity));
    Host::new(
        now,
        HostConfig {
            lower_bytes: LOWER_BYTES,
            piece_bytes: config.largest_datagram.saturating_sub(DATA_OVERHEAD),
            send_bytes: SEND_BYTES,
            sending: node(Direction::Sending, config.send_capacity),
            receiving: node(Direction::Receiving, config.receive_capacity),
            fair_start: config.fair_start,
            room: config.room,
            buffer: Some(Bytes::new(buffer_bytes as u64)),
            seed,
            path: config.path,
            path_control: config.path_control,
            probes_mtu: true,
            is_plain: config.is_plain,
            lasts: config.lasts,
            crypto,
        },
    )
}
