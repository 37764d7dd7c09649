//! The thread at the control socket: handles connections and requests.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::Sender;
use fairwave_host::control_socket::{
    Answer, CONTROL_VERSION, MAX_CLOCK_DIFFERENCE, MAX_COMMAND_BYTES, OTHER_CLOCK, Question, monotonic_ns,
    other_version,
};
use fairwave_node::MachineLimits;
use fairwave_table::{DaemonSegment, ROWS, VERSION};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::bind::BoundSocket;
use crate::news::{Shared, TickerEvent, VisitorId};
use crate::shown::snapshot;
use crate::visitor::{Heard, Visitor, send_with};

/// The open connections.
pub(crate) struct ControlSocket {
    socket: BoundSocket,
    bell: Arc<Bell>,
    limits: MachineLimits,
    /// Connections of all users.
    most_visitors: usize,
    visitors: BTreeMap<VisitorId, Visitor>,
    newest: u64,
    ticker: Sender<TickerEvent>,
    shared: Arc<Shared>,
    /// The user that the daemon runs as: it sees all.
    user: u32,
}

/// Wakes the thread of the control socket.
pub(crate) struct Bell {
    fd: std::os::fd::OwnedFd,
    is_over: AtomicBool,
    is_seen: AtomicBool,
}

/// Connections of a user in addition to its members: for questions about the machine's state.
const MAX_ASKING: usize = 16;
/// Connections of all users, by default.
const MAX_VISITORS: usize = 4096;
/// Period of the search for idle connections.
const LOOK_EVERY: Duration = Duration::from_millis(500);

impl Bell {
    pub(crate) fn new() -> std::io::Result<Self> {
        let flags = rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK;
        let fd = rustix::event::eventfd(0, flags)?;
        Ok(Self { fd, is_over: AtomicBool::new(false), is_seen: AtomicBool::new(false) })
    }

    /// The daemon ends.
    pub(crate) fn stop(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.ring();
    }

    /// There is a view of the machine.
    pub(crate) fn seen(&self) {
        self.is_seen.store(true, Ordering::SeqCst);
        self.ring();
    }

    fn ring(&self) {
        // It can only fail because it has been rung 2^64 times.
        let _ = rustix::io::write(&self.fd, &1_u64.to_ne_bytes());
    }
}

impl ControlSocket {
    pub(crate) fn new(
        socket: BoundSocket,
        bell: Arc<Bell>,
        limits: MachineLimits,
        ticker: Sender<TickerEvent>,
        shared: Arc<Shared>,
    ) -> Self {
        let user = rustix::process::geteuid().as_raw();
        let (most_visitors, visitors) = (MAX_VISITORS, BTreeMap::new());
        Self { socket, bell, limits, most_visitors, visitors, newest: 0, ticker, shared, user }
    }

    /// Serves connections until the daemon ends.
    pub(crate) fn run(mut self) {
        while !self.bell.is_over.load(Ordering::SeqCst) {
            let (ready, comes) = self.wait();
            let _ = rustix::io::read(&self.bell.fd, &mut [0; 8]);
            if self.bell.is_seen.swap(false, Ordering::SeqCst) {
                self.show();
            }
            for visitor in ready {
                self.attend(visitor);
            }
            if comes {
                self.let_in();
            }
            let idle: Vec<_> =
                self.visitors.iter().filter(|(_, visitor)| visitor.is_idle()).map(|(id, _)| *id).collect();
            for visitor in idle {
                self.close(visitor);
            }
        }
    }

    /// Waits for events: the visitors that have sent something or can take more, and whether a new one connects.
    fn wait(&self) -> (Vec<VisitorId>, bool) {
        let mut fds =
            vec![PollFd::new(&self.bell.fd, PollFlags::IN), PollFd::new(&self.socket.listener, PollFlags::IN)];
        fds.extend(self.visitors.values().map(|visitor| {
            // Unread requests stay in the system, and would wake this thread repeatedly.
            let wakes = if visitor.has_unsent() {
                PollFlags::OUT
            } else if visitor.waits {
                PollFlags::empty()
            } else {
                PollFlags::IN | PollFlags::RDHUP
            };
            PollFd::new(&visitor.stream, wakes)
        }));
        let has_more = self.visitors.values().any(Visitor::has_more);
        let timeout = Timespec::try_from(if has_more { Duration::ZERO } else { LOOK_EVERY }).ok();
        let _ = poll(&mut fds, timeout.as_ref());
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let ready = self.visitors.iter().zip(&fds[2..]).filter(|((_, visitor), fd)| is_ready(fd) || visitor.has_more());
        (ready.map(|((id, _), _)| *id).collect(), is_ready(&fds[1]))
    }

