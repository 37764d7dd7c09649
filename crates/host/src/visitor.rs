//! Who wants to open a session here, and what an application says to that.

use std::net::SocketAddr;

use fairwave_proto::SessionOptions;
use fairwave_proto::codec::{Refusal, TicketId};

use crate::handler::Handler;
use crate::one_use::OneUse;

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
    /// If its ticket has expired or is used up, and it goes on with what began before: when that began, in seconds since
    /// 1970. What has changed since is not for it.
    pub goes_on_since_unix_s: Option<u64>,
}

/// Judges a hello: what this end node knows of the session, or why there is to be none. It is called on the network
/// thread, as often as hellos come, also for the same one again, and for some that lead to nothing: it must look at
/// what it is given and at what is in memory alone, and begin nothing.
pub type Judge = Box<dyn FnMut(&Visitor<'_>) -> Result<SessionOptions, Refusal> + Send>;

/// Takes part in a session that is open: what this end node knows of it, and what the application makes of it; or why
/// it cannot, which closes the session with [`CloseReason::Refused`](crate::CloseReason::Refused). It is called once a
/// session, when the first packet under its keys has come: nobody gets so far who has only recorded what others sent.
pub type Accept = Box<dyn FnMut(&Visitor<'_>) -> Result<(SessionOptions, Box<dyn Handler>), Refusal> + Send>;
