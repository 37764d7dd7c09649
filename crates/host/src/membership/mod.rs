//! A process's membership in the machine's table: the rates and grants of its sessions go through rows in memory that
//! it shares with the daemon. "One capacity for a machine" in docs/explanation/max-min-and-gtp.md has the reason and
//! the gain.
//!
//! [`Membership`] is of the network thread, which never waits for a daemon: [`helper`] does.

mod facts;
mod helper;
mod places;
mod row;

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use fairwave_node::{AssignedGrant, Assignment, Direction, Orphan};
use fairwave_proto::codec::SessionId;
use fairwave_proto::{Host, NodeConfig};
use fairwave_table::TickReport;
use fairwave_units::{Duration, Rate, Time};

use crate::control_socket::monotonic_ns;
use crate::crypto::Noise;
use crate::thread_waker::ThreadWaker;

pub use facts::{NodeChoice, NodeFacts, NodeOrigin};
use helper::{Helper, MembershipEvent};
use places::Places;
pub(crate) use row::MemberSession;
pub use row::limited_by_word;
use row::{holding, row};

/// Makes end nodes of this process, for a direction with a capacity.
pub(crate) type MakeNode = Box<dyn Fn(Direction, Rate) -> NodeConfig + Send>;

/// The membership of an endpoint.
pub(crate) struct Membership {
    helper: Helper,
    make: MakeNode,
    own: OwnCapacities,
    /// How far CLOCK_MONOTONIC is ahead of this endpoint's clock.
    ahead_ns: u64,
    state: State,
    socket: Option<PathBuf>,
    shared: Arc<ArcSwap<NodeFacts>>,
    grants: Vec<AssignedGrant>,
}

/// Send and receive capacity of a process that is its own node.
#[derive(Clone, Copy)]
pub(crate) struct OwnCapacities {
    pub(crate) rates: [Option<Rate>; 2],
    /// Whether that also bounds what a daemon grants it.
    pub(crate) is_bound: bool,
}

enum State {
    /// This process is its own node, or none.
    Own,
    Member(MemberState),
    /// The daemon is gone, or stands still: then it still has its rows.
    Orphan {
        sums: [Option<Orphan>; 2],
        renew_at: Time,
        places: Option<Box<Places>>,
        pulse: u64,
    },
}

struct MemberState {
    places: Box<Places>,
    pulse: u64,
    /// The last tick whose grants were taken.
    taken: u64,
    /// When that was seen.
    heard: Time,
    interval: Duration,
    /// When rows are written.
    look_at: Time,
    /// When to look whether the daemon has ticked, where nothing else wakes the thread.
    check_at: Time,
}

const BOTH: [Direction; 2] = [Direction::Sending, Direction::Receiving];
/// Rows are written this long before a tick, or a tenth of an interval if that is more: measurements should be fresh,
/// and the thread may be late.
const LEAD: Duration = Duration::from_millis(1);
/// A daemon that has not ticked for this time, and for ten intervals, is considered stalled.
const STANDS_STILL: Duration = Duration::from_secs(1);
/// Period of reducing the capacity of a process whose daemon is gone.
const RENEW_EVERY: Duration = Duration::from_secs(1);
/// Period of checks for a tick that is due; later a tenth of an interval.
const CHECK_EVERY: Duration = Duration::from_micros(200);
/// How long a starting process waits for a daemon whose socket exists.
const FIRST_WAIT: std::time::Duration = std::time::Duration::from_millis(100);

impl Membership {
    /// For an endpoint that starts, if it wants one. `own` is the capacity of its nodes without a daemon.
    pub(crate) fn start(
        choice: &NodeChoice,
        now: Time,
        make: MakeNode,
        own: OwnCapacities,
        network: Arc<ThreadWaker>,
        shared: Arc<ArcSwap<NodeFacts>>,
        host: &mut Host<Noise>,
    ) -> std::io::Result<Option<Self>> {
        let sockets = match choice {
            NodeChoice::Own => return Ok(None),
            NodeChoice::Auto => crate::control_socket::usual_sockets(),
            NodeChoice::At(socket) => vec![socket.clone()],
        };
        let is_there = sockets.iter().any(|socket| socket.exists());
        let helper = Helper::start(choice.clone(), network)?;
        let ahead_ns = monotonic_ns().saturating_sub(now.as_nanos());
        let state = State::Own;
        let mut membership = Self { helper, make, own, ahead_ns, state, socket: None, shared, grants: Vec::new() };
        if is_there && let Ok(news) = membership.helper.news.recv_timeout(FIRST_WAIT) {
            membership.on_news(now, host, &[], news);
        }
        Ok(Some(membership))
    }

