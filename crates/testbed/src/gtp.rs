//! The sessions of GTP, and of other rules of end nodes, at one node: the program's own endpoint.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crossbeam_channel::Receiver;
use fairwave_host::{
    CloseReason, ConnectError, ConnectOptions, Endpoint, EndpointConfig, Handler, Here, Identity, IntervalRule,
    Keyring, NodeChoice, PathKind, Refusal, Session, ShareId, StatusSample, Terms, Ticket, Validity, Visitor,
    VoidReason,
};
use fairwave_units::{Duration, Rate};

use crate::bins::Bins;
use crate::end_message::{Arrived, Part, RuleSetup, Sent, Setup};

/// The stream that holds a session's load.
const LOAD: u32 = 1;
/// Size of the stream of a session without a size.
const ENDLESS: u64 = 1 << 60;
/// Size of the buffer from which the load is sent repeatedly.
const BUFFER: usize = 1 << 20;
/// The largest UDP payload in an Ethernet frame of IPv4.
const MAX_DATAGRAM: u32 = 1472;
/// Bounds of a control interval that follows the round-trip times.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(60));

static LOADED: LazyLock<Vec<u8>> =
    LazyLock::new(|| (0..BUFFER).map(|at| (at.wrapping_mul(2_654_435_761) >> 7) as u8).collect());

/// All sessions of GTP at a node.
pub(crate) struct GtpEnd {
    endpoint: Endpoint,
    capacity: Option<Rate>,
    ticket: Ticket,
    /// Sessions of which it is the source.
    gives: Arc<Mutex<Sources>>,
    /// Sessions of which it is the sink.
    takes: BTreeMap<usize, SinkSession>,
    before: Option<StatusSample>,
}

/// The sessions of which this is the source.
struct Sources {
    /// Current demand of each in bit/s of IP packets; `None` is unlimited. It may change before the session is open.
    demands: BTreeMap<usize, Option<f64>>,
    /// Those that have opened.
    open: BTreeMap<usize, SourceSession>,
}

/// A session of which this is the source.
struct SourceSession {
    session: Session,
    known: Vec<(u64, [f64; 3])>,
}

/// A session of which this is the sink.
struct SinkSession {
    answer: Receiver<Result<Session, ConnectError>>,
    session: Option<Session>,
    /// Whether it is to end: as soon as it is open, if it is not yet.
    is_stopped: bool,
    seen: Arc<Mutex<Sink>>,
    known: Vec<(u64, [f64; 3])>,
}

/// The network thread's counts of a session that arrives here.
struct Sink {
    bins: Bins,
    size_bytes: u64,
    completed: Option<Instant>,
    ended: Option<String>,
}

