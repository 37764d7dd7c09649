//! Sessions of the kernel's own TCP at one node: a bulk sender and a bulk reader, a thread each.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use socket2::SockRef;

use crate::bins::Bins;
use crate::end_message::{Arrived, Part, Sent};
use crate::socket_options::{set_max_pacing, tcp_info};

/// Bytes of an IPv4 header and a TCP header with timestamps.
const HEADERS: f64 = 52.0;
/// Payload of a full segment if no connection reports it.
const USUAL_MSS: f64 = 1448.0;
/// Bytes of one write and of one read.
const PIECE: usize = 1 << 18;
/// Enough for the windows of sessions with a large bandwidth-delay product: 1 Gb/s x 250 ms is half of it.
const MAX_WINDOW: u64 = 64 << 20;
/// Maximum time to connect, and to wait for the number of a session.
const PATIENCE: Duration = Duration::from_secs(10);

/// All sessions of kernel TCP at a node.
pub(crate) struct TcpEnd {
    port: u16,
    gives: Arc<Mutex<BTreeMap<usize, SourceSession>>>,
    takes: BTreeMap<usize, Arc<SinkSession>>,
}

/// A session of which this is the source.
struct SourceSession {
    part: Part,
    /// Its current demand in bit/s of IP packets.
    wants: Option<f64>,
    stream: Option<TcpStream>,
    failed: Option<String>,
}

/// A session of which this is the sink.
struct SinkSession {
    sink: Mutex<Sink>,
    stream: Mutex<Option<TcpStream>>,
    is_stopped: AtomicBool,
}

struct Sink {
    bins: Bins,
    size_bytes: Option<u64>,
    completed: Option<Instant>,
    ended: Option<String>,
}

/// Allows sockets of this namespace any window size, and disables the cache of earlier connections.
pub(crate) fn tune() -> io::Result<()> {
    let most = format!("4096 262144 {MAX_WINDOW}");
    for (name, value) in [("tcp_rmem", most.as_str()), ("tcp_wmem", &most), ("tcp_no_metrics_save", "1")] {
        std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value)
            .map_err(|error| io::Error::new(error.kind(), format!("net.ipv4.{name}: {error}")))?;
    }
    Ok(())
}

