//! The server.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::{Shutdown, shutdown};
use serde::Serialize;

use super::head::{self, Head, Refused};
use super::shown::shown;
use super::text::prometheus_text;
use fairwave_host::machine::MachineSnapshot;

/// Provides the snapshots.
type Look = dyn Fn() -> Arc<MachineSnapshot> + Send + Sync;

/// A server of metrics. Dropped, it stops: its threads end within a second.
pub struct MetricsServer {
    address: SocketAddr,
    listener: Arc<TcpListener>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    look: Box<Look>,
    is_loopback: bool,
    /// Connections that are open.
    open: AtomicUsize,
    /// Those of them that watch.
    watching: AtomicUsize,
    /// The last snapshot as JSON, for all watchers.
    json: Mutex<Option<CachedText>>,
    /// The last snapshot in Prometheus' text format, for all scrapers.
    prometheus: Mutex<Option<CachedText>>,
    is_over: Mutex<bool>,
    ends: Condvar,
}

/// A text, and when it was made.
type CachedText = (Instant, Arc<str>);

/// Max connections; further ones are refused as busy.
const MAX_CONNECTIONS: usize = 32;
/// Max watchers among them, which last as long as the client likes: the rest is for requests that end.
const MAX_WATCHERS: usize = 16;
/// A request has to be there, and an answer or an event has to be taken, all of it, within this.
const LONGEST: Duration = Duration::from_secs(5);
/// Period of events to a watcher.
const EVENT_EVERY: Duration = Duration::from_secs(1);
/// A snapshot serves all requests within this time.
const FRESH: Duration = Duration::from_millis(200);

const PAGE: &str = include_str!("../page/index.html");
const SCRIPT: &str = include_str!("../page/page.js");
const STYLE: &str = include_str!("../page/page.css");

/// Answers at `address` what `look` gives.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use fairwave_daemon::metrics::serve;
/// use fairwave_host::machine::MachineSnapshot;
///
/// let server = serve("127.0.0.1:9464".parse().unwrap(), || Arc::new(MachineSnapshot::default()))?;
/// println!("http://{}", server.address());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn serve(
    address: SocketAddr,
    look: impl Fn() -> Arc<MachineSnapshot> + Send + Sync + 'static,
) -> io::Result<MetricsServer> {
    let listener = Arc::new(TcpListener::bind(address)?);
    let address = listener.local_addr()?;
    let shared = Arc::new(Shared::new(Box::new(look), address.ip().is_loopback()));
    let (listening, all) = (Arc::clone(&listener), Arc::clone(&shared));
    let thread = thread::Builder::new().name("metrics".into()).spawn(move || admit(&listening, &all))?;
    Ok(MetricsServer { address, listener, shared, thread: Some(thread) })
}

impl MetricsServer {
    /// Its listening address.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.shared.end();
        // Wakes the thread that accepts connections. It fails if that has ended.
        let _ = shutdown(&self.listener, Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            // It ends by itself, even on an error.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn new(look: Box<Look>, is_loopback: bool) -> Self {
        Self {
            look,
            is_loopback,
            open: AtomicUsize::new(0),
            watching: AtomicUsize::new(0),
            json: Mutex::new(None),
            prometheus: Mutex::new(None),
            is_over: Mutex::new(false),
            ends: Condvar::new(),
        }
    }

    fn end(&self) {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ends.notify_all();
    }

    /// Waits this long. Returns false once the server ends.
    fn waits(&self, span: Duration) -> bool {
        let is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.ends.wait_timeout_while(is_over, span, |is_over| !*is_over);
        !*waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// The current state as JSON.
    fn json(&self) -> Arc<str> {
        self.cached(&self.json, |machine| {
            let (machine, left_out) = shown(machine);
            // Plain values always are JSON.
            serde_json::to_string(&PageEvent { machine: &machine, left_out }).unwrap_or_default()
        })
    }

    /// The current state in Prometheus' text format.
    fn prometheus(&self) -> Arc<str> {
        self.cached(&self.prometheus, prometheus_text)
    }

    /// A request that arrives while a text is made waits for it and uses it, however long it takes: concurrent requests
    /// cost one snapshot.
    fn cached(&self, last: &Mutex<Option<CachedText>>, make: impl Fn(&MachineSnapshot) -> String) -> Arc<str> {
        let asked = Instant::now();
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, text)) = last.as_ref()
            && (*at >= asked || at.elapsed() < FRESH)
        {
            return Arc::clone(text);
        }
        let text: Arc<str> = make(&(self.look)()).into();
        *last = Some((Instant::now(), Arc::clone(&text)));
        text
    }
}

/// An event of the live page.
#[derive(Serialize)]
struct PageEvent<'a> {
    #[serde(flatten)]
    machine: &'a MachineSnapshot,
    left_out: usize,
}

/// A connection that counts as open.
struct OpenConnection<'a>(&'a Shared);

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A connection that counts as one that watches.
struct Watcher<'a>(&'a Shared);

