//! The program at one node: a separate process in the node's namespace, controlled by lines of JSON.

use std::io::{self, BufRead, Write};
use std::time::{Duration, Instant};

use fairwave_daemon::Daemon;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::clock::{instant_at, now_ns};
use crate::end_message::{EndMessage, EndReport, Part, Ready, Setup, SourceAt, Start};
use crate::gtp::GtpEnd;
use crate::tcp::{self, TcpEnd};

/// Interval at which an end checks whether it ran on time.
const TICK: Duration = Duration::from_millis(10);
/// Interval at which it records the node's rates of sessions, in ticks.
const SAMPLE: u64 = 5;
/// Length of the final part of a run in which the limits of sessions are recorded.
const LAST: Duration = Duration::from_millis(500);

/// Scheduled actions of an end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Action {
    /// The sink opens the session with this index among its own.
    Open(usize),
    /// The sink ends a session.
    Stop(usize),
    /// The demand of a source changes.
    Demand(usize, Option<f64>),
    /// The end starts to record the limits of sessions.
    Look,
}

/// Runs as the program at one node, until the process that started it ends. It communicates only through standard input
/// and output.
///
/// # Errors
///
/// If it gets no instructions. All other errors are reported in its output.
pub fn end() -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // With privileges it has priority over this machine's other programs, but not over the relay; otherwise the call
    // has no effect.
    let _ = rustix::process::setpriority_process(None, -10);
    let mut lines = io::BufReader::new(io::stdin()).lines();
    let mut next = move || lines.next().unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()));
    let setup: Setup = serde_json::from_str(&next()?)?;
    if getppid().map(Pid::as_raw_pid) != i32::try_from(setup.parent).ok() {
        // The parent ended before the signal was requested.
        return Ok(());
    }
    let mut ends = match Ends::open(&setup) {
        Ok(ends) => ends,
        Err(failed) => return tell(&EndMessage::Failed(failed)),
    };
    let tcp_port = setup.gives.iter().any(|part| part.congestion.is_some()).then(|| ends.tcp.port());
    tell(&EndMessage::Ready(Ready { ticket: ends.gtp.as_ref().map(GtpEnd::ticket), tcp_port }))?;
    let start: Start = serde_json::from_str(&next()?)?;
    // There are no further instructions: the end of this input is the end of the conductor.
    std::thread::Builder::new().name("leash".into()).spawn(move || {
        let _ = next();
        std::process::exit(0);
    })?;
    match ends.run(&setup, &start) {
        Ok(report) => tell(&EndMessage::Report(report))?,
        Err(failed) => tell(&EndMessage::Failed(failed))?,
    }
    // Sessions continue until all ends have reported.
    loop {
        std::thread::park();
    }
}

fn tell(message: &EndMessage) -> io::Result<()> {
    let mut line = serde_json::to_string(message)?;
    line.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.flush()
}

/// The endpoints of a node's sessions.
struct Ends {
    gtp: Option<GtpEnd>,
    tcp: TcpEnd,
    /// The node's daemon, if this process is it.
    _daemon: Option<Daemon>,
}

impl Ends {
    fn open(setup: &Setup) -> Result<Self, String> {
        let parts = || setup.gives.iter().chain(&setup.takes);
        if parts().any(|part| part.congestion.is_some()) {
            tcp::tune().map_err(|error| error.to_string())?;
        }
        let daemon = setup.daemon.as_ref().zip(setup.rule.as_ref()).filter(|_| setup.is_daemon);
        let daemon = daemon.map(|(socket, rule)| crate::node_daemon::start(socket, rule)).transpose()?;
        let rule = setup.rule.as_ref().filter(|_| !setup.is_daemon);
        let gtp = rule.map(|rule| GtpEnd::open(setup, rule)).transpose()?;
        let tcp = TcpEnd::open(&setup.gives).map_err(|error| error.to_string())?;
        Ok(Self { gtp, tcp, _daemon: daemon })
    }

