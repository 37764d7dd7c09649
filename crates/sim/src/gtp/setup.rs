//! The hosts of a scenario, and their sessions.

use std::collections::BTreeMap;

use fairwave_proto::handshake::insecure::InsecureResponder;
use fairwave_proto::handshake::{HalfOpen, MAX_HALF_OPEN};
use fairwave_proto::{
    DATA_OVERHEAD, ExchangeConfig, Host, HostConfig, IntervalRule, Lasts, MAX_OPEN_BYTES, MAX_SESSIONS, NodeConfig,
    PathControl, PathKind, Terms,
};
use fairwave_scenario::node_rule::{self, MixedRules, TickSchedule};
use fairwave_scenario::{Demand, Node, Scenario, SchemeChoice, SessionSpec, random};
use fairwave_schemes::node::gtp_options::{ALPHA, BETA, FAIR_START, FIND_CAPACITY, PATH, WIRE};
use fairwave_schemes::node::tally::{REACT, TallyOptions};
use fairwave_schemes::scheme::{Scheme, TypedOption};
use fairwave_units::{Bytes, Rate, Time};

use super::session::{GtpEnd, GtpSession};
use super::yielding::Yielding;
use super::{GtpHosts, HostAt, TICKET};
use crate::error::SimError;
use crate::event::SimEvent;
use crate::flow::FlowOptions;
use crate::kind::{NewSession, SourceKind};
use crate::pending_timer::PendingTimer;
use crate::transit::Transit;

/// Sessions whose ends are hosts.
pub(crate) const KIND: SourceKind = SourceKind { prepare, ..SourceKind::new(is_run_by_hosts, add) };

/// Whether hosts run a scheme, as declared by its rule.
fn is_run_by_hosts(scheme: &Scheme) -> bool {
    scheme.runs_on_hosts()
}

/// Makes the hosts of all nodes that have sessions of GTP.
fn prepare(transit: &mut Transit<'_>, hosts: &mut GtpHosts, scenario: &Scenario) -> Result<(), SimError> {
    let mut first = BTreeMap::new();
    for session in scenario.sessions.iter().filter(|session| is_run_by_hosts(scenario.scheme_of(session).scheme)) {
        refuse_unlimited(scenario, session)?;
        for node in [session.from, session.to] {
            let there: &mut Vec<&SessionSpec> = first.entry(node).or_default();
            if let Some(one) = there.first() {
                let place = &scenario.nodes[node as usize].name;
                node_rule::same_rule(scenario, one, session, &[ALPHA.name(), BETA.name()])
                    .map_err(|mixed| at(place, mixed))?;
            }
            there.push(session);
        }
    }
    for (node, sessions) in first {
        refuse_crowd(&scenario.nodes[node as usize], &sessions)?;
        hosts.places.insert(node, hosts.hosts.len() as u32);
        let mut host = host(scenario, &scenario.nodes[node as usize], &sessions)?;
        if let Some(weight) = scenario.nodes[node as usize].yields {
            host.yields = Yielding::of(node, weight, &mut transit.network);
        }
        hosts.hosts.push(host);
    }
    Ok(())
}

/// Rejects more simultaneous sessions than a host supports. A session with a size may end before it stops, but the time
/// is unknown.
fn refuse_crowd(node: &Node, sessions: &[&SessionSpec]) -> Result<(), SimError> {
    if sessions.len() <= MAX_SESSIONS {
        return Ok(());
    }
    let starts = sessions.iter().map(|session| (session.start, true));
    let stops = sessions.iter().filter_map(|session| Some((session.stop?, false)));
    let mut changes: Vec<_> = starts.chain(stops).collect();
    // Sessions that stop at an instant come before those that start.
    changes.sort_unstable();
    let (mut there, mut most) = (0_usize, 0);
    for (_, starts) in changes {
        there = if starts { there + 1 } else { there.saturating_sub(1) };
        most = most.max(there);
    }
    if most <= MAX_SESSIONS {
        return Ok(());
    }
    Err(SimError::Crowded { node: node.name.clone(), sessions: most })
}

fn at(place: &str, mixed: MixedRules) -> SimError {
    let MixedRules { first, first_rule, second, second_rule } = mixed;
    SimError::Mixed { node: place.into(), first, first_rule, second, second_rule }
}

/// Without a capacity at either end, and without a demand, nothing would keep packets from leaving all at once.
fn refuse_unlimited(scenario: &Scenario, session: &SessionSpec) -> Result<(), SimError> {
    let ends = [scenario.nodes[session.from as usize].send, scenario.nodes[session.to as usize].receive];
    let choice = scenario.scheme_of(session);
    if ends.iter().any(Option::is_some) || session.demand.largest().is_some() || is_shared(choice) {
        return Ok(());
    }
    Err(SimError::Incomplete {
        session: session.name.clone(),
        scheme: choice.scheme.name,
        what: "a capacity at its source or its sink, or a demand,",
        hint: "give one of the two nodes a capacity, or name options.path = \"shared\"",
    })
}

fn is_shared(choice: &SchemeChoice) -> bool {
    PATH.of(&choice.options) == "shared"
}

