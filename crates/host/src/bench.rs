//! How fast: memory to memory, between two endpoints.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration as StdDuration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use fairwave_proto::Terms;
use fairwave_proto::codec::{CloseReason, Refusal, VoidReason};
use fairwave_schemes::global::metrics::jain_index;
use fairwave_units::Rate;
use thiserror::Error;

use crate::carrier::Carrier;
use crate::connect::{ConnectError, ConnectOptions};
use crate::endpoint::Endpoint;
use crate::handler::Handler;
use crate::purpose::Purpose;
use crate::session::{Session, SessionStats};
use crate::ticket::Ticket;
use crate::visitor::{Accept, Judge, Visitor};

/// Which way data go, as the client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchDirection {
    /// To the server.
    Send,
    /// From the server.
    Receive,
    /// Both at once.
    Both,
}

/// Options of a bench.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BenchOptions {
    /// For how long.
    pub time: StdDuration,
    /// Sessions side by side.
    pub sessions: usize,
    /// Which way.
    pub direction: BenchDirection,
    /// Max rate of a session, in each direction.
    pub limit: Option<Rate>,
    /// This end node's options for each session.
    pub session: Terms,
    /// How often to tell how it goes.
    pub every: StdDuration,
}

/// The result of one session in one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BenchFlow {
    /// Its number, from 0.
    pub session: usize,
    /// Whether the client sent.
    pub is_sent: bool,
    /// Bytes that came, each counted once.
    pub bytes: u64,
    /// Over the time that it took.
    pub goodput_bps: f64,
    /// Rate of datagrams at the sink, bit/s.
    pub wire_bps: f64,
    /// Packets that the source declared lost.
    pub lost_packets: u64,
}

/// The result of a bench.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BenchReport {
    /// How long it took, in seconds.
    pub wall_s: f64,
    /// Each session, each way.
    pub flows: Vec<BenchFlow>,
    /// All of them together.
    pub goodput_bps: f64,
    /// All of them together, of datagrams.
    pub wire_bps: f64,
    /// CPU time of this process for each 10^9 bytes, and of the server's.
    pub cpu_s_per_gb: [f64; 2],
    /// Packets that the sources declared lost.
    pub lost_packets: u64,
    /// Of the goodputs of all flows.
    pub jain: f64,
    /// The carrier of its sessions: another than UDP if it carried any of them.
    pub carrier: Carrier,
}

/// How it goes: since the last time, in each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BenchProgress {
    /// Since the beginning.
    pub elapsed: StdDuration,
    /// Of data that the client receives, bit/s.
    pub receive_bps: f64,
    /// Of data that the client sends, bit/s, on the wire.
    pub send_wire_bps: f64,
    /// The carrier of its sessions: another than UDP if it carries any of them.
    pub carrier: Carrier,
}

/// Why a bench ended early.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BenchError {
    /// A session could not be opened.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A session ended.
    #[error("session {session} ended early: {reason}")]
    Ended {
        /// Its number, from 0.
        session: usize,
        /// Why.
        reason: CloseReason,
    },
    /// The server does not say what it measured.
    #[error("no report from the server within {0} s")]
    NoReport(u64),
}

/// The stream of the load, and that of what the server measured.
const LOAD: u32 = 1;
const REPORT: u32 = 2;
const SEND: u8 = 0;
const RECEIVE: u8 = 1;
const BOTH: u8 = 2;
/// As much as any bench may take.
const ENDLESS: Range<u64> = 0..1 << 60;
/// CPU time, bytes of streams received, bytes of datagrams received, time since the first, packets lost: 8 bytes each.
const REPORT_BYTES: usize = 40;
/// Loads come from and go to a buffer of this size: one for all sessions of a process to come from, and one for all of
/// a network thread to go to.
const BUFFER: usize = 4 << 20;

static LOADED: LazyLock<Vec<u8>> =
    LazyLock::new(|| (0..BUFFER).map(|at| (at.wrapping_mul(2_654_435_761) >> 7) as u8).collect());

