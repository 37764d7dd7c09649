//! One UDP port with all its sessions.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use fairwave_proto::Terms;

use crate::commands::Commands;
use crate::config::{BindError, EndpointConfig, EndpointFacts};
use crate::connect::{ConnectError, ConnectOptions, MAX_GREETING_BYTES};
use crate::driver::Driver;
use crate::handler::Handler;
use crate::keyring::Keyring;
use crate::lock::Lock;
use crate::membership::NodeFacts;
use crate::orders::{Call, EndpointOrder, EndpointShared};
use crate::session::Session;
use crate::thread_waker::ThreadWaker;
use crate::ticket::Ticket;
use crate::visitor::{Accept, Judge};

/// One UDP port, with its own thread. Cheap to clone; it ends with its last clone, or with [`Endpoint::close`].
#[derive(Clone)]
pub struct Endpoint {
    inner: Arc<EndpointInner>,
}

struct EndpointInner {
    orders: Sender<EndpointOrder>,
    bell: Arc<ThreadWaker>,
    shared: Arc<EndpointShared>,
    thread: Lock<Option<JoinHandle<()>>>,
}

impl Endpoint {
    /// Binds a port and starts its thread.
    pub fn bind(config: &EndpointConfig) -> Result<Self, BindError> {
        let bell = ThreadWaker::new().map_err(BindError::System)?;
        let (commands, received) = Commands::new(Arc::clone(&bell));
        let (orders, ordered) = crossbeam_channel::unbounded();
        let driver = Driver::new(config, Arc::clone(&bell), commands, received, ordered)?;
        let shared = driver.shared();
        let thread = std::thread::Builder::new()
            .name("fairwave-net".to_owned())
            .spawn(move || driver.run())
            .map_err(BindError::System)?;
        Ok(Self { inner: Arc::new(EndpointInner { orders, bell, shared, thread: Lock::new(Some(thread)) }) })
    }

    /// Opens a session, and waits until the other end has also opened it, or until it fails. The handler has it half a
    /// round trip earlier.
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

    /// Starts to open a session: the answer comes through the receiver. It may resume what an earlier session, which
    /// this end opened with the same ticket, was admitted for: then an expired ticket is still accepted.
    pub fn begin(
        &self,
        to: &Ticket,
        options: ConnectOptions,
        handler: Box<dyn Handler>,
        former: Option<&Session>,
    ) -> Result<Receiver<Result<Session, ConnectError>>, ConnectError> {
        if options.greeting.len() > MAX_GREETING_BYTES {
            return Err(ConnectError::Greeting(options.greeting.len()));
        }
        let (reply, answer) = bounded(1);
        let proof = former.map(Session::proof);
        self.order(EndpointOrder::Connect(Box::new(Call { to: to.clone(), options, handler, proof, reply })));
        Ok(answer)
    }

    /// Takes over two descriptors, one to read and one to write, that lead to a process at another host, such as the
    /// output and input of an ssh: sessions with the endpoint that listens there may use them, both ways. `peer` is
    /// that host's address, as sessions report it.
    pub fn add_tunnel(&self, reader: OwnedFd, writer: OwnedFd, peer: SocketAddr) -> TunnelWatch {
        let is_gone = Arc::new(AtomicBool::new(false));
        self.order(EndpointOrder::Tunnel { ends: (reader, writer), peer, is_gone: Arc::clone(&is_gone) });
        TunnelWatch { is_gone }
    }

    /// Answers visitors that open a session with a ticket of this keyring, by `accept`. The keyring itself refuses
    /// tickets that are expired or used up; the sessions of a revoked ticket end within a second or two.
    pub fn listen(&self, tickets: Arc<Keyring>, accept: Accept) {
        self.listen_with(tickets, Box::new(|_| Ok(Terms::default())), accept);
    }

    /// Listens like [`Endpoint::listen`], with a `judge` that decides at the hello on known refusals and on the
    /// session's initial options: that costs less than opening and closing a session.
    pub fn listen_with(&self, tickets: Arc<Keyring>, judge: Judge, accept: Accept) {
        if let Err(error) = tickets.watch() {
            tracing::warn!(%error, "no thread to follow what other processes do to the tickets");
        }
        self.order(EndpointOrder::Listen { tickets, judge, accept });
    }

    /// The local address.
    pub fn local_addr(&self) -> SocketAddr {
        self.inner.shared.facts.local
    }

    /// Facts that it has determined about its system.
    pub fn facts(&self) -> &EndpointFacts {
        &self.inner.shared.facts
    }

    /// Its sessions that are open.
    pub fn sessions(&self) -> Vec<Session> {
        self.inner.shared.sessions.load().as_ref().clone()
    }

    /// Datagrams that came and got lost since the socket had no room for them: larger buffers help, or a faster
    /// machine.
    pub fn overflows(&self) -> u64 {
        self.inner.shared.overflows.load(Ordering::Relaxed)
    }

    /// Whose end node its sessions share at present, and what is known of its capacities.
    pub fn node(&self) -> Arc<NodeFacts> {
        self.inner.shared.node.load_full()
    }

    /// Ends all sessions, notifies their peers, and waits for its thread to end.
    pub fn close(&self) {
        self.order(EndpointOrder::Stop);
        let thread = self.inner.thread.lock().take();
        if let Some(thread) = thread {
            // A panic of the thread has been printed; there is nothing left to close.
            let _ = thread.join();
        }
    }

    /// A weak reference, which does not keep it from ending.
    pub fn downgrade(&self) -> WeakEndpoint {
        WeakEndpoint { inner: Arc::downgrade(&self.inner) }
    }

    fn order(&self, order: EndpointOrder) {
        if self.inner.orders.send(order).is_ok() {
            self.inner.bell.ring();
        }
    }
}

/// Tells whether a tunnel that was handed over still leads anywhere.
#[derive(Clone, Debug)]
pub struct TunnelWatch {
    is_gone: Arc<AtomicBool>,
}

impl TunnelWatch {
    /// Whether it is over: its other end was closed, or it never led anywhere.
    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::SeqCst)
    }
}

/// An endpoint that ends when nobody else has it any more.
pub struct WeakEndpoint {
    inner: Weak<EndpointInner>,
}

impl WeakEndpoint {
    /// It, unless it has ended.
    pub fn upgrade(&self) -> Option<Endpoint> {
        self.inner.upgrade().map(|inner| Endpoint { inner })
    }
}

impl Drop for EndpointInner {
    fn drop(&mut self) {
        if self.orders.send(EndpointOrder::Stop).is_ok() {
            self.bell.ring();
        }
    }
}
