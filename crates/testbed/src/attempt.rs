//! One run of a plan: the network, the programs, and what both saw.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairwave_wan::{Direction, Port, Relay, Report, Space, overflows};

use crate::child::Child;
use crate::clock::{instant_at, now_ns};
use crate::error::Error;
use crate::message::{EndReport, SourceAt, Start, Told};
use crate::plan::Plan;

/// An IP packet has so many bytes, as on Ethernet.
const MTU: u32 = 1500;
/// Programs have so long to be there, and to tell what they saw.
const PATIENCE: Duration = Duration::from_secs(20);
/// The run begins so long after all programs are there: they are told of it before.
const AHEAD: Duration = Duration::from_millis(300);

/// What was seen in a run.
#[derive(Debug)]
pub(crate) struct Seen {
    /// By the programs, in the plan's order.
    pub(crate) ends: Vec<EndReport>,
    /// By the relay.
    pub(crate) relay: Report,
    /// When the run began, as the relay counts.
    pub(crate) begin: Duration,
    /// Packets that the kernel could not keep for the relay.
    pub(crate) overflows: u64,
}

/// Runs a plan once. `command` starts the program at a node; `look` is called every now and then with how much of the
/// run has passed, and may end it.
pub(crate) fn attempt(
    plan: &Plan,
    command: &[String],
    look: &mut dyn FnMut(Duration) -> Result<(), Error>,
) -> Result<Seen, Error> {
    let (mut spaces, mut ports) = (Vec::new(), Vec::new());
    for (port, place) in plan.places.iter().enumerate() {
        look(Duration::ZERO)?;
        let space = Arc::new(Space::new()?);
        ports.push(Port::new(&space, port, MTU)?);
        for more in &place.more {
            space.add_address(&fairwave_wan::device(port), *more, 32)?;
        }
        spaces.push(space);
    }
    let relay_began = Instant::now();
    let relay = Relay::start(ports, plan.seed)?;
    for (port, place) in plan.places.iter().enumerate() {
        relay.set(port, Direction::Up, place.up);
        relay.set(port, Direction::Down, place.down);
    }
    for (from, to, delay) in &plan.delays {
        relay.set_detour(*from, *to, *delay);
    }
    let mut children = Vec::new();
    for (place, space) in plan.places.iter().zip(&spaces) {
        let mut child = Child::start(space, &place.setup.node, command)?;
        child.order(&place.setup)?;
        children.push(child);
    }
    let mut sources = BTreeMap::new();
    for (place, child) in plan.places.iter().zip(&children) {
        let told = child.hear(Instant::now() + PATIENCE, &mut || look(Duration::ZERO))?;
        let Told::Ready(ready) = told else { return Err(confused(&place.setup.node)) };
        for part in &place.setup.gives {
            let at = match (&part.congestion, &ready.ticket, ready.tcp_port) {
                (Some(_), _, Some(port)) => SourceAt::Tcp((part.source, port).into()),
                (None, Some(ticket), _) => SourceAt::Ticket(ticket.clone()),
                _ => return Err(confused(&place.setup.node)),
            };
            sources.insert(part.session, at);
        }
    }
    let lasts_ns = plan.lasts.as_nanos() as u64;
    let at_ns = now_ns() + AHEAD.as_nanos() as u64;
    for (place, child) in plan.places.iter().zip(&mut children) {
        let taken = place.setup.takes.iter();
        let known = taken.filter_map(|part| Some((part.session, sources.get(&part.session)?.clone())));
        child.order(&Start { at_ns, lasts_ns, sources: known.collect() })?;
    }
    let begin = instant_at(at_ns);
    let deadline = begin + plan.lasts + PATIENCE;
    let mut ends = Vec::new();
    for (place, child) in plan.places.iter().zip(&children) {
        let told = child.hear(deadline, &mut || look(begin.elapsed().min(plan.lasts)))?;
        let Told::Seen(report) = told else { return Err(confused(&place.setup.node)) };
        ends.push(report);
    }
    drop(children);
    let lost: io::Result<Vec<u64>> = spaces.iter().enumerate().map(|(port, space)| overflows(space, port)).collect();
    let overflows = lost?.iter().sum();
    Ok(Seen { ends, relay: relay.stop()?, begin: begin.saturating_duration_since(relay_began), overflows })
}

fn confused(node: &str) -> Error {
    Error::End { node: node.to_owned(), what: "says something else than it was asked for".into() }
}
