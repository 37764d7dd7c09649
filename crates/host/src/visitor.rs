//! Visitors that request a session here, and the application's answers.

use std::net::SocketAddr;

use fairwave_proto::Terms;
use fairwave_proto::codec::{Refusal, TicketId};

use crate::handler::Handler;
use crate::one_use::OneUse;

/// Someone who wants to open a session here, holds a ticket of it, and receives at its address.
#[derive(Clone, Copy, Debug)]
pub struct Visitor<'a> {
    /// Its address.
    pub from: SocketAddr,
    /// The ticket that it holds.
    pub ticket: TicketId,
    /// Its greeting.
    pub greeting: &'a [u8],
    /// Whether it will send.
    pub sends: bool,
    /// Whether it will receive.
    pub receives: bool,
    /// Sessions that are open here with the same ticket.
    pub sessions: usize,
    /// The ticket, if it is for one transfer.
    pub one_use: Option<OneUse<'a>>,
    /// If its ticket has expired or is used up, and it resumes an earlier session: the time when that started, in
    /// seconds since 1970. Later changes are not for it.
    pub goes_on_since_unix_s: Option<u64>,
}

/// Judges a hello: this end node's options for the session, or the reason of its refusal. It is called on the network
/// thread, as often as hellos arrive, also for repeated ones, and for some that lead to no session: it must use only
/// its argument and memory, and must not start anything.
pub type Judge = Box<dyn FnMut(&Visitor<'_>) -> Result<Terms, Refusal> + Send>;

/// Takes part in a session that is open: what this end node knows of it, and what the application makes of it; or why
/// it cannot, which closes the session with [`CloseReason::Refused`](crate::CloseReason::Refused). It is called once a
/// session, when the first packet under its keys has come: nobody gets so far who has only recorded what others sent.
pub type Accept = Box<dyn FnMut(&Visitor<'_>) -> Result<(Terms, Box<dyn Handler>), Refusal> + Send>;