impl GtpEnd {
    /// Its endpoint, at the addresses of the node, and the sessions of sources there.
    pub(crate) fn open(setup: &Setup, rule: &RuleSetup) -> Result<Self, String> {
        let rate = |bps: Option<f64>| bps.map(Rate::nearest_bps);
        let interval = match rule.interval_ns {
            Some(ns) => IntervalRule::Fixed(Duration::from_nanos(ns)),
            None => IntervalRule::Rtt { least: INTERVALS.0, most: INTERVALS.1 },
        };
        let config = EndpointConfig {
            listen: Some(SocketAddr::new([0, 0, 0, 0].into(), 0)),
            send_capacity: rate(rule.send_bps),
            receive_capacity: rate(rule.receive_bps),
            node: setup.daemon.clone().map_or(NodeChoice::Own, NodeChoice::At),
            path: if rule.is_shared { PathKind::Shared } else { PathKind::Dedicated },
            rule: rule.name.clone(),
            interval,
            drain: rule.drain,
            fair_start: rule.fair_start,
            largest_datagram: MAX_DATAGRAM,
            ..EndpointConfig::default()
        };
        let endpoint = Endpoint::bind(&config).map_err(|error| error.to_string())?;
        let identity = Identity::random().map_err(|error| error.to_string())?;
        let keyring = Arc::new(Keyring::in_memory(identity, ShareId::of(["testbed"], false)));
        let port = endpoint.local_addr().port();
        let validity = Validity { lasts_s: None, is_once: false };
        let addresses = vec![SocketAddr::new(setup.address, port)];
        let ticket = keyring.issue(validity, addresses).map_err(|error| error.to_string())?;
        let demands = setup.gives.iter().map(|part| (part.session, part.wanted(0))).collect();
        let gives = Arc::new(Mutex::new(Sources { demands, open: BTreeMap::new() }));
        let parts: Arc<BTreeMap<usize, Part>> =
            Arc::new(setup.gives.iter().map(|part| (part.session, part.clone())).collect());
        let (known, there) = (Arc::clone(&parts), Arc::clone(&gives));
        let judge = move |visitor: &Visitor<'_>| requested_part(&known, visitor).map(options);
        let accept = move |visitor: &Visitor<'_>| {
            let part = requested_part(&parts, visitor)?;
            let giver = LoadSource { number: part.session, gives: Arc::clone(&there) };
            Ok((options(part), Box::new(giver) as Box<dyn Handler>))
        };
        endpoint.listen_with(keyring, Box::new(judge), Box::new(accept));
        let capacity = config.send_capacity.or(config.receive_capacity);
        Ok(Self { endpoint, capacity, ticket, gives, takes: BTreeMap::new(), before: None })
    }

    /// The ticket for sinks. Each connects to the address of its session.
    pub(crate) fn ticket(&self) -> String {
        self.ticket.to_string()
    }

    /// The sink opens a session; `begin` is the start of the run.
    pub(crate) fn take(&mut self, part: &Part, ticket: &str, begin: Instant) -> Result<(), String> {
        let mut ticket: Ticket = ticket.parse().map_err(|_| "the source's ticket is invalid".to_owned())?;
        for address in &mut ticket.addresses {
            address.set_ip(part.source);
        }
        let size_bytes = part.size_bytes.unwrap_or(ENDLESS);
        let sink = Sink { bins: Bins::new(begin), size_bytes, completed: None, ended: None };
        let seen = Arc::new(Mutex::new(sink));
        let greeting = u32::try_from(part.session).map_err(|error| error.to_string())?.to_be_bytes().to_vec();
        let request = ConnectOptions { sends: false, receives: true, greeting, options: options(part) };
        let taker = LoadSink { seen: Arc::clone(&seen) };
        let answer = self.endpoint.begin(&ticket, request, Box::new(taker), None).map_err(|error| error.to_string())?;
        self.takes
            .insert(part.session, SinkSession { answer, session: None, is_stopped: false, seen, known: Vec::new() });
        Ok(())
    }

    /// The sink ends a session.
    pub(crate) fn stop(&mut self, session: usize) {
        if let Some(taken) = self.takes.get_mut(&session) {
            taken.stop();
        }
    }

    /// Changes the demand of a source.
    pub(crate) fn set_demand(&self, session: usize, bps: Option<f64>) {
        let mut gives = lock(&self.gives);
        gives.demands.insert(session, bps);
        if let Some(given) = gives.open.get(&session) {
            given.session.set_desired(Rate::nearest_bps(bps.unwrap_or(f64::MAX)));
        }
    }

    /// Records the nodes' rates of their sessions now, `at` nanoseconds into the run.
    pub(crate) fn sample(&mut self, at: u64) {
        let bps = |rate: Option<Rate>| rate.map_or(f64::MAX, Rate::as_bps);
        for given in lock(&self.gives).open.values_mut() {
            if let Some(rates) = given.session.stats().source {
                let row = [bps(Some(rates.expected)), bps(rates.sink_expected), bps(Some(rates.target))];
                given.known.push((at, row));
            }
        }
        for taken in self.takes.values_mut() {
            if let Some(rates) = taken.session().and_then(|session| session.stats().sink) {
                let row = [bps(Some(rates.measured)), bps(Some(rates.expected)), bps(Some(rates.target))];
                taken.known.push((at, row));
            }
        }
    }

    /// Records the progress of sessions: from here on [`GtpEnd::report`] evaluates their limits.
    pub(crate) fn look(&mut self) {
        self.before = Some(StatusSample::take(self.sessions(), &[]));
    }

    /// Its report of a run of this length.
    pub(crate) fn report(
        &mut self,
        begin: Instant,
        lasts_ns: u64,
    ) -> (BTreeMap<usize, Arrived>, BTreeMap<usize, Sent>, u64) {
        let now = StatusSample::take(self.sessions(), &[]);
        let here = Here { capacity: self.capacity };
        let held = self.before.as_ref().map(|before| now.since(before, here)).unwrap_or_default();
        let because = |session: &Session| {
            let id = format!("{:016x}", session.id().0);
            held.iter().find(|status| status.id == id).map_or(String::new(), |status| status.because.clone())
        };
        let mut overflows = 0;
        let mut sent = BTreeMap::new();
        for (number, given) in &mut lock(&self.gives).open {
            let stats = given.session.stats();
            overflows = overflows.max(stats.overflows);
            let known = std::mem::take(&mut given.known);
            let (packets, lost) = (stats.sent_packets, stats.lost_packets);
            let because = because(&given.session);
            sent.insert(*number, Sent { packets, lost, resent: lost, known, because, failed: None });
        }
        let mut arrived = BTreeMap::new();
        for (number, taken) in &mut self.takes {
            let session = taken.session().cloned();
            let stats = session.as_ref().map(Session::stats).unwrap_or_default();
            overflows = overflows.max(stats.overflows);
            let because = session.as_ref().map_or_else(|| "it did not open".to_owned(), because);
            let sink = lock(&taken.seen);
            let since = |at: Instant| at.saturating_duration_since(begin).as_nanos() as u64;
            arrived.insert(
                *number,
                Arrived {
                    bins: sink.bins.within(lasts_ns),
                    wire_share: stats.received_wire_bytes as f64 / stats.received_bytes.max(1) as f64,
                    completed_ns: sink.completed.map(since),
                    known: std::mem::take(&mut taken.known),
                    because,
                    ended: sink.ended.clone(),
                },
            );
        }
        (arrived, sent, overflows)
    }

    fn sessions(&mut self) -> Vec<Session> {
        let mut sessions: Vec<_> = lock(&self.gives).open.values().map(|given| given.session.clone()).collect();
        sessions.extend(self.takes.values_mut().filter_map(|taken| taken.session().cloned()));
        sessions
    }
}

