//! How a session is opened, and why it cannot be.

use fairwave_proto::Terms;
use fairwave_proto::handshake::HandshakeError;
use thiserror::Error;

/// The most bytes that an application can say with a hello.
pub const MAX_GREETING_BYTES: usize = 512;

/// Options of opening a session.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Whether this end sends data.
    pub sends: bool,
    /// Whether it receives data.
    pub receives: bool,
    /// Greeting for the peer's application, at most 512 bytes.
    pub greeting: Vec<u8>,
    /// This end node's options for it.
    pub options: Terms,
}

/// Reason why a session could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// The ticket names no address that this host can reach.
    #[error("no address of the ticket is reachable from here")]
    NoAddress,
    /// The peer did not answer, or said no.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// No connection that would carry the session's datagrams could be opened.
    #[error("no reply: {0}")]
    Tunnel(String),
    /// The attempt cannot even start.
    #[error("{0}")]
    Options(String),
    /// The greeting is too long.
    #[error("greeting of {0} bytes, the maximum is {MAX_GREETING_BYTES}")]
    Greeting(usize),
    /// The endpoint is closed.
    #[error("the endpoint is closed")]
    Closed,
}
