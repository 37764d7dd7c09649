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
mod files;
#[cfg(test)]
mod fuzz;
mod handler;
mod identity;
mod interface;
mod keyring;
mod lock;
mod own_places;
mod secret;
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
pub use doctor::{Check, Verdict, examine, unfinished};
pub use ending::{AtEnd, at_end};
pub use endpoint::{
    Accept, BindError, ConnectError, ConnectOptions, Endpoint, EndpointConfig, EndpointFacts, Judge, Visitor,
};
pub use fairwave_proto::codec::{CloseReason, Refusal, SessionId, TicketId, VoidReason};
pub use fairwave_proto::handshake::HandshakeError;
pub use fairwave_proto::{IntervalRule, Lasts, Limit, PathKind, SessionOptions, SessionRates};
pub use files::{
    Durable, Ended, Failure, Failures, GetOptions, MOST_LISTED, MOST_LISTED_BYTES, Outcome, Pause, Progress,
    PutOptions, Share, ShareError, ShareOptions, TopNames, Transfer, TransferError, UnknownDurable, Visit, VisitKind,
    WaitsFor, escaped, get, put,
};
pub use handler::Handler;
pub use identity::Identity;
pub use keyring::{Issued, Keyring, Offering, Validity, id_text, now_unix_s, read_id};
pub use own_places::own_places_below;
pub use secret::Secret;
pub use session::{Session, SessionFacts, SessionStats};
pub use share_id::ShareId;
pub use state::{StateDir, StateError, StateLock};
pub use status::{
    Here, Leave, LimitedBy, ProcessStatus, Sample, SessionStatus, StatusSocket, TransferStatus, ask_to_leave,
    runtime_dir, statuses,
};
pub use stream::{MemorySource, ReadError, StreamReader};
pub use ticket::{MOST_ADDRESSES, Ticket, TicketError};
