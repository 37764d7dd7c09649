//! The end of a bridge next to the program.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fairwave_host::{ConnectError, ConnectOptions, Endpoint, HandshakeError, Lock, Refusal, Terms, Ticket};
use fairwave_pipe::{PipeOptions, Pump};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt;

use crate::connection::{Counted, Follower, Tell, prepare};
use crate::hello::BridgeHello;
use crate::plan::{PLAN_VARIABLE, Plan};
use crate::preamble::{PREAMBLE_BYTES, Preamble, Token, answer};
use crate::unknown::{Came, Unknown};

/// Connections at once.
const MAX_CONNECTIONS: usize = 4096;
/// Timeout for the preamble. The library sends it within the program's call of `connect`, whose thread may have to wait
/// to run.
const PREAMBLE_WITHIN: Duration = Duration::from_secs(10);
/// Ports of loopback that are tried until one is free for both families.
const TRIES: usize = 16;

/// The route of some addresses.
#[derive(Clone, Debug)]
pub struct Way {
    /// The addresses that a program asks for.
    pub to: Vec<SocketAddr>,
    /// The ticket that admits at the far end.
    pub ticket: Ticket,
}

/// Options of a near end.
#[derive(Clone, Copy, Debug, Default)]
pub struct NearOptions {
    /// This end node's options for each session.
    pub session: Terms,
    /// Memory limits of a connection.
    pub pipe: PipeOptions,
}

/// Listeners on loopback for programs that have its [plan](Near::plan), each to one address behind a far end.
pub struct Near {
    plan: Plan,
    inner: Arc<NearInner>,
}

struct NearInner {
    listeners: Vec<LocalListener>,
    token: Token,
    endpoint: Endpoint,
    pump: Pump,
    options: NearOptions,
    tell: Tell,
    count: Arc<AtomicUsize>,
    /// Those who have not said yet who they are, and do not count.
    unknown: Unknown,
    /// How many of them have a thread.
    arriving: Arc<AtomicUsize>,
    /// Held from where somebody waits at a listener until he is counted.
    letting_in: Lock<()>,
}

struct LocalListener {
    listener: TcpListener,
    to: SocketAddr,
    ticket: Ticket,
}

impl Near {
    /// Opens a listener for each address; sessions are the endpoint's. `tell` prints errors to the user, and must not
    /// block.
    pub fn open(
        endpoint: Endpoint,
        pump: Pump,
        ways: Vec<Way>,
        options: NearOptions,
        tell: impl Fn(&str) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let mut token = Token::default();
        getrandom::fill(&mut token)?;
        let has_v6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
        let (mut local, mut planned) = (Vec::new(), Vec::new());
        for Way { to, ticket } in ways {
            for to in to {
                let (port, listeners) = listen(has_v6)?;
                planned.push((to, port));
                local.extend(listeners.into_iter().map(|listener| LocalListener {
                    listener,
                    to,
                    ticket: ticket.clone(),
                }));
            }
        }
        let (count, arriving, letting_in) = (Arc::default(), Arc::default(), Lock::new(()));
        let unknown = Unknown::default();
        let tell = Arc::new(tell);
        let inner =
            NearInner { listeners: local, token, endpoint, pump, options, tell, count, unknown, arriving, letting_in };
        let near = Self { plan: Plan { token, has_v6, ways: planned }, inner: Arc::new(inner) };
        let inner = Arc::clone(&near.inner);
        std::thread::Builder::new().name("fairwave-accept".to_owned()).spawn(move || inner.accept_all())?;
        Ok(near)
    }

    /// The environment variable that describes this end to the program, and its value. It is a secret that admits to
    /// the bridge.
    pub fn plan(&self) -> (&'static str, String) {
        (PLAN_VARIABLE, self.plan.to_string())
    }