    fn let_in(&mut self) {
        // As many as a turn may take; the others wait in the system's queue.
        for _ in 0..64 {
            let stream = match self.socket.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    // No descriptors are left: idle connections are closed soon.
                    tracing::warn!(%error, "cannot accept processes");
                    std::thread::sleep(Duration::from_millis(10));
                    return;
                }
            };
            let Ok(visitor) = Visitor::new(stream) else { continue };
            self.admit(visitor);
        }
    }

    /// Adds a connection, or refuses it with an answer.
    fn admit(&mut self, mut visitor: Visitor) {
        if let Err(error) = self.make_room(visitor.user) {
            self.tell(TickerEvent::Refused(1));
            visitor.answer(line(&Answer::Error(error)));
            // Best effort: the socket of a new connection has room for a line.
            let _ = visitor.flush();
            return;
        }
        self.newest += 1;
        self.visitors.insert(VisitorId(self.newest), visitor);
    }

    /// Makes room for a connection of a user. If the user or the daemon has as many as allowed, the oldest idle
    /// connection of the process with the most of them is closed: a flood of connections from one process shuts out no
    /// other.
    fn make_room(&mut self, user: u32) -> Result<(), String> {
        let most_of_user = self.limits.members_a_user + MAX_ASKING;
        let of_user = self.visitors.values().filter(|other| other.user == user).count();
        let is_user_full = of_user >= most_of_user;
        if !is_user_full && self.visitors.len() < self.most_visitors {
            return Ok(());
        }
        // By process: the number of its idle connections, and the oldest of them.
        let mut idle: BTreeMap<(u32, u32), (usize, VisitorId)> = BTreeMap::new();
        for (id, visitor) in &self.visitors {
            if visitor.is_unused() && (!is_user_full || visitor.user == user) {
                idle.entry((visitor.user, visitor.pid)).or_insert((0, *id)).0 += 1;
            }
        }
        let Some((_, oldest)) = idle.into_values().max_by_key(|(count, oldest)| (*count, Reverse(*oldest))) else {
            let (most, whose) =
                if is_user_full { (most_of_user, "this user") } else { (self.most_visitors, "all users") };
            return Err(format!("{most} connections of {whose} are open already, the most that there may be"));
        };
        self.tell(TickerEvent::Refused(1));
        self.close(oldest);
        Ok(())
    }

    fn attend(&mut self, id: VisitorId) {
        let Some(visitor) = self.visitors.get_mut(&id) else { return };
        if !visitor.flush() {
            return self.close(id);
        }
        // A visitor with pending answers cannot ask more.
        if visitor.has_unsent() {
            return;
        }
        match visitor.hear() {
            Heard::Nothing => {}
            Heard::Gone => self.close(id),
            Heard::Nonsense(error) => self.send_away(id, error),
            Heard::Asked(question) => {
                visitor.renew();
                match question {
                    Question::Join { version, layout, clock_ns, command } => {
                        self.join(id, (version, layout), clock_ns, &command);
                    }
                    Question::More => self.more(id),
                    Question::Status => self.wait_for_view(id),
                }
            }
        }
    }

    fn join(&mut self, id: VisitorId, (version, layout): (u32, u64), clock_ns: u64, command: &str) {
        let Some(visitor) = self.visitors.get(&id) else { return };
        let (user, pid) = (visitor.user, visitor.pid);
        let of_user = self.visitors.values().filter(|other| other.user == user && other.segments > 0).count();
        let error = if version != CONTROL_VERSION || layout != VERSION {
            Some(other_version(version, layout))
        } else if clock_ns > monotonic_ns().saturating_add(MAX_CLOCK_DIFFERENCE.as_nanos() as u64) {
            // A clock that is behind may be a question that waited on a busy machine. The process knows when it asked:
            // it compares the clock in the answer, and refuses one that is off in either direction.
            Some(OTHER_CLOCK.to_owned())
        } else if visitor.segments > 0 {
            Some("the process has already joined".to_owned())
        } else if of_user >= self.limits.members_a_user {
            Some(format!("the user already has {of_user} processes at the daemon, the maximum"))
        } else {
            None
        };
        if let Some(error) = error {
            return self.send_away(id, error);
        }
        let printable = command.chars().filter(|c| c.is_ascii_graphic() || *c == ' ');
        let command: Arc<str> = printable.take(MAX_COMMAND_BYTES).collect::<String>().into();
        if let Some(segment) = self.give_segment(id) {
            tracing::debug!(user, pid, %command, "joined");
            self.tell(TickerEvent::Joined { visitor: id, user, pid, command, segment });
        }
    }

    fn more(&mut self, id: VisitorId) {
        let Some(visitor) = self.visitors.get(&id) else { return };
        let user = visitor.user;
        let more_of_user: usize = self
            .visitors
            .values()
            .filter(|other| other.user == user)
            .map(|other| other.segments.saturating_sub(1))
            .sum();
        if visitor.segments == 0 {
            return self.send_away(id, "the process has not joined".to_owned());
        }
        if (more_of_user + 1) * ROWS > self.limits.rows_a_user {
            let error = Answer::Error(format!("a user can have at most {} sessions", self.limits.rows_a_user));
            return self.answer(id, &error);
        }
        if let Some(segment) = self.give_segment(id) {
            self.tell(TickerEvent::More { visitor: id, segment });
        }
    }

    /// Makes a segment and hands its memory over; this end's, unless its process does not take it.
    fn give_segment(&mut self, id: VisitorId) -> Option<DaemonSegment> {
        let visitor = self.visitors.get_mut(&id)?;
        let (segment, memory) = match DaemonSegment::make() {
            Ok(made) => made,
            Err(error) => {
                tracing::warn!(%error, "no room for another process");
                self.send_away(id, error.to_string());
                return None;
            }
        };
        // A process reads the tick report of its first segment.
        if visitor.segments == 0 {
            segment.set_tick_report(&self.shared.tick_reports.load().of(visitor.user));
        }
        let joined = Answer::Joined { version: CONTROL_VERSION, layout: VERSION, clock_ns: monotonic_ns() };
        let line = serde_json::to_string(&joined).unwrap_or_default();
        match send_with(&visitor.stream, &line, &[memory.rows, memory.grants]) {
            Ok(true) => {
                visitor.segments += 1;
                Some(segment)
            }
            // It is gone, or has not read its earlier answers.
            Ok(false) => {
                self.close(id);
                None
            }
            // Such as ETOOMANYREFS: too many descriptors of this user are in flight.
            Err(error) => {
                tracing::warn!(%error, "cannot pass memory to a process");
                self.send_away(id, format!("its memory cannot be passed: {error}"));
                None
            }
        }
    }

    /// It is answered at the next tick, unless its user's others wait already, as many as may.
    fn wait_for_view(&mut self, id: VisitorId) {
        let Some(user) = self.visitors.get(&id).map(|visitor| visitor.user) else { return };
        let others = self.visitors.values().filter(|other| other.user == user && (other.waits || other.has_unsent()));
        if others.count() >= MAX_ASKING {
            let error = format!("{MAX_ASKING} requests of this user are already being answered, the maximum");
            return self.answer(id, &Answer::Error(error));
        }
        if let Some(visitor) = self.visitors.get_mut(&id) {
            visitor.waits = true;
            self.shared.is_wanted.store(true, Ordering::SeqCst);
        }
    }

    /// Answers the visitors that wait for the state of the machine.
    fn show(&mut self) {
        let view = self.shared.view.load_full();
        let mut gone = Vec::new();
        // One text for all visitors with the same view.
        let mut texts: BTreeMap<Option<u32>, Arc<str>> = BTreeMap::new();
        for (id, visitor) in self.visitors.iter_mut().filter(|(_, visitor)| visitor.waits) {
            visitor.waits = false;
            let sees = (visitor.user != 0 && visitor.user != self.user).then_some(visitor.user);
            let text = texts.entry(sees).or_insert_with(|| {
                // Plain values always are JSON.
                let json = serde_json::to_string(&snapshot(&view, sees)).unwrap_or_default();
                format!("{{\"status\":{json}}}\n").into()
            });
            visitor.answer(Arc::clone(text));
            if !visitor.flush() {
                gone.push(*id);
            }
        }
        for id in gone {
            self.close(id);
        }
    }

    fn answer(&mut self, id: VisitorId, answer: &Answer) {
        let Some(visitor) = self.visitors.get_mut(&id) else { return };
        visitor.answer(line(answer));
        if !visitor.flush() {
            self.close(id);
        }
    }

    /// Says why, as far as that goes, and is done with it.
    fn send_away(&mut self, id: VisitorId, error: String) {
        self.tell(TickerEvent::Refused(1));
        self.answer(id, &Answer::Error(error));
        self.close(id);
    }

    fn close(&mut self, id: VisitorId) {
        if self.visitors.remove(&id).is_some_and(|visitor| visitor.segments > 0) {
            self.tell(TickerEvent::Gone(id));
        }
    }

    fn tell(&self, news: TickerEvent) {
        // Without a ticker the daemon is about to end.
        let _ = self.ticker.send(news);
    }
}

/// An answer as a line of JSON.
fn line(answer: &Answer) -> Arc<str> {
    // Plain values always are JSON.
    let json = serde_json::to_string(answer).unwrap_or_default();
    format!("{json}\n").into()
}

#[cfg(test)]
mod tests;