impl<'a> Watcher<'a> {
    /// Nothing if there are enough.
    fn new(shared: &'a Shared) -> Option<Self> {
        let watcher = Self(shared);
        let before = shared.watching.fetch_add(1, Ordering::AcqRel);
        (before < MAX_WATCHERS).then_some(watcher)
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        self.0.watching.fetch_sub(1, Ordering::AcqRel);
    }
}

fn admit(listener: &TcpListener, shared: &Arc<Shared>) {
    loop {
        let stream = listener.accept().map(|(stream, _)| stream);
        if !shared.waits(Duration::ZERO) {
            return;
        }
        let Ok(stream) = stream else {
            // No descriptors are left, or the like: others may close some.
            if shared.waits(Duration::from_millis(100)) {
                continue;
            }
            return;
        };
        let is_full = shared.open.fetch_add(1, Ordering::AcqRel) >= MAX_CONNECTIONS;
        let of_thread = Arc::clone(shared);
        let serves = move || {
            let connection = OpenConnection(&of_thread);
            // A client that has left gets no answer.
            let _ = if is_full { refuse(&stream, Refused::Busy) } else { answer(&stream, connection.0) };
        };
        if is_full {
            // A short answer into an empty buffer: it does not wait.
            serves();
        } else if thread::Builder::new().name("metrics answer".into()).stack_size(STACK_BYTES).spawn(serves).is_err() {
            // The closure releases the slot only if it ran.
            shared.open.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// A thread that answers has little on its stack.
const STACK_BYTES: usize = 256 * 1024;

fn answer(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    let head = match request(stream, shared.is_loopback)? {
        Ok(head) => head,
        Err(refused) => return refuse(stream, refused),
    };
    let made;
    let (kind, body): (_, &str) = match head.path.as_str() {
        "/" => ("text/html; charset=utf-8", PAGE),
        "/page.js" => ("text/javascript; charset=utf-8", SCRIPT),
        "/page.css" => ("text/css; charset=utf-8", STYLE),
        "/metrics" => {
            made = shared.prometheus();
            ("text/plain; version=0.0.4; charset=utf-8", &made)
        }
        "/status.json" => {
            made = shared.json();
            ("application/json", &made)
        }
        "/events" if !head.is_head => {
            let watcher = Watcher::new(shared);
            return if watcher.is_some() { tell(stream, shared) } else { refuse(stream, Refused::Busy) };
        }
        _ => return send(stream, "404 Not Found", "text/plain; charset=utf-8", "not found\n", head.is_head),
    };
    send(stream, "200 OK", kind, body, head.is_head)
}

/// Reads a head of a request, all of it within [`LONGEST`].
fn request(mut stream: &TcpStream, is_loopback: bool) -> io::Result<Result<Head, Refused>> {
    let begin = Instant::now();
    let (mut bytes, mut room) = (Vec::new(), [0; 1024]);
    loop {
        let left = LONGEST.saturating_sub(begin.elapsed());
        if left.is_zero() {
            return Ok(Err(Refused::Late));
        }
        stream.set_read_timeout(Some(left))?;
        let read = match stream.read(&mut room) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => read,
            Err(error) if [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut].contains(&error.kind()) => continue,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        bytes.extend_from_slice(room.get(..read).unwrap_or_default());
        if head::is_whole(&bytes) {
            return Ok(Head::read(&bytes, is_loopback));
        }
        if bytes.len() > head::MOST_BYTES {
            return Ok(Err(Refused::Large));
        }
    }
}

fn refuse(stream: &TcpStream, refused: Refused) -> io::Result<()> {
    let status = refused.status();
    send(stream, status, "text/plain; charset=utf-8", &format!("{status}\n"), false)
}

/// Headers of every answer: it is not cached, only for this page, and loads nothing from elsewhere.
const HEADERS: &str = "Cache-Control: no-store\r\nConnection: close\r\nX-Content-Type-Options: nosniff\r\n\
                       Referrer-Policy: no-referrer\r\nContent-Security-Policy: default-src 'none'; script-src 'self'; \
                       style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'\r\n";

fn send(stream: &TcpStream, status: &str, kind: &str, body: &str, is_head: bool) -> io::Result<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{HEADERS}\r\n");
    let until = Instant::now() + LONGEST;
    write_until(stream, head.as_bytes(), until)?;
    if !is_head {
        write_until(stream, body.as_bytes(), until)?;
    }
    // Unread bytes of the request would reset the connection before the answer.
    stream.shutdown(std::net::Shutdown::Write)
}

/// Writes everything, or fails at the deadline: a slow reader does not hold its slot.
fn write_until(mut stream: &TcpStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut].contains(&error.kind()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Sends events to a watcher periodically, until it leaves or the server stops.
fn tell(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{HEADERS}\r\nretry: 1000\n\n");
    write_until(stream, head.as_bytes(), Instant::now() + LONGEST)?;
    loop {
        let text = shared.json();
        write_until(stream, format!("data: {text}\n\n").as_bytes(), Instant::now() + LONGEST)?;
        if !shared.waits(EVENT_EVERY) {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
