//! A transport over UDP: sessions that share the capacity of their hosts by GTP, encrypted, and opened with a ticket.
//!
//! An [`Endpoint`] is one UDP port with all its sessions; a [`Session`] is one of them, and a [`Handler`] is what an
//! application makes of it: which bytes its streams hold, and where those go that arrive. The protocol is
//! `fairwave-proto`'s, which has no sockets and no clock; this crate supplies them.
//!
//! A custom transport is a handler at each end. In this example one lends a text, and the other requests the first five
//! bytes:
//!
//! ```
//! use std::ops::Range;
//! use std::sync::{Arc, mpsc};
//!
//! use fairwave_host::{
//!     CloseReason, ConnectOptions, Endpoint, EndpointConfig, Handler, Identity, Keyring, Session, Terms, ShareId,
//!     Validity, VoidReason,
//! };
//!
//! struct Giver;
//!
//! impl Handler for Giver {
//!     fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
//!         session.serve(stream, range);
//!     }
//!
//!     fn lend(&mut self, _: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
//!         let text = b"hello, world";
//!         take(text.get(range.start as usize..range.end as usize).ok_or(VoidReason::Vanished)?);
//!         Ok(())
//!     }
//! }
//!
//! struct Taker(mpsc::Sender<Vec<u8>>);
//!
//! impl Handler for Taker {
//!     fn on_open(&mut self, session: &Session) {
//!         session.want(0, 0..5);
//!     }
//!
//!     fn on_data(&mut self, session: &Session, _stream: u32, _offset: u64, bytes: &[u8]) {
//!         let _ = self.0.send(bytes.to_vec());
//!         session.close(CloseReason::Done);
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = EndpointConfig { listen: Some("127.0.0.1:0".parse()?), ..EndpointConfig::default() };
//! let (server, client) = (Endpoint::bind(&config)?, Endpoint::bind(&config)?);
//! let keyring = Arc::new(Keyring::in_memory(Identity::random()?, ShareId(1)));
//! server.listen(Arc::clone(&keyring), Box::new(|_| Ok((Terms::default(), Box::new(Giver)))));
//! let ticket = keyring.issue(Validity { lasts_s: None, is_once: false }, vec![server.local_addr()])?;
//!
//! let (tell, heard) = mpsc::channel();
//! let options =
//!     ConnectOptions { sends: false, receives: true, greeting: Vec::new(), options: Terms::default() };
//! client.connect(&ticket, options, Box::new(Taker(tell)))?;
//! assert_eq!(heard.recv()?, b"hello");
//! # Ok(())
//! # }
//! ```
//!
//! [`Session::detached`] tests a handler without a network. The crate `fairwave-files` is such a transport. This crate
//! moves no files: it only has types for them in greetings, in keyrings and in status reports ([`Purpose`],
//! [`Offering`], [`TransferStatus`]).
//!
//! Next to endpoints and sessions, this crate has what their process needs:
//!
//! - [`MemorySource`] and [`StreamReader`]: streams in memory, and streams read in order, without writing a handler
//!   (`examples/memory.rs`);
//! - [`Server`]: the port and the ticket of the previous run, if they are still valid; [`StateDir`] keeps them;
//! - [`Capacity`]: the speed of this machine's network card, for [`EndpointConfig`];
//! - [`NodeChoice`]: whether the sessions of this process share the machine's end node, if a daemon runs;
//!   [`control_socket`] has the protocol of its control socket, and [`machine`] what it shows;
//! - [`StatusSample`] and [`StatusSocket`]: what sessions do and what limits them, for this process and others of its
//!   user;
//! - [`bench()`](bench()) measures between two endpoints, and [`examine`] reports what of this machine limits them.

#![cfg_attr(test, allow(non_snake_case))]

mod advertise;
mod bench;
mod capacity;
mod carrier;
mod commands;
mod config;
mod connect;
pub mod control_socket;
mod crypto;
mod doctor;
mod driver;
mod ending;
mod endpoint;
pub mod forks;
#[cfg(test)]
mod fuzz;
mod handler;
mod identity;
mod interface;
mod keyring;
mod lock;
mod log_limiter;
pub mod machine;
mod membership;
mod network_thread;
mod one_use;
mod orders;
mod own_places;
mod proof;
mod purpose;
mod secret;
mod server;
mod session;
mod share_id;
mod state;
mod status;
mod stream;
#[allow(unexpected_cfgs, reason = "`fairwave_portable` is a flag of the build")]
mod sys;
mod thread_waker;
mod ticket;
mod visitor;
mod waiting;

pub use advertise::{DEFAULT_PORT, advertised, listen_address, unadvertised};
pub use bench::{
    BenchDirection, BenchError, BenchFlow, BenchOptions, BenchProgress, BenchReport, bench, bench_accept, bench_judge,
};
pub use capacity::{Capacity, CapacityOrigin, MAX_MINIMA};
pub use carrier::{Carrier, Carriers};
pub use commands::SessionCommand;
pub use config::{BindError, EndpointConfig, EndpointFacts};
pub use connect::{ConnectError, ConnectOptions, MAX_GREETING_BYTES};
pub use doctor::{Check, Verdict, examine};
pub use ending::{AtEnd, at_end};
pub use endpoint::{Endpoint, TunnelWatch, WeakEndpoint};
pub use fairwave_proto::codec::{CloseReason, Refusal, SessionId, TicketId, VoidReason};
pub use fairwave_proto::handshake::HandshakeError;
pub use fairwave_proto::{
    Hold, IntervalRule, Lasts, PathControl, PathCounts, PathDeclaration, PathDeclarations, PathFacts, PathKind,
    RateTerm, SessionRates, Terms,
};
pub use fairwave_schemes::node::NodeError;
pub use handler::Handler;
pub use identity::Identity;
pub use keyring::{Issued, Keyring, Offering, Validity, id_text, now_unix_s, read_id};
pub use lock::{Held, Lock};
pub use membership::{NodeChoice, NodeFacts, NodeOrigin, limited_by_word};
pub use network_thread::assert_may_wait;
pub use one_use::OneUse;
pub use own_places::{OwnPlaces, own_places_below};
pub use proof::Proof;
pub use purpose::Purpose;
pub use secret::Secret;
pub use server::{Listen, ListenError, Server, ServerError, ServerOptions};
pub use session::{Session, SessionFacts, SessionStats};
pub use share_id::ShareId;
pub use state::{StateDir, StateError, StateLock};
pub use status::{
    Carried, Here, Leave, LimitedBy, PathStatus, ProcessStatus, SessionStatus, StatusSample, StatusSocket,
    TransferStatus, WaitsFor, ask_to_leave, runtime_dir, statuses,
};
pub use stream::{MemorySource, ReadError, StreamReader};
pub use sys::HANG_UP;
pub use thread_waker::ThreadWaker;
pub use ticket::{MAX_ADDRESSES, Ticket, TicketError};
pub use visitor::{Accept, Judge, Visitor};