impl TcpEnd {
    /// Listens for the sinks of the sessions that go from here.
    pub(crate) fn open(gives: &[Part]) -> io::Result<Self> {
        let parts = gives.iter().filter(|part| part.congestion.is_some());
        let gives: BTreeMap<_, _> = parts
            .map(|part| {
                let wants = part.wanted(0);
                (part.session, SourceSession { part: part.clone(), wants, stream: None, failed: None })
            })
            .collect();
        let gives = Arc::new(Mutex::new(gives));
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let port = listener.local_addr()?.port();
        let there = Arc::clone(&gives);
        std::thread::Builder::new().name("accept".into()).spawn(move || {
            for stream in listener.incoming().flatten() {
                let there = Arc::clone(&there);
                let served = std::thread::Builder::new().name("give".into()).spawn(move || give(stream, &there));
                if served.is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { port, gives, takes: BTreeMap::new() })
    }

    /// The listening port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The sink opens a session; `begin` is the start of the run.
    pub(crate) fn take(&mut self, part: &Part, source: SocketAddr, begin: Instant) -> io::Result<()> {
        let sink = Sink { bins: Bins::new(begin), size_bytes: part.size_bytes, completed: None, ended: None };
        let (stream, is_stopped) = (Mutex::new(None), AtomicBool::new(false));
        let taken = Arc::new(SinkSession { sink: Mutex::new(sink), stream, is_stopped });
        self.takes.insert(part.session, Arc::clone(&taken));
        let number = part.session;
        std::thread::Builder::new().name("take".into()).spawn(move || {
            let ended = take(number, source, &taken).err();
            if !taken.is_stopped.load(Ordering::Acquire) {
                lock(&taken.sink).ended = ended.map(|error| error.to_string());
            }
        })?;
        Ok(())
    }

    /// The sink ends a session, or will not open it.
    pub(crate) fn stop(&self, session: usize) {
        let Some(taken) = self.takes.get(&session) else { return };
        taken.is_stopped.store(true, Ordering::Release);
        if let Some(stream) = &*lock(&taken.stream) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Changes the demand of a source.
    pub(crate) fn set_demand(&self, session: usize, bps: Option<f64>) {
        let mut gives = lock(&self.gives);
        let Some(given) = gives.get_mut(&session) else { return };
        given.wants = bps;
        if let Some(stream) = &given.stream
            && let Err(error) = pace(stream, bps)
        {
            given.failed = Some(error.to_string());
        }
    }

    /// Its report of a run of this length.
    pub(crate) fn report(&self, begin: Instant, lasts_ns: u64) -> (BTreeMap<usize, Arrived>, BTreeMap<usize, Sent>) {
        let sent = |(number, given): (&usize, &SourceSession)| {
            let info = given.stream.as_ref().and_then(|stream| tcp_info(stream).ok()).unwrap_or_default();
            let congestion = given.part.congestion.as_deref().unwrap_or_default();
            let because = match &given.failed {
                Some(failed) => failed.clone(),
                None => format!(
                    "{congestion} of the kernel has a window of {} packets at an RTT of {:.1} ms, after {} \
                     retransmissions",
                    info.cwnd,
                    f64::from(info.rtt_us) / 1e3,
                    info.resent
                ),
            };
            let (packets, resent) = (u64::from(info.sent), u64::from(info.resent));
            let failed = given.failed.clone();
            (*number, Sent { packets, lost: resent, resent, known: Vec::new(), because, failed })
        };
        let arrived = |(number, taken): (&usize, &Arc<SinkSession>)| {
            let sink = lock(&taken.sink);
            let info = lock(&taken.stream).as_ref().and_then(|stream| tcp_info(stream).ok()).unwrap_or_default();
            let mss = if info.mss_bytes > 0 { f64::from(info.mss_bytes) } else { USUAL_MSS };
            let seen = Arrived {
                bins: sink.bins.within(lasts_ns),
                wire_share: (mss + HEADERS) / mss,
                completed_ns: sink.completed.map(|at| at.saturating_duration_since(begin).as_nanos() as u64),
                known: Vec::new(),
                because: String::new(),
                ended: sink.ended.clone(),
            };
            (*number, seen)
        };
        (self.takes.iter().map(arrived).collect(), lock(&self.gives).iter().map(sent).collect())
    }
}

/// Serves a connected sink.
fn give(mut stream: TcpStream, gives: &Mutex<BTreeMap<usize, SourceSession>>) {
    let mut number = [0; 4];
    let _ = stream.set_read_timeout(Some(PATIENCE));
    if stream.read_exact(&mut number).is_err() {
        return;
    }
    let number = u32::from_be_bytes(number) as usize;
    let begun = {
        let mut gives = lock(gives);
        let Some(given) = gives.get_mut(&number) else { return };
        let begun = begin(&stream, given);
        if let Err(error) = &begun {
            given.failed = Some(error.to_string());
        }
        begun.map(|()| given.part.size_bytes)
    };
    let Ok(size) = begun else { return };
    let piece = vec![0; PIECE];
    let mut left = size.unwrap_or(u64::MAX);
    while left > 0 {
        // The demand of an idle session is zero, which is not possible as a pacing rate.
        if lock(gives).get(&number).is_some_and(|given| given.wants == Some(0.0)) {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        }
        match stream.write(&piece[..PIECE.min(usize::try_from(left).unwrap_or(PIECE))]) {
            Ok(0) | Err(_) => return,
            Ok(bytes) => left -= bytes as u64,
        }
    }
}

fn begin(stream: &TcpStream, given: &mut SourceSession) -> io::Result<()> {
    let name = given.part.congestion.as_deref().unwrap_or_default();
    set_congestion(stream, name)?;
    pace(stream, given.wants)?;
    given.stream = Some(stream.try_clone()?);
    Ok(())
}

/// Sets the kernel's congestion control of a socket's connections, by its name there.
fn set_congestion(socket: &impl AsFd, name: &str) -> io::Result<()> {
    SockRef::from(socket)
        .set_tcp_congestion(name.as_bytes())
        .map_err(|error| io::Error::new(error.kind(), format!("this kernel has no TCP {name}: {error}")))
}

/// Limits the send rate, in bit/s of IP packets.
fn pace(stream: &TcpStream, bps: Option<f64>) -> io::Result<()> {
    let payload = |bps: f64| bps * USUAL_MSS / (USUAL_MSS + HEADERS);
    set_max_pacing(stream, bps.map(payload))
}

/// Receives a session to its end.
fn take(number: usize, source: SocketAddr, taken: &SinkSession) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&source, PATIENCE)?;
    *lock(&taken.stream) = Some(stream.try_clone()?);
    // Stopped before it was open: `stop` may have found no connection.
    if taken.is_stopped.load(Ordering::Acquire) {
        return stream.shutdown(Shutdown::Both);
    }
    let number = u32::try_from(number).map_err(io::Error::other)?;
    stream.write_all(&number.to_be_bytes())?;
    let mut buffer = vec![0; PIECE];
    loop {
        let bytes = stream.read(&mut buffer)?;
        let now = Instant::now();
        let mut sink = lock(&taken.sink);
        sink.bins.add(now, bytes as u64);
        let is_whole = sink.size_bytes.is_some_and(|size| sink.bins.bytes() >= size);
        if is_whole {
            sink.completed = Some(now);
            return Ok(());
        }
        if bytes == 0 {
            return Err(io::Error::other("the source ended it"));
        }
    }
}

/// Whether this kernel has a rule of that name; the error has the reason. It makes no connection: the namespace needs
/// no device that is up.
pub(crate) fn check_congestion(name: &str) -> io::Result<()> {
    set_congestion(&TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?, name)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn check_congestion__finds_the_kernels_rules() {
        check_congestion("reno").unwrap();
        let error = check_congestion("none-such").unwrap_err().to_string();
        assert!(error.contains("this kernel has no TCP none-such"), "{error}");
    }

    #[test]
    fn check_congestion__needs_no_loopback() {
        // The same in a new network namespace, whose loopback is down, if the user may have one.
        let inside = |program: &std::path::Path| {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user", "--net"]).arg(program);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        if !inside("true".as_ref()).status().is_ok_and(|status| status.success()) {
            return;
        }
        let mut again = inside(&std::env::current_exe().unwrap());
        let name = "tcp::tests::check_congestion__finds_the_kernels_rules";
        assert!(again.args([name, "--exact"]).status().unwrap().success());
    }

    fn part(size_bytes: Option<u64>) -> Part {
        Part {
            session: 3,
            congestion: Some("reno".to_owned()),
            source: Ipv4Addr::LOCALHOST.into(),
            weight: 1.0,
            minimum_bps: 0.0,
            alpha: 0.1,
            beta: 0.2,
            demand: vec![(0, Some(0.0)), (5, Some(1e9))],
            start_ns: 10,
            stop_ns: None,
            size_bytes,
        }
    }

    #[test]
    fn open__uses_the_demand_at_its_start() {
        let end = TcpEnd::open(&[part(None)]).unwrap();
        assert_eq!(lock(&end.gives)[&3].wants, Some(1e9));
    }

    #[test]
    fn take__does_not_start_a_stopped_session() {
        let source = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let begin = Instant::now();
        let sink = Sink { bins: Bins::new(begin), size_bytes: None, completed: None, ended: None };
        let (stream, is_stopped) = (Mutex::new(None), AtomicBool::new(true));
        let taken = SinkSession { sink: Mutex::new(sink), stream, is_stopped };
        take(3, source.local_addr().unwrap(), &taken).unwrap();
        let (mut there, _) = source.accept().unwrap();
        // The peer never names its session.
        assert_eq!(there.read(&mut [0; 4]).unwrap(), 0);
    }
}
