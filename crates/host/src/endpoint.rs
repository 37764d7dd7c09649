//! One UDP port with all its sessions.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use fairwave_proto::codec::{Refusal, TicketId};
use fairwave_proto::handshake::HandshakeError;
use fairwave_proto::{IntervalRule, Lasts, PathKind, SessionOptions};
use fairwave_schemes::node::NodeError;
use fairwave_units::{Bytes, Duration, Rate};
use thiserror::Error;

use crate::driver::{Bell, Call, Commands, Driver, Order, Shared};
use crate::handler::Handler;
use crate::keyring::Keyring;
use crate::lock::Lock;
use crate::one_use::OneUse;
use crate::session::Session;
use crate::ticket::Ticket;

/// The most bytes that an application can say with a hello.
pub const MOST_GREETING_BYTES: usize = 512;

/// The rule of an end node that was told none.
const DEFAULT_RULE: &str = "gtp";

/// How an endpoint is set up.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The address to listen at: any port of all addresses if it is not said.
    pub listen: Option<SocketAddr>,
    /// What its sessions may send together, as IP packets. Where nothing is known of it, a session's path alone sets the pace,
    /// and fair shares are not promised.
    pub send_capacity: Option<Rate>,
    /// What its sessions may receive together.
    pub receive_capacity: Option<Rate>,
    /// What it takes its paths for. A session's is dedicated if both ends say so and know their capacities.
    pub path: PathKind,
    /// Whether data go without secrecy. Both ends must ask for it.
    pub is_plain: bool,
    /// The rule of its end node, by its name in the list of schemes: "gtp", or another that runs on hosts. Each end runs its own.
    pub rule: String,
    /// How long the control interval of its end node is.
    pub interval: IntervalRule,
    /// Whether a queue that grew is drained again, by a rule that can.
    pub drain: bool,
    /// Bytes that a session may have asked for and not received, at the most.
    pub room: Bytes,
    /// The largest datagram that it sends and takes, in bytes.
    pub largest_datagram: u32,
    /// When its sessions are over: after a silence of 30 s, and a day after their handshake. Transfers of files go on in new
    /// ones.
    pub lasts: Lasts,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            listen: None,
            send_capacity: None,
            receive_capacity: None,
            path: PathKind::Shared,
            is_plain: false,
            rule: DEFAULT_RULE.to_owned(),
            interval: IntervalRule::Fixed(Duration::from_millis(20)),
            drain: true,
            room: Bytes::new(1 << 30),
            largest_datagram: 8972,
            lasts: Lasts::default(),
        }
    }
}

/// What a session is opened with.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Whether this end sends data.
    pub sends: bool,
    /// Whether it receives data.
    pub receives: bool,
    /// What the peer's application should know, 512 bytes at the most.
    pub greeting: Vec<u8>,
    /// What this end node knows of it.
    pub options: SessionOptions,
}

/// Someone who wants to open a session here, holds a ticket of it, and receives at its address.
#[derive(Clone, Copy, Debug)]
pub struct Visitor<'a> {
    /// Where it is.
    pub from: SocketAddr,
    /// The ticket that it holds.
    pub ticket: TicketId,
    /// What it says.
    pub greeting: &'a [u8],
    /// Whether it will send.
    pub sends: bool,
    /// Whether it will receive.
    pub receives: bool,
    /// Sessions that are open here with the same ticket.
    pub sessions: usize,
    /// The ticket, if it is for one transfer.
    pub one_use: Option<OneUse<'a>>,
}