thread_local! {
    static UNLOADED: RefCell<Vec<u8>> = RefCell::new(vec![0; BUFFER]);
}
/// Attempts side by side: a server has no more TCP connections from one network, and four times as many half-open
/// sessions.
const OPENS_AT_ONCE: usize = 64;
const REPORT_PATIENCE: StdDuration = StdDuration::from_secs(10);

/// Judges the visitors of a bench server, with the end node's options for each session. Requests for files are refused:
/// tickets for a bench are for nothing else.
pub fn bench_judge(session: Terms) -> Judge {
    Box::new(move |visitor| client_sends(visitor).map(|_| session))
}

/// How a bench server handles its visitors.
pub fn bench_accept(session: Terms) -> Accept {
    Box::new(move |visitor| Ok((session, Box::new(Load::new(None, client_sends(visitor)?)))))
}

fn client_sends(visitor: &Visitor<'_>) -> Result<bool, Refusal> {
    match Purpose::read(visitor.greeting) {
        Some((Purpose::Bench, [SEND | BOTH])) => Ok(true),
        Some((Purpose::Bench, [RECEIVE])) => Ok(false),
        Some((Purpose::Get | Purpose::Put, _)) => Err(Refusal::Purpose),
        Some((Purpose::Bench, _)) | None => Err(Refusal::UnknownName),
    }
}

/// Runs a bench, and reports its progress.
pub fn bench(
    endpoint: &Endpoint,
    ticket: &Ticket,
    options: &BenchOptions,
    tell: &mut dyn FnMut(BenchProgress),
) -> Result<BenchReport, BenchError> {
    let (news, heard) = unbounded();
    let counts = Arc::new(BenchCounts::default());
    let sessions = open(endpoint, ticket, options, &news, &counts)?;
    let cpu_before = cpu_s();
    let start = Instant::now();
    for session in &sessions {
        session.set_desired(options.limit.unwrap_or(Rate::nearest_bps(f64::MAX)));
        if options.direction != BenchDirection::Send {
            session.set_ceiling(options.limit);
            session.want(LOAD, ENDLESS);
        }
    }
    watch(options, &sessions, &heard, &counts, start, tell)?;
    let result = finish(options, &sessions, &heard, start, cpu_before);
    for session in &sessions {
        session.close(CloseReason::Done);
    }
    result
}

/// Opens all sessions, many at a time: where UDP is blocked each of them waits for that.
fn open(
    endpoint: &Endpoint,
    ticket: &Ticket,
    options: &BenchOptions,
    news: &Sender<BenchNews>,
    counts: &Arc<BenchCounts>,
) -> Result<Vec<Session>, ConnectError> {
    let (mut begun, mut sessions, mut failed) = (VecDeque::new(), Vec::new(), None);
    let mut left = 0..options.sessions;
    loop {
        while failed.is_none()
            && begun.len() < OPENS_AT_ONCE
            && let Some(index) = left.next()
        {
            let listener = Listener { index, news: news.clone(), counts: Arc::clone(counts) };
            let request = ConnectOptions {
                sends: true,
                receives: true,
                greeting: Purpose::Bench.greeting(&[direction_byte(options.direction)]),
                options: options.session,
            };
            match endpoint.begin(ticket, request, Box::new(Load::new(Some(listener), false)), None) {
                Ok(answer) => begun.push_back(answer),
                Err(error) => failed = Some(error),
            }
        }
        let Some(answer) = begun.pop_front() else { break };
        match answer.recv().unwrap_or(Err(ConnectError::Closed)) {
            Ok(session) => sessions.push(session),
            Err(error) => _ = failed.get_or_insert(error),
        }
    }
    let Some(error) = failed else { return Ok(sessions) };
    for session in sessions {
        session.close(CloseReason::Stopped);
    }
    Err(error)
}

