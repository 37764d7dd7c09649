//! GTP over real sockets: what people run.
//!
//! An [`Endpoint`] is one UDP port with all its sessions; a [`Session`] is one of them, and a [`Handler`] is what an
//! application makes of it: which bytes its streams hold, and where those go that arrive. The protocol is
//! `fairwave-proto`'s, which knows no socket and no clock; this crate has them.

#![cfg_attr(test, allow(non_snake_case))]

mod advertise;
mod bench;
mod capacity;
mod crypto;
mod doctor;
mod driver;
mod ending;
mod endpoint;
#[cfg(test)]
mod fuzz;
mod handler;
mod identity;
mod interface;
mod keyring;
mod lock;
mod one_use;
mod own_places;
mod purpose;
mod secret;
mod server;
mod session;
mod share_id;
mod sparing;
mod state;
mod status;
mod stream;
mod ticket;
mod waiting;

pub use advertise::{DEFAULT_PORT, advertised, listen_address};
pub use bench::{
    BenchDirection, BenchError, BenchFlow, BenchOptions, BenchProgress, BenchReport, bench, bench_accept, bench_judge,
};
pub use capacity::{Capacity, CapacityOrigin};
pub use doctor::{Check, Verdict, examine};
pub use driver::{Command, Proof};
pub use ending::{AtEnd, at_end};
pub use endpoint::{
    Accept, BindError, ConnectError, ConnectOptions, Endpoint, EndpointConfig, EndpointFacts, Judge,
    MOST_GREETING_BYTES, Visitor, WeakEndpoint,
};
pub use fairwave_proto::codec::{CloseReason, Refusal, SessionId, TicketId, VoidReason};
pub use fairwave_proto::handshake::HandshakeError;
pub use fairwave_proto::{IntervalRule, Lasts, Limit, PathKind, SessionOptions, SessionRates};
pub use fairwave_schemes::node::NodeError;
pub use handler::Handler;
pub use identity::Identity;
pub use keyring::{Issued, Keyring, Offering, Validity, id_text, now_unix_s, read_id};
pub use lock::{Held, Lock};
pub use one_use::OneUse;
pub use own_places::{OwnPlaces, own_places_below};
pub use purpose::Purpose;
pub use secret::Secret;
pub use server::{Listen, ListenError, Server, ServerError, ServerOptions};
pub use session::{Session, SessionFacts, SessionStats};
pub use share_id::ShareId;
pub use state::{StateDir, StateError, StateLock};
pub use status::{
    Carried, Here, Leave, LimitedBy, ProcessStatus, Sample, SessionStatus, StatusSocket, TransferStatus, WaitsFor,
    ask_to_leave, runtime_dir, statuses,
};
pub use stream::{MemorySource, ReadError, StreamReader};
pub use ticket::{MOST_ADDRESSES, Ticket, TicketError};