    /// Whether [`Membership::turn`] has something to do: costs a load.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        let is_due = match &self.state {
            State::Own => false,
            State::Member(state) => {
                now >= state.look_at || now >= state.check_at || state.places.pulse() != state.pulse
            }
            State::Orphan { renew_at, places, pulse, .. } => {
                now >= *renew_at || places.as_ref().is_some_and(|places| places.pulse() != *pulse)
            }
        };
        is_due || !self.helper.news.is_empty()
    }

    /// When to come next, whatever else happens.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        match &self.state {
            State::Own => None,
            State::Member(state) => Some(state.look_at.min(state.check_at)),
            State::Orphan { renew_at, .. } => Some(*renew_at),
        }
    }

    /// Does what is due, with the sessions that are open.
    pub(crate) fn turn(&mut self, now: Time, host: &mut Host<Noise>, sessions: &[MemberSession<'_>]) {
        while let Ok(news) = self.helper.news.try_recv() {
            self.on_news(now, host, sessions, news);
        }
        match &mut self.state {
            State::Own => {}
            State::Member(state) => {
                let pulse = state.places.pulse();
                if pulse != state.pulse
                    && let Some(tick_report) = state.places.tick_report()
                {
                    (state.pulse, state.heard) = (pulse, now);
                    self.settle(now, host, &tick_report);
                } else if now.since(state.heard) > still(state.interval) {
                    tracing::info!("the daemon does not respond");
                    self.be_orphan(now, host, true);
                    return;
                } else if now >= state.check_at {
                    let late = now.since(state.heard).as_nanos().saturating_sub(state.interval.as_nanos());
                    let step = Duration::from_nanos(late / 4).max(CHECK_EVERY);
                    state.check_at = now.saturating_add(step);
                }
                self.look_if_due(now, host, sessions);
            }
            State::Orphan { sums, renew_at, places, pulse } => {
                if places.as_ref().is_some_and(|places| places.pulse() != *pulse)
                    && let Some(places) = places.take()
                {
                    self.be_member(now, host, sessions, places);
                } else if now >= *renew_at {
                    *renew_at = now.saturating_add(RENEW_EVERY);
                    for (direction, sum) in BOTH.into_iter().zip(sums) {
                        if let Some(orphan) = sum {
                            host.divide_itself(now, direction, orphan.capacity(now));
                        }
                    }
                    self.publish(NodeOrigin::Orphan, now);
                }
            }
        }
    }

    fn on_news(&mut self, now: Time, host: &mut Host<Noise>, sessions: &[MemberSession<'_>], news: MembershipEvent) {
        match (news, &mut self.state) {
            (MembershipEvent::Joined(socket, segment), _) => {
                self.socket = Some(socket);
                self.be_member(now, host, sessions, Box::new(Places::new(segment)));
            }
            (MembershipEvent::More(segment), State::Member(state)) => state.places.add(segment),
            // A daemon that stands still gave it: it counts on these rows when it goes on.
            (MembershipEvent::More(segment), State::Orphan { places: Some(places), .. }) => places.add(segment),
            (MembershipEvent::Gone, State::Member(_)) => self.be_orphan(now, host, false),
            (MembershipEvent::Gone, State::Orphan { places, .. }) => *places = None,
            // A daemon ran here, and was not stopped in good order. Processes that used it may have all of its
            // capacity. A capacity that was set for this process still holds.
            (MembershipEvent::None { is_absent: false }, State::Own) if has_none(host) && !self.own.is_bound => {
                for direction in BOTH {
                    host.set_node(now, direction, None);
                }
                self.publish(NodeOrigin::Path, now);
            }
            (MembershipEvent::None { is_absent: true }, State::Own) => {
                for (direction, own) in BOTH.into_iter().zip(self.own.rates) {
                    if let (None, Some(own)) = (host.sessions(direction), own) {
                        host.set_node(now, direction, Some((self.make)(direction, own)));
                    }
                }
                self.publish(NodeOrigin::Own, now);
            }
            _ => {}
        }
    }

    /// A daemon admits this process: all sessions continue with their rates, and report them.
    fn be_member(&mut self, now: Time, host: &mut Host<Noise>, sessions: &[MemberSession<'_>], places: Box<Places>) {
        let (pulse, tick_report) = (places.pulse(), places.tick_report().unwrap_or_default());
        let interval = tick_report.interval.max(Duration::from_millis(1));
        for (direction, own) in BOTH.into_iter().zip(self.own.rates) {
            let bound = own.filter(|_| self.own.is_bound).unwrap_or(Rate::nearest_bps(f64::MAX));
            if host.sessions(direction).is_none() {
                host.set_node(now, direction, Some((self.make)(direction, bound)));
            } else {
                host.divide_itself(now, direction, bound);
            }
            host.assign(direction, assignment(direction, &tick_report));
        }
        let state = MemberState { places, pulse, taken: 0, heard: now, interval, look_at: now, check_at: now };
        self.state = State::Member(state);
        self.publish_tick_report(&tick_report);
        self.look_if_due(now, host, sessions);
    }

    /// The daemon has ticked: its grants take effect, and it reports the time of its next tick.
    fn settle(&mut self, now: Time, host: &mut Host<Noise>, tick_report: &TickReport) {
        let State::Member(state) = &mut self.state else { return };
        for direction in BOTH {
            host.assign(direction, assignment(direction, tick_report));
            state.places.grants(direction, &mut self.grants);
            host.settle(now, direction, &self.grants);
        }
        let interval = tick_report.interval.max(Duration::from_millis(1));
        let next = Time::from_nanos(tick_report.next_tick.as_nanos().saturating_sub(self.ahead_ns));
        // A daemon that sends invalid times is checked once per interval.
        let next = next.max(now).min(now.saturating_add(interval).saturating_add(interval));
        let lead = Duration::from_nanos(interval.as_nanos() / 10).max(LEAD).min(interval);
        state.taken = tick_report.tick;
        state.interval = interval;
        state.look_at = Time::from_nanos(next.as_nanos().saturating_sub(lead.as_nanos())).max(now);
        state.check_at = next.saturating_add(CHECK_EVERY);
        self.publish_tick_report(tick_report);
    }

    fn look_if_due(&mut self, now: Time, host: &mut Host<Noise>, sessions: &[MemberSession<'_>]) {
        let State::Member(state) = &mut self.state else { return };
        if now < state.look_at {
            return;
        }
        state.look_at = now.saturating_add(state.interval).saturating_add(state.interval);
        let measured_at = Time::from_nanos(now.as_nanos().saturating_add(self.ahead_ns));
        let mut has_room = true;
        for direction in BOTH {
            state.places.begin(direction);
            for looked in host.look(now, direction) {
                if let (true, Some(standing)) = (looked.is_over, &looked.standing) {
                    state.places.linger(direction, looked.session, measured_at, holding(standing, state.taken));
                    continue;
                }
                let find = |id: SessionId| sessions.binary_search_by_key(&id, |member| member.session.id()).ok();
                let Some(member) = find(looked.session).and_then(|at| sessions.get(at)) else { continue };
                let row = row(member, direction, measured_at, looked, state.taken);
                has_room &= state.places.tell(direction, looked.session, &row);
            }
            state.places.end(direction);
        }
        if !has_room && state.places.asks_for_more() {
            self.helper.ask_for_more();
        }
    }

    /// The process ends in good order, and its sessions with it: rows of which nothing can come any more are given
    /// back, so that nobody waits for that.
    pub(crate) fn leave(&mut self, now: Time, host: &mut Host<Noise>) {
        if let State::Member(state) = &mut self.state {
            state.look_at = now;
        }
        self.look_if_due(now, host, &[]);
    }

    /// This process gets no more grants. It may use what it was granted last, and less each minute.
    fn be_orphan(&mut self, now: Time, host: &mut Host<Noise>, keeps_places: bool) {
        let State::Member(state) = std::mem::replace(&mut self.state, State::Own) else { return };
        let sums = BOTH.map(|direction| state.places.sum(direction).map(|sum| Orphan::new(now, sum)));
        for (direction, sum) in BOTH.into_iter().zip(sums) {
            match sum {
                Some(orphan) => host.divide_itself(now, direction, orphan.capacity(now)),
                // Sessions that are led by grants continue to be: nothing held them.
                None if host.gives_grants(direction) && host.sessions(direction).is_some_and(|open| open > 0) => {
                    host.divide_itself(now, direction, Rate::nearest_bps(f64::MAX));
                }
                // Nothing was granted: there is nothing to go on with.
                None => host.set_node(now, direction, None),
            }
        }
        let renew_at = now.saturating_add(RENEW_EVERY);
        let pulse = state.pulse;
        let places = keeps_places.then_some(state.places);
        self.state = State::Orphan { sums, renew_at, places, pulse };
        self.publish(NodeOrigin::Orphan, now);
    }

    fn publish_tick_report(&self, tick_report: &TickReport) {
        let facts = NodeFacts {
            origin: NodeOrigin::Daemon,
            send: tick_report.send,
            receive: tick_report.receive,
            socket: self.socket.clone(),
        };
        if **self.shared.load() != facts {
            self.shared.store(Arc::new(facts));
        }
    }

    fn publish(&self, origin: NodeOrigin, now: Time) {
        let [send, receive] = match (&self.state, origin) {
            (State::Orphan { sums, .. }, _) => sums.map(|sum| sum.map(|orphan| orphan.capacity(now))),
            (_, NodeOrigin::Path) => [None, None],
            _ => self.own.rates,
        };
        self.shared.store(Arc::new(NodeFacts { origin, send, receive, socket: self.socket.clone() }));
    }
}

/// Whether no session shares a node.
fn has_none(host: &Host<Noise>) -> bool {
    BOTH.into_iter().all(|direction| host.sessions(direction).unwrap_or(0) == 0)
}

fn assignment(direction: Direction, tick_report: &TickReport) -> Assignment {
    let (capacity, weights, start) = match direction {
        Direction::Sending => (tick_report.send, tick_report.send_weights, tick_report.send_start),
        Direction::Receiving => (tick_report.receive, tick_report.receive_weights, tick_report.receive_start),
    };
    Assignment { capacity, weights, start, interval: tick_report.interval.max(Duration::from_millis(1)) }
}

fn still(interval: Duration) -> Duration {
    Duration::from_nanos(interval.as_nanos().saturating_mul(10)).max(STANDS_STILL)
}