fn watch(
    options: &BenchOptions,
    sessions: &[Session],
    heard: &Receiver<BenchNews>,
    counts: &BenchCounts,
    start: Instant,
    tell: &mut dyn FnMut(BenchProgress),
) -> Result<(), BenchError> {
    let (mut told_at, mut before) = (start, (0, 0));
    loop {
        let elapsed = start.elapsed();
        let left = options.time.saturating_sub(elapsed);
        if left.is_zero() {
            return Ok(());
        }
        match heard.recv_timeout(left.min(options.every.saturating_sub(told_at.elapsed()))) {
            Ok(BenchNews::Ended { session, reason }) => return Err(BenchError::Ended { session, reason }),
            Ok(BenchNews::Report { .. }) | Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout) => {}
        }
        if told_at.elapsed() >= options.every {
            let sent = sessions.iter().map(|session| session.stats().sent_wire_bytes).sum();
            let now = (counts.received.load(Ordering::Relaxed), sent);
            let per_s = |bytes: u64| 8.0 * bytes as f64 / told_at.elapsed().as_secs_f64();
            tell(BenchProgress {
                elapsed: start.elapsed(),
                receive_bps: per_s(now.0 - before.0),
                send_wire_bps: per_s(now.1 - before.1),
                carrier: carrier_of(sessions),
            });
            (told_at, before) = (Instant::now(), now);
        }
    }
}

/// Asks the server what it measured, and adds it up.
fn finish(
    options: &BenchOptions,
    sessions: &[Session],
    heard: &Receiver<BenchNews>,
    start: Instant,
    cpu_before: f64,
) -> Result<BenchReport, BenchError> {
    let wall_s = start.elapsed().as_secs_f64();
    let cpu_here_s = cpu_s() - cpu_before;
    let received: Vec<_> = sessions.iter().map(Session::stats).collect();
    for session in sessions {
        session.give_up(LOAD, ENDLESS);
        // Load in flight arrives before the report, and is no longer measured.
        session.set_ceiling(None);
        session.want(REPORT, 0..REPORT_BYTES as u64);
    }
    let mut reports = vec![None; sessions.len()];
    let deadline = Instant::now() + REPORT_PATIENCE;
    while reports.iter().any(Option::is_none) {
        match heard.recv_deadline(deadline) {
            Ok(BenchNews::Report { session, report }) => reports[session] = Some(report),
            Ok(BenchNews::Ended { session, reason }) => return Err(BenchError::Ended { session, reason }),
            Err(_) => return Err(BenchError::NoReport(REPORT_PATIENCE.as_secs())),
        }
    }
    let mut flows = Vec::new();
    let mut cpu_there_s: f64 = 0.0;
    for (index, (report, here)) in reports.into_iter().flatten().zip(received).enumerate() {
        let [cpu_ns, bytes, wire_bytes, elapsed_ns, lost_there] = report;
        // The sessions of a process share its CPU time.
        cpu_there_s = cpu_there_s.max(cpu_ns as f64 / 1e9);
        let flow = |is_sent, bytes: u64, wire_bytes: u64, seconds: f64, lost_packets| BenchFlow {
            session: index,
            is_sent,
            bytes,
            goodput_bps: 8.0 * bytes as f64 / seconds,
            wire_bps: 8.0 * wire_bytes as f64 / seconds,
            lost_packets,
        };
        if options.direction != BenchDirection::Receive {
            let seconds = (elapsed_ns as f64 / 1e9).max(1e-9);
            flows.push(flow(true, bytes, wire_bytes, seconds, sessions[index].stats().lost_packets));
        }
        if options.direction != BenchDirection::Send {
            flows.push(flow(false, here.received_bytes, here.received_wire_bytes, wall_s, lost_there));
        }
    }
    let gigabytes = flows.iter().map(|flow| flow.bytes as f64 / 1e9).sum::<f64>().max(1e-9);
    let goodputs: Vec<f64> = flows.iter().map(|flow| flow.goodput_bps).collect();
    Ok(BenchReport {
        wall_s,
        goodput_bps: goodputs.iter().sum(),
        wire_bps: flows.iter().map(|flow| flow.wire_bps).sum(),
        cpu_s_per_gb: [cpu_here_s / gigabytes, cpu_there_s / gigabytes],
        lost_packets: lost_packets(&flows),
        jain: jain_index(&goodputs),
        carrier: carrier_of(sessions),
        flows,
    })
}