/// Judges a hello: what this end node knows of the session, or why there is to be none. It is called on the network thread, as often
/// as hellos come, also for the same one again, and for some that lead to nothing: it must look at what it is given and at what is
/// in memory alone, and begin nothing.
pub type Judge = Box<dyn FnMut(&Visitor<'_>) -> Result<SessionOptions, Refusal> + Send>;

/// Takes part in a session that is open: what this end node knows of it, and what the application makes of it; or why it cannot, which
/// closes the session with [`CloseReason::Refused`](crate::CloseReason::Refused). It is called once a session, when the first packet
/// under its keys has come: nobody gets so far who has only recorded what others sent.
pub type Accept = Box<dyn FnMut(&Visitor<'_>) -> Result<(SessionOptions, Box<dyn Handler>), Refusal> + Send>;

/// Why an endpoint cannot be.
#[derive(Debug, Error)]
pub enum BindError {
    /// The port cannot be had.
    #[error("cannot listen at {address}: {source}")]
    Socket {
        /// The address that was asked for.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// Its end node cannot run the rule. [`NodeError::hint`] names those that it can.
    #[error(transparent)]
    Rule(#[from] NodeError),
    /// The system has no thread, no descriptor or no random numbers for it.
    #[error("cannot start: {0}")]
    System(io::Error),
}

/// Why there is no session.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// The ticket names no address that this host can reach.
    #[error("the ticket names no address that can be reached from here")]
    NoAddress,
    /// The peer did not answer, or said no.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// The attempt cannot even begin.
    #[error("{0}")]
    Wish(String),
    /// The greeting is too long.
    #[error("a greeting of {0} bytes is too long: {MOST_GREETING_BYTES} is the most")]
    Greeting(usize),
    /// The endpoint is closed.
    #[error("the endpoint is closed")]
    Closed,
}

/// One UDP port, with a thread of its own. Cheap to clone; it ends with its last clone, or with [`Endpoint::close`].
#[derive(Clone)]
pub struct Endpoint {
    inner: Arc<Inner>,
}

struct Inner {
    orders: Sender<Order>,
    bell: Arc<Bell>,
    shared: Arc<Shared>,
    thread: Lock<Option<JoinHandle<()>>>,
}

/// What an endpoint has found out about its system.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointFacts {
    /// Where it listens.
    pub local: SocketAddr,
    /// Datagrams that one call sends: 1 without segmentation (GSO).
    pub segments: usize,
    /// Whether one call receives several datagrams in one buffer (GRO).
    pub receives_in_batches: bool,
    /// Bytes that wait in the socket at the most before datagrams get lost.
    pub receive_buffer_bytes: usize,
    /// Bytes that wait to be sent.
    pub send_buffer_bytes: usize,
}

impl Endpoint {
    /// Binds a port and starts its thread.
    pub fn bind(config: &EndpointConfig) -> Result<Self, BindError> {
        let bell = Bell::new().map_err(BindError::System)?;
        let (commands, told) = Commands::new(Arc::clone(&bell));
        let (orders, ordered) = crossbeam_channel::unbounded();
        let driver = Driver::new(config, Arc::clone(&bell), commands, told, ordered)?;
        let shared = driver.shared();
        let thread = std::thread::Builder::new()
            .name("fairwave-net".to_owned())
            .spawn(move || driver.run())
            .map_err(BindError::System)?;
        Ok(Self { inner: Arc::new(Inner { orders, bell, shared, thread: Lock::new(Some(thread)) }) })
    }

    /// Opens a session, and waits until the other end has it open, too, or there can be none. The handler has it half a round
    /// trip before that.
    pub fn connect(
        &self,
        to: &Ticket,
        options: ConnectOptions,
        handler: Box<dyn Handler>,
    ) -> Result<Session, ConnectError> {
        self.begin(to, options, handler, None)?.recv().unwrap_or(Err(ConnectError::Closed))
    }

    /// Opens a session: the future is ready when it is open or cannot be.
    pub async fn connect_async(
        &self,
        to: &Ticket,
        options: ConnectOptions,
        handler: Box<dyn Handler>,
    ) -> Result<Session, ConnectError> {
        let answer = self.begin(to, options, handler, None)?;
        crate::waiting::received(answer).await.unwrap_or(Err(ConnectError::Closed))
    }

    /// Begins to open a session: the answer comes through the receiver. It may go on with what a former one, which this end
    /// opened with the same ticket, was let in for: then it does not matter whether the ticket has expired meanwhile.
    pub fn begin(
        &self,
        to: &Ticket,
        options: ConnectOptions,
        handler: Box<dyn Handler>,
        former: Option<&Session>,
    ) -> Result<Receiver<Result<Session, ConnectError>>, ConnectError> {
        if options.greeting.len() > MOST_GREETING_BYTES {
            return Err(ConnectError::Greeting(options.greeting.len()));
        }
        let (reply, answer) = bounded(1);
        let proof = former.map(Session::proof);
        self.order(Order::Connect(Box::new(Call { to: to.clone(), options, handler, proof, reply })));
        Ok(answer)
    }

    /// Answers who wants to open a session with a ticket of this keyring, as `accept` says. The keyring says itself what has
    /// expired or is used up; the sessions of a ticket that is taken back end within a second or two.
    pub fn listen(&self, tickets: Arc<Keyring>, accept: Accept) {
        self.listen_with(tickets, Box::new(|_| Ok(SessionOptions::default())), accept);
    }

    /// The same, where `judge` says at the hello what is known to be refused, and what the session begins with: it costs less
    /// than a session that is opened and closed.
    pub fn listen_with(&self, tickets: Arc<Keyring>, judge: Judge, accept: Accept) {
        self.order(Order::Listen { tickets, judge, accept });
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.inner.shared.facts.local
    }

    /// What it has found out about its system.
    pub fn facts(&self) -> &EndpointFacts {
        &self.inner.shared.facts
    }

    /// Its sessions that are open.
    pub fn sessions(&self) -> Vec<Session> {
        self.inner.shared.sessions.load().as_ref().clone()
    }

    /// Datagrams that came and got lost since the socket had no room for them: larger buffers help, or a faster machine.
    pub fn overflows(&self) -> u64 {
        self.inner.shared.overflows.load(Ordering::Relaxed)
    }

    /// Ends all sessions, tells their peers, and waits for its thread to end.
    pub fn close(&self) {
        self.order(Order::Stop);
        let thread = self.inner.thread.lock().take();
        if let Some(thread) = thread {
            // A panic of the thread has been printed; there is nothing left to close.
            let _ = thread.join();
        }
    }

    /// The same, for whoever does not keep it from ending.
    pub fn downgrade(&self) -> WeakEndpoint {
        WeakEndpoint { inner: Arc::downgrade(&self.inner) }
    }

    fn order(&self, order: Order) {
        if self.inner.orders.send(order).is_ok() {
            self.inner.bell.ring();
        }
    }
}

/// An endpoint that ends when nobody else has it any more.
pub struct WeakEndpoint {
    inner: Weak<Inner>,
}

impl WeakEndpoint {
    /// It, unless it has ended.
    pub fn upgrade(&self) -> Option<Endpoint> {
        self.inner.upgrade().map(|inner| Endpoint { inner })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.orders.send(Order::Stop).is_ok() {
            self.bell.ring();
        }
    }
}