    /// Whether nobody has a connection, and nobody waits at a listener.
    pub fn is_idle(&self) -> bool {
        let _nobody_between = self.inner.letting_in.lock();
        let mut waiting: Vec<_> = self.inner.listeners.iter().map(LocalListener::poll).collect();
        let none_waits = matches!(poll(&mut waiting, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0));
        // A known connection is counted before it stops counting as arriving: so they are read in this order.
        none_waits && self.inner.arriving.load(Ordering::SeqCst) == 0 && self.inner.count.load(Ordering::SeqCst) == 0
    }
}

/// A port that is free on loopback for both families, or for IPv4 only. The backlog is the max number of connections,
/// as far as the system allows (`net.core.somaxconn`): a connection that finds no place is retried after a second, also
/// by a program that does not block.
fn listen(has_v6: bool) -> io::Result<(u16, Vec<TcpListener>)> {
    let mut last = io::ErrorKind::AddrInUse.into();
    for _ in 0..TRIES {
        let v4 = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        v4.set_nonblocking(true)?;
        rustix::net::listen(&v4, MAX_CONNECTIONS.cast_signed() as i32)?;
        let port = v4.local_addr()?.port();
        if !has_v6 {
            return Ok((port, vec![v4]));
        }
        match TcpListener::bind((Ipv6Addr::LOCALHOST, port)) {
            Ok(v6) => {
                v6.set_nonblocking(true)?;
                rustix::net::listen(&v6, MAX_CONNECTIONS.cast_signed() as i32)?;
                return Ok((port, vec![v4, v6]));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl LocalListener {
    fn poll(&self) -> PollFd<'_> {
        PollFd::from_borrowed_fd(self.listener.as_fd(), PollFlags::IN)
    }
}

impl NearInner {
    /// Lets programs in, for as long as the process lives.
    fn accept_all(self: &Arc<Self>) {
        let mut waiting: Vec<_> = self.listeners.iter().map(LocalListener::poll).collect();
        let mut is_said = false;
        loop {
            match poll(&mut waiting, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return (self.tell)(&format!("cannot accept connections: {error}")),
            }
            for (index, local) in self.listeners.iter().enumerate() {
                let accepted = {
                    let _letting_in = self.letting_in.lock();
                    local.listener.accept().map(|(stream, _)| (stream, Counted::new(&self.arriving, usize::MAX)))
                };
                match accepted {
                    Ok((stream, arriving)) => {
                        is_said = false;
                        self.let_in(stream, arriving, index);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => {
                        if !is_said {
                            (self.tell)(&format!("{}: {error}", local.to));
                        }
                        // Without descriptors the same error recurs at once, until a connection ends: a silent one does
                        // now.
                        is_said = true;
                        self.unknown.let_go();
                        std::thread::sleep(Duration::from_millis(100));
                    }
                }
            }
        }
    }

    /// A connection has a separate thread until its session is open.
    fn let_in(self: &Arc<Self>, stream: TcpStream, arriving: Option<Counted>, index: usize) {
        let inner = Arc::clone(self);
        let came = self.unknown.add(stream);
        let name = "fairwave-opens".to_owned();
        let begun = std::thread::Builder::new().name(name).spawn(move || {
            let local = &inner.listeners[index];
            let known = inner.know(came, local);
            drop(arriving);
            if let Some((stream, preamble, counted)) = known
                && let Err(error) = inner.open(stream, local, preamble, counted)
            {
                (inner.tell)(&format!("{}: {error}", local.to));
            }
        });
        if let Err(error) = begun {
            drop(self.unknown.take(came));
            (self.tell)(&format!("cannot start a thread for a connection: {error}"));
        }
    }

    /// Hears who came: one of the program's connections, or somebody else.
    fn know(&self, came: Came, local: &LocalListener) -> Option<(TcpStream, Preamble, Counted)> {
        let preamble = self.unknown.get(came).and_then(|stream| {
            prepare(&stream).ok()?;
            read_preamble(&stream, PREAMBLE_WITHIN)
        });
        let known = match preamble {
            Some(preamble) if is_same(&preamble.token, &self.token) && preamble.to == local.to => {
                let counted = Counted::new(&self.count, MAX_CONNECTIONS);
                if counted.is_none() {
                    (self.tell)("too many connections at once");
                }
                counted.map(|counted| (preamble, counted))
            }
            Some(_) => {
                tracing::warn!(to = %local.to, "refused a connection from an unknown process");
                None
            }
            None => {
                // Another program that looks at all ports, one that went away at once, or the oldest of too many.
                tracing::info!(to = %local.to, "refused a connection without a preamble");
                None
            }
        };
        let stream = self.unknown.take(came)?;
        known.map(|(preamble, counted)| (stream, preamble, counted))
    }

    fn open(
        &self,
        mut stream: TcpStream,
        local: &LocalListener,
        preamble: Preamble,
        counted: Counted,
    ) -> Result<(), ConnectError> {
        let wants_answer = preamble.wants_answer;
        let follower = Follower::new(local.to.to_string(), Arc::clone(&self.tell), counted);
        let (pipe, handler) = self.pump.pipe(self.options.pipe, Box::new(follower));
        let greeting = BridgeHello { wants_answer }.greeting();
        let request = ConnectOptions { sends: true, receives: true, greeting, options: self.options.session };
        match self.endpoint.connect(&local.ticket, request, handler) {
            Ok(_) => {
                pipe.attach(stream.into());
                Ok(())
            }
            Err(error) => {
                pipe.cut();
                if wants_answer {
                    // Without lingering, so that the answer is read.
                    let _ = sockopt::set_socket_linger(&stream, None);
                    let _ = stream.write_all(&answer(errno_of(&error).raw_os_error().cast_unsigned()));
                }
                Err(error)
            }
        }
    }
}

/// The library's preamble, if it arrives in time.
fn read_preamble(mut stream: &TcpStream, within: Duration) -> Option<Preamble> {
    let deadline = Instant::now() + within;
    let (mut bytes, mut used) = ([0; PREAMBLE_BYTES], 0);
    while used < bytes.len() {
        let left = deadline.saturating_duration_since(Instant::now());
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1)))).ok()?;
        match stream.read(bytes.get_mut(used..)?) {
            Ok(0) => return None,
            Ok(read) => used += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
        if Instant::now() > deadline {
            return None;
        }
    }
    stream.set_read_timeout(None).ok()?;
    Preamble::from_bytes(&bytes)
}

/// Compares all bytes, however many are the same.
fn is_same(one: &Token, other: &Token) -> bool {
    one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

/// The error of a program's `connect`.
fn errno_of(error: &ConnectError) -> Errno {
    match error {
        ConnectError::NoAddress => Errno::NETUNREACH,
        ConnectError::Handshake(HandshakeError::NoAnswer | HandshakeError::FellSilent) | ConnectError::Tunnel(_) => {
            Errno::TIMEDOUT
        }
        ConnectError::Handshake(HandshakeError::Refused(Refusal::NoRoom)) => Errno::CONNREFUSED,
        ConnectError::Handshake(HandshakeError::Refused(Refusal::Expired)) => Errno::KEYEXPIRED,
        ConnectError::Handshake(HandshakeError::Refused(_)) => Errno::ACCESS,
        ConnectError::Handshake(HandshakeError::Protocol) => Errno::PROTO,
        ConnectError::Options(_) | ConnectError::Greeting(_) => Errno::IO,
        ConnectError::Closed => Errno::NETDOWN,
    }
}

#[cfg(test)]
mod tests {
    use fairwave_host::{EndpointConfig, Identity, Keyring, ShareId, Validity};
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::*;
    use crate::unknown::MAX_UNKNOWN;

    /// One with a listener for an address to which its ticket knows no way, and what lets a program in there.
    fn near() -> (Near, SocketAddr, Preamble) {
        let endpoint = Endpoint::bind(&EndpointConfig::default()).unwrap();
        let ticket = Keyring::in_memory(Identity::random().unwrap(), ShareId(1));
        let ticket = ticket.issue(Validity::default(), Vec::new()).unwrap();
        let to = "10.9.9.9:8000".parse().unwrap();
        let ways = vec![Way { to: vec![to], ticket }];
        let near = Near::open(endpoint, Pump::start().unwrap(), ways, NearOptions::default(), |_| {}).unwrap();
        let address = near.inner.listeners[0].listener.local_addr().unwrap();
        let preamble = Preamble { token: near.inner.token, to, wants_answer: true };
        (near, address, preamble)
    }

    /// The answer to a program's preamble: that there is no such address.
    fn hears_no_way(mut program: &TcpStream) -> bool {
        let mut said = [0; 8];
        program.read_exact(&mut said).is_ok() && said == answer(Errno::NETUNREACH.raw_os_error().cast_unsigned())
    }

    #[test]
    fn near__connections_that_all_come_before_one_speaks_are_all_let_in() {
        let (_near, address, preamble) = near();
        let programs: Vec<_> = (0..300).map(|_| TcpStream::connect(address).unwrap()).collect();
        for mut program in &programs {
            program.write_all(&preamble.to_bytes()).unwrap();
        }
        let heard = programs.iter().filter(|program| hears_no_way(program)).count();
        assert_eq!(heard, programs.len());
    }

    #[test]
    fn near__who_says_nothing_at_a_door_takes_nobodys_place() {
        let (near, address, preamble) = near();
        // Each has a descriptor at both ends, all in this process.
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
        let strangers: Vec<_> = (0..MAX_UNKNOWN + 200).map(|_| TcpStream::connect(address).unwrap()).collect();
        // The first of them is let go of before its time, for one that came later.
        strangers[0].set_read_timeout(Some(fairwave_testing::LIMIT)).unwrap();
        assert!(matches!((&strangers[0]).read(&mut [0]), Ok(0) | Err(_)));
        assert_eq!(near.inner.count.load(Ordering::SeqCst), 0, "strangers count");
        // A connection with the token is served next to them.
        let mut program = TcpStream::connect(address).unwrap();
        program.write_all(&preamble.to_bytes()).unwrap();
        assert!(hears_no_way(&program));
    }

    #[test]
    fn read_preamble__hears_nobody_who_takes_too_long() {
        assert_eq!(PREAMBLE_WITHIN, Duration::from_secs(10));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let said = near().2.to_bytes();
        for sent in [0, 1, said.len() - 1] {
            let mut slow = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (stream, _) = listener.accept().unwrap();
            slow.write_all(&said[..sent]).unwrap();
            assert_eq!(read_preamble(&stream, Duration::from_millis(20)), None, "{sent} bytes");
        }
    }

    #[test]
    fn is_same__looks_at_all_bytes() {
        let token = Token::default();
        assert!(is_same(&token, &token.clone()));
        for at in 0..token.len() {
            let mut other = token;
            other[at] = 1;
            assert!(!is_same(&token, &other), "{at}");
        }
    }

    #[test]
    fn listen__has_one_port_for_both_families() {
        let has_v6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
        let (port, listeners) = listen(has_v6).unwrap();
        assert_eq!(listeners.len(), 1 + usize::from(has_v6));
        assert!(listeners.iter().all(|listener| listener.local_addr().unwrap().port() == port));
    }

    #[test]
    fn listen__has_a_place_for_each_of_many_that_come_at_once() {
        // Nothing is accepted at this point. The standard library requests a backlog of 128.
        let (_, listeners) = listen(TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok()).unwrap();
        for listener in &listeners {
            let address = listener.local_addr().unwrap();
            let waiting: Vec<_> =
                (0..300).map(|_| TcpStream::connect_timeout(&address, fairwave_testing::LIMIT).unwrap()).collect();
            assert_eq!(waiting.len(), 300);
        }
    }

    #[test]
    fn errno_of__tells_silence_from_a_refusal() {
        let refused = |refusal| errno_of(&ConnectError::Handshake(HandshakeError::Refused(refusal)));
        assert_eq!(errno_of(&ConnectError::Handshake(HandshakeError::NoAnswer)), Errno::TIMEDOUT);
        assert_eq!([refused(Refusal::Expired), refused(Refusal::Revoked)], [Errno::KEYEXPIRED, Errno::ACCESS]);
    }
}