impl SinkSession {
    /// Ends it; if it is not open yet, as soon as [`SinkSession::session`] finds that it is.
    fn stop(&mut self) {
        self.is_stopped = true;
        match &self.session {
            Some(session) => session.close(CloseReason::Done),
            // The answer may have arrived already.
            None => drop(self.session()),
        }
    }

    /// The session, once it is open.
    fn session(&mut self) -> Option<&Session> {
        if self.session.is_none()
            && let Ok(answer) = self.answer.try_recv()
        {
            match answer {
                Ok(session) => {
                    if self.is_stopped {
                        session.close(CloseReason::Done);
                    }
                    self.session = Some(session);
                }
                // The answer for a stopped session is not needed any more.
                Err(_) if self.is_stopped => {}
                Err(error) => lock(&self.seen).ended = Some(format!("it could not be opened: {error}")),
            }
        }
        self.session.as_ref()
    }
}

/// Provides as many bytes as are requested.
struct LoadSource {
    number: usize,
    gives: Arc<Mutex<Sources>>,
}

impl Handler for LoadSource {
    fn on_open(&mut self, session: &Session) {
        // Under one lock, so that no other change of demand comes in between.
        let mut gives = lock(&self.gives);
        if let Some(Some(bps)) = gives.demands.get(&self.number) {
            session.set_desired(Rate::nearest_bps(*bps));
        }
        gives.open.insert(self.number, SourceSession { session: session.clone(), known: Vec::new() });
    }

    fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
        session.serve(stream, range);
    }

    fn lend(&mut self, _: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        let (mut at, mut left) = ((range.start % BUFFER as u64) as usize, (range.end - range.start) as usize);
        while left > 0 {
            let length = left.min(BUFFER - at);
            take(&LOADED[at..at + length]);
            (at, left) = (0, left - length);
        }
        Ok(())
    }
}

/// Accepts all arrivals, and counts them.
struct LoadSink {
    seen: Arc<Mutex<Sink>>,
}

impl Handler for LoadSink {
    fn on_open(&mut self, session: &Session) {
        session.want(LOAD, 0..lock(&self.seen).size_bytes);
    }

    fn on_data(&mut self, session: &Session, _: u32, _: u64, bytes: &[u8]) {
        let now = Instant::now();
        let mut sink = lock(&self.seen);
        sink.bins.add(now, bytes.len() as u64);
        if sink.bins.bytes() >= sink.size_bytes && sink.completed.is_none() {
            sink.completed = Some(now);
            session.close(CloseReason::Done);
        }
    }

    fn on_closed(&mut self, _: &Session, reason: CloseReason, _: bool) {
        if reason != CloseReason::Done {
            lock(&self.seen).ended = Some(reason.to_string());
        }
    }
}

/// The session that a visitor requests.
fn requested_part<'a>(parts: &'a BTreeMap<usize, Part>, visitor: &Visitor<'_>) -> Result<&'a Part, Refusal> {
    let number = <[u8; 4]>::try_from(visitor.greeting).map_err(|_| Refusal::UnknownName)?;
    parts.get(&(u32::from_be_bytes(number) as usize)).ok_or(Refusal::UnknownName)
}

fn options(part: &Part) -> Terms {
    Terms {
        weight: part.weight,
        alpha: part.alpha,
        beta: part.beta,
        minimum: Rate::nearest_bps(part.minimum_bps),
        ..Terms::default()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