    fn run(&mut self, setup: &Setup, start: &Start) -> Result<EndReport, String> {
        let begin = instant_at(start.at_ns);
        let actions = actions(setup, start);
        let mut actions = actions.iter().peekable();
        let mut standstill_ns = 0;
        let (mut wakes_ns, mut ticks) = (start.at_ns, 0);
        loop {
            std::thread::sleep(Duration::from_nanos(wakes_ns.saturating_sub(now_ns())));
            let now = now_ns();
            standstill_ns = standstill_ns.max(now.saturating_sub(wakes_ns));
            let passed = now.saturating_sub(start.at_ns);
            while let Some((_, action)) = actions.next_if(|(at, _)| *at <= passed) {
                self.act(*action, setup, start, begin)?;
            }
            if passed >= start.lasts_ns {
                break;
            }
            if let Some(gtp) = self.gtp.as_mut().filter(|_| ticks % SAMPLE == 0) {
                gtp.sample(passed);
            }
            ticks += 1;
            let tick = start.at_ns + (passed / TICK.as_nanos() as u64 + 1) * TICK.as_nanos() as u64;
            let action = actions.peek().map_or(u64::MAX, |(at, _)| start.at_ns + at);
            wakes_ns = tick.min(action).min(start.at_ns + start.lasts_ns);
        }
        let mut report = EndReport { standstill_ns, ..EndReport::default() };
        (report.arrived, report.sent) = self.tcp.report(begin, start.lasts_ns);
        if let Some(gtp) = &mut self.gtp {
            let (arrived, sent, overflows) = gtp.report(begin, start.lasts_ns);
            report.arrived.extend(arrived);
            report.sent.extend(sent);
            report.overflows = overflows;
        }
        Ok(report)
    }

    fn act(&mut self, action: Action, setup: &Setup, start: &Start, begin: Instant) -> Result<(), String> {
        let gtp = |gtp: &mut Option<GtpEnd>, act: &mut dyn FnMut(&mut GtpEnd)| gtp.iter_mut().for_each(act);
        match action {
            Action::Open(place) => {
                let part = &setup.takes[place];
                match (start.sources.get(&part.session), &mut self.gtp) {
                    (Some(SourceAt::Ticket(ticket)), Some(gtp)) => gtp.take(part, ticket, begin),
                    (Some(SourceAt::Tcp(source)), _) => {
                        self.tcp.take(part, *source, begin).map_err(|error| error.to_string())
                    }
                    _ => Err(format!("no address for the source of session {}", part.session)),
                }?;
            }
            Action::Stop(session) => {
                gtp(&mut self.gtp, &mut |gtp| gtp.stop(session));
                self.tcp.stop(session);
            }
            Action::Demand(session, bps) => {
                gtp(&mut self.gtp, &mut |gtp| gtp.set_demand(session, bps));
                self.tcp.set_demand(session, bps);
            }
            Action::Look => gtp(&mut self.gtp, &mut GtpEnd::look),
        }
        Ok(())
    }
}

/// All actions of an end in a run, in order of time.
fn actions(setup: &Setup, start: &Start) -> Vec<(u64, Action)> {
    let mut actions = Vec::new();
    let is_within = |at: u64| at < start.lasts_ns;
    for (place, part) in setup.takes.iter().enumerate() {
        if is_within(part.start_ns) {
            actions.push((part.start_ns, Action::Open(place)));
        }
        actions.extend(part.stop_ns.filter(|at| is_within(*at)).map(|at| (at, Action::Stop(part.session))));
    }
    for part in &setup.gives {
        // The demand at its start is part of opening the session.
        let later = |part: &Part, at: u64| at > part.start_ns && is_within(at);
        let changes = part.demand.iter().filter(|(at, _)| later(part, *at));
        actions.extend(changes.map(|(at, bps)| (*at, Action::Demand(part.session, *bps))));
    }
    actions.push((start.lasts_ns.saturating_sub(LAST.as_nanos() as u64), Action::Look));
    actions.sort_by_key(|(at, _)| *at);
    actions
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn actions__are_those_of_the_run_in_order() {
        let part = |session, start_ns, stop_ns| Part {
            session,
            congestion: None,
            source: [10, 66, 0, 1].into(),
            weight: 1.0,
            minimum_bps: 0.0,
            alpha: 0.1,
            beta: 0.2,
            demand: vec![(0, None), (7, Some(5.0)), (2_000_000_000, None)],
            start_ns,
            stop_ns,
            size_bytes: None,
        };
        let setup = Setup {
            node: "a".into(),
            parent: 1,
            address: [10, 66, 0, 1].into(),
            rule: None,
            gives: vec![part(3, 5, None)],
            takes: vec![part(0, 9, Some(1_500_000_000)), part(1, 2_000_000_000, None), part(2, 1, Some(8))],
            daemon: None,
            is_daemon: false,
        };
        let start = Start { at_ns: 100, lasts_ns: 1_000_000_000, sources: BTreeMap::new() };
        // Starts after the end of the run are dropped; the demand at the start is not sent again.
        let expected = [
            (1, Action::Open(2)),
            (7, Action::Demand(3, Some(5.0))),
            (8, Action::Stop(2)),
            (9, Action::Open(0)),
            (500_000_000, Action::Look),
        ];
        assert_eq!(actions(&setup, &start), expected);
    }
}