fn carrier_of(sessions: &[Session]) -> Carrier {
    let mut carriers = sessions.iter().map(|session| session.facts().carrier);
    carriers.find(|carrier| *carrier != Carrier::Udp).unwrap_or_default()
}

/// Packets that all sources declared lost. Those of the server's come from its report.
fn lost_packets(flows: &[BenchFlow]) -> u64 {
    flows.iter().fold(0, |sum, flow| sum.saturating_add(flow.lost_packets))
}

fn direction_byte(direction: BenchDirection) -> u8 {
    match direction {
        BenchDirection::Send => SEND,
        BenchDirection::Receive => RECEIVE,
        BenchDirection::Both => BOTH,
    }
}

/// `bytes` with all that was received around them.
///
/// Statistics are some milliseconds old, or still zero: a ratio of them would multiply the few packets of a start.
fn wire_bytes(bytes: u64, stats: &SessionStats) -> u64 {
    bytes.saturating_add(stats.received_wire_bytes.saturating_sub(stats.received_bytes))
}

/// CPU time of this process.
fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[derive(Default)]
struct BenchCounts {
    received: AtomicU64,
}

enum BenchNews {
    Report { session: usize, report: [u64; REPORT_BYTES / 8] },
    Ended { session: usize, reason: CloseReason },
}

/// The receiver of a client session's events.
struct Listener {
    index: usize,
    news: Sender<BenchNews>,
    counts: Arc<BenchCounts>,
}

/// Bytes from memory, and into it.
struct Load {
    listener: Option<Listener>,
    /// Whether it asks as soon as the session is open; a client waits for all its sessions, and sends nothing before.
    wants: bool,
    report: [u8; REPORT_BYTES],
    report_bytes: usize,
    cpu_before_s: f64,
    /// The first byte that came, and how long it took up to the last.
    first: Option<Instant>,
    bytes: u64,
}

impl Load {
    fn new(listener: Option<Listener>, wants: bool) -> Self {
        let report = [0; REPORT_BYTES];
        Self { listener, wants, report, report_bytes: 0, cpu_before_s: 0.0, first: None, bytes: 0 }
    }
}

impl Handler for Load {
    fn on_open(&mut self, session: &Session) {
        self.cpu_before_s = cpu_s();
        if self.listener.is_some() {
            session.set_desired(Rate::ZERO);
        }
        if self.wants {
            session.want(LOAD, ENDLESS);
        }
    }

    fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
        match stream {
            LOAD => session.serve(stream, range),
            REPORT if range.end <= REPORT_BYTES as u64 => {
                let stats = session.stats();
                let cpu_ns = ((cpu_s() - self.cpu_before_s) * 1e9) as u64;
                let elapsed_ns = self.first.map_or(0, |first| first.elapsed().as_nanos() as u64);
                let wire_bytes = wire_bytes(self.bytes, &stats);
                let report = [cpu_ns, self.bytes, wire_bytes, elapsed_ns, stats.lost_packets];
                for (place, value) in self.report.chunks_mut(8).zip(report) {
                    place.copy_from_slice(&value.to_be_bytes());
                }
                session.serve(stream, range);
            }
            _ => session.refuse(stream, range, VoidReason::Vanished),
        }
    }

    fn lend(&mut self, stream: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        if stream == REPORT {
            let (start, end) = (range.start as usize, range.end as usize);
            take(self.report.get(start..end).ok_or(VoidReason::Shrank)?);
            return Ok(());
        }
        let (mut at, mut left) = ((range.start % BUFFER as u64) as usize, (range.end - range.start) as usize);
        while left > 0 {
            let length = left.min(BUFFER - at);
            take(&LOADED[at..at + length]);
            (at, left) = (0, left - length);
        }
        Ok(())
    }

    fn on_data(&mut self, _session: &Session, stream: u32, offset: u64, bytes: &[u8]) {
        if stream == REPORT {
            let at = offset as usize;
            if let Some(place) = self.report.get_mut(at..at + bytes.len()) {
                place.copy_from_slice(bytes);
                self.report_bytes += bytes.len();
            }
            if self.report_bytes == REPORT_BYTES
                && let Some(listener) = &self.listener
            {
                let mut report = [0; REPORT_BYTES / 8];
                for (value, bytes) in report.iter_mut().zip(self.report.as_chunks::<8>().0) {
                    *value = u64::from_be_bytes(*bytes);
                }
                let _ = listener.news.send(BenchNews::Report { session: listener.index, report });
            }
            return;
        }
        self.first.get_or_insert_with(Instant::now);
        self.bytes += bytes.len() as u64;
        let at = (offset % BUFFER as u64) as usize;
        let length = bytes.len().min(BUFFER - at);
        UNLOADED.with_borrow_mut(|memory| {
            memory[at..at + length].copy_from_slice(&bytes[..length]);
            memory[..bytes.len() - length].copy_from_slice(&bytes[length..]);
        });
        if let Some(listener) = &self.listener {
            listener.counts.received.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
    }

    fn on_closed(&mut self, _session: &Session, reason: CloseReason, _by_peer: bool) {
        if let Some(listener) = &self.listener {
            let _ = listener.news.send(BenchNews::Ended { session: listener.index, reason });
        }
    }
}

#[cfg(test)]
mod tests {
    use fairwave_proto::codec::TicketId;

    use super::*;

    #[test]
    fn lost_packets__are_as_many_as_there_can_be_where_a_server_says_more() {
        let flow = |lost_packets| BenchFlow { lost_packets, ..BenchFlow::default() };
        assert_eq!(lost_packets(&[flow(2), flow(3)]), 5);
        assert_eq!(lost_packets(&[flow(u64::MAX), flow(u64::MAX)]), u64::MAX);
    }

    #[test]
    fn wire_bytes__is_not_multiplied_by_what_came_before_the_first_byte() {
        let stats = |received_bytes, received_wire_bytes| SessionStats {
            received_bytes,
            received_wire_bytes,
            ..<_>::default()
        };
        // Three control packets of 100 bytes, and then a megabyte that no statistics count yet.
        assert_eq!(wire_bytes(1_000_000, &stats(0, 300)), 1_000_300);
        // 1000 packets of 1400 bytes with 77 bytes of headers each.
        assert_eq!(wire_bytes(1_400_000, &stats(1_400_000, 1_477_000)), 1_477_000);
    }

    #[test]
    fn bench_accept__takes_no_ticket_for_one_of_files() {
        let mut accept = bench_accept(Terms::default());
        let mut judge = bench_judge(Terms::default());
        let mut refused = |greeting: &[u8]| {
            let from = ([127, 0, 0, 1], 9).into();
            let (sends, receives) = (true, true);
            let visitor = Visitor {
                from,
                ticket: TicketId(7),
                greeting,
                sends,
                receives,
                sessions: 0,
                one_use: None,
                goes_on_since_unix_s: None,
            };
            let refused = judge(&visitor).err();
            assert_eq!(accept(&visitor).err(), refused);
            refused
        };
        assert_eq!(refused(&Purpose::Get.greeting(&[])), Some(Refusal::Purpose));
        assert_eq!(refused(&Purpose::Put.greeting(&[])), Some(Refusal::Purpose));
        assert_eq!(refused(&Purpose::Bench.greeting(&[250])), Some(Refusal::UnknownName));
        assert_eq!(refused(&[]), Some(Refusal::UnknownName));
        for way in [SEND, RECEIVE, BOTH] {
            assert_eq!(refused(&Purpose::Bench.greeting(&[way])), None);
        }
    }
}
