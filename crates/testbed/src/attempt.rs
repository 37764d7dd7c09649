//! One run of a plan: the network, the programs, and their reports.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairwave_wan::{Direction, Port, Relay, Report, Space, overflows};

use crate::child::Child;
use crate::clock::{instant_at, now_ns};
use crate::end_message::{EndMessage, EndReport, SourceAt, Start};
use crate::error::Error;
use crate::node_daemon::SETTLED;
use crate::plan::Plan;
use crate::programs::{Processes, Program, programs};
use crate::sockets::SocketDir;

/// Bytes of an IP packet, as on Ethernet.
const MTU: u32 = 1500;
/// Time for programs to start, and to report their results.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time between the start message to all programs and the start of the run.
const AHEAD: Duration = Duration::from_millis(300);

/// Reports of a run.
#[derive(Debug)]
pub(crate) struct RunReports {
    /// Reports of the programs.
    pub(crate) ends: Vec<EndReport>,
    /// The node of each program.
    pub(crate) nodes: Vec<String>,
    /// Report of the relay.
    pub(crate) relay: Report,
    /// Start of the run, on the relay's clock.
    pub(crate) begin: Duration,
    /// Packets that the kernel dropped before the relay.
    pub(crate) overflows: u64,
}

/// Runs a plan once. `command` starts the program at a node; `look` is called regularly with the elapsed time of the
/// run, and may end it.
pub(crate) fn attempt(
    plan: &Plan,
    processes: Processes,
    command: &[String],
    look: &mut dyn FnMut(Duration) -> Result<(), Error>,
) -> Result<RunReports, Error> {
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
    let sockets = SocketDir::new()?;
    let programs = programs(plan, processes, &sockets.path);
    let mut children: Vec<Child> = Vec::new();
    let mut sources = BTreeMap::new();
    let mut ready_at = Instant::now();
    for program in &programs {
        let mut child = Child::start(&spaces[program.place], &program.setup.node, command)?;
        child.order(&program.setup)?;
        if program.setup.is_daemon {
            let message = child.hear(Instant::now() + PATIENCE, &mut || look(Duration::ZERO))?;
            let EndMessage::Ready(_) = message else { return Err(confused(&program.setup.node)) };
            ready_at = Instant::now() + SETTLED;
        }
        children.push(child);
    }
    for (Program { setup, .. }, child) in programs.iter().zip(&children).filter(|(program, _)| !program.setup.is_daemon)
    {
        let message = child.hear(Instant::now() + PATIENCE, &mut || look(Duration::ZERO))?;
        let EndMessage::Ready(ready) = message else { return Err(confused(&setup.node)) };
        for part in &setup.gives {
            let at = match (&part.congestion, &ready.ticket, ready.tcp_port) {
                (Some(_), _, Some(port)) => SourceAt::Tcp((part.source, port).into()),
                (None, Some(ticket), _) => SourceAt::Ticket(ticket.clone()),
                _ => return Err(confused(&setup.node)),
            };
            sources.insert(part.session, at);
        }
    }
    let lasts_ns = plan.lasts.as_nanos() as u64;
    let settles = ready_at.saturating_duration_since(Instant::now()).as_nanos() as u64;
    let at_ns = now_ns() + settles.max(AHEAD.as_nanos() as u64);
    for (Program { setup, .. }, child) in programs.iter().zip(&mut children) {
        let taken = setup.takes.iter();
        let known = taken.filter_map(|part| Some((part.session, sources.get(&part.session)?.clone())));
        child.order(&Start { at_ns, lasts_ns, sources: known.collect() })?;
    }
    let begin = instant_at(at_ns);
    let deadline = begin + plan.lasts + PATIENCE;
    let mut ends = Vec::new();
    for (Program { setup, .. }, child) in programs.iter().zip(&children) {
        let message = child.hear(deadline, &mut || look(begin.elapsed().min(plan.lasts)))?;
        let EndMessage::Report(report) = message else { return Err(confused(&setup.node)) };
        ends.push(report);
    }
    drop(children);
    let nodes = programs.into_iter().map(|program| program.setup.node).collect();
    let lost: io::Result<Vec<u64>> = spaces.iter().enumerate().map(|(port, space)| overflows(space, port)).collect();
    let overflows = lost?.iter().sum();
    Ok(RunReports { ends, nodes, relay: relay.stop()?, begin: begin.saturating_duration_since(relay_began), overflows })
}

fn confused(node: &str) -> Error {
    Error::End { node: node.to_owned(), what: "sent an unexpected message".into() }
}