fn host(scenario: &Scenario, node: &Node, sessions: &[&SessionSpec]) -> Result<HostAt, SimError> {
    let choice = scenario.scheme_of(sessions[0]);
    let schedule = TickSchedule::of(scenario, Some(node), &node.name, choice);
    // A node without sessions ticks as if all existed.
    let largest_rtt = sessions.iter().map(|session| session.rtt).max().unwrap_or_default();
    let rule = IntervalRule::Fixed(schedule.interval(largest_rtt));
    let phase = schedule.first(largest_rtt);
    let header = scenario.packet.header.get() + choice.scheme.header.get();
    let node_rule = choice.scheme.node.expect("what runs on hosts is a node rule");
    let make = match node.yields {
        None => node_rule.make,
        Some(_) => node_rule.over_groups.ok_or_else(|| SimError::Unsupported {
            what: format!("yield of node \"{}\", whose sessions run \"{}\",", node.name, choice.scheme.name),
            hint: "use gtp or gtp-printed, or omit it",
        })?,
    };
    let (longest, packet) = (schedule.interval(largest_rtt), Bytes::new(header + scenario.packet.payload.get()));
    let direction = |capacity: Option<Rate>| {
        capacity.map(|capacity| NodeConfig {
            capacity,
            share: if choice.scheme.takes_share() { node.gtp_share } else { 1.0 },
            interval: rule,
            phase,
            allocator: make(&choice.options),
            exchange: node_rule.exchange.map(|options| ExchangeConfig {
                options: TallyOptions { interval: longest, packet, ..options(&choice.options) },
                react: REACT.of(&choice.options),
            }),
        })
    };
    let bytes = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    // The scenario's header size, minus GTP's own overhead per data packet.
    let lower_bytes = bytes(header).saturating_sub(DATA_OVERHEAD);
    let piece_bytes = bytes(scenario.packet.payload.get().max(1));
    let mut stream = random::stream(scenario.seed, &format!("host {}", node.name));
    let mut seed = [0; 32];
    seed.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&stream.bits().to_le_bytes()));
    let mut host = Host::new(
        Time::ZERO,
        HostConfig {
            lower_bytes,
            piece_bytes,
            // Packets are sent one by one.
            send_bytes: Bytes::new(u64::from(piece_bytes) + u64::from(DATA_OVERHEAD + lower_bytes)),
            sending: direction(node.send),
            receiving: direction(node.receive),
            fair_start: FAIR_START.of(&choice.options),
            room: MAX_OPEN_BYTES,
            buffer: None,
            seed,
            path: if is_shared(choice) { PathKind::Shared } else { PathKind::Dedicated },
            is_plain: false,
            path_control: PathControl::Bbr,
            // Packets have the scenario's size.
            probes_mtu: false,
            lasts: Lasts::default(),
            crypto: InsecureResponder::new(stream.bits(), [TICKET]),
        },
    );
    // All sessions of a scenario have one ticket, and arbitrary addresses.
    let (of_ticket, of_prefix) = (MAX_HALF_OPEN, MAX_HALF_OPEN);
    host.set_half_open(HalfOpen { all: MAX_HALF_OPEN, of_ticket, of_prefix });
    if FIND_CAPACITY.of(&choice.options) {
        host.find_capacity();
    }
    Ok(HostAt {
        host,
        timer: PendingTimer::default(),
        flows: BTreeMap::new(),
        rtts: schedule.follows_rtt().then(BTreeMap::new),
        packet_times: [node.send, node.receive]
            .map(|rate| rate.and_then(|rate| rate.time_for(packet)).unwrap_or_default()),
        yields: Vec::new(),
        lower_bytes,
    })
}

fn options(scenario: &Scenario, session: &SessionSpec, node: &Node) -> Terms {
    let usual = Terms::default();
    let has = |option: &TypedOption<f64>| scenario.scheme_of(session).scheme.option(option.name()).is_some();
    Terms {
        weight: session.weight,
        // A rule without steps ignores both; a host accepts only valid values.
        alpha: if has(&ALPHA) { node_rule::alpha(scenario, session, Some(node)) } else { usual.alpha },
        beta: if has(&BETA) { node_rule::beta(scenario, session, Some(node)) } else { usual.beta },
        minimum: session.minimum,
        ..Terms::default()
    }
}

/// Adds a session between hosts.
#[expect(clippy::unnecessary_wraps, reason = "other kinds refuse sessions here")]
fn add(transit: &mut Transit<'_>, hosts: &GtpHosts, new: &NewSession<'_>) -> Result<(), SimError> {
    let NewSession { scenario, session, choice, .. } = *new;
    let end = |node: u32, capacity: Option<Rate>| GtpEnd {
        host: hosts.places[&node],
        session: None,
        options: options(scenario, session, &scenario.nodes[node as usize]),
        is_ruled: capacity.is_some(),
    };
    let gtp = GtpSession {
        source: end(session.from, scenario.nodes[session.from as usize].send),
        sink: end(session.to, scenario.nodes[session.to as usize].receive),
        demand: session.demand.clone(),
        rtt: node_rule::rtt_interval(session.rtt),
        size_bytes: session.size.map(|size| size.get().max(1)),
        is_wire: WIRE.of(&choice.options),
        is_stopped: false,
        delivered_bytes: 0,
        arrived_bytes: 0,
        sent_below: 0,
        attempts: 0,
        messages: [0; 2],
    };
    let flow = transit.add_session(gtp.into(), new.bytes(), None, new.active(), FlowOptions::default());
    if let Demand::Schedule(_) = &session.demand
        && let Some(change) = session.demand.next_change(session.start)
    {
        transit.agenda.schedule(change, SimEvent::Demand(flow));
    }
    Ok(())
}
