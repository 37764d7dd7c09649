//! How an endpoint is set up, what it finds out about its system, and why it cannot be.

use std::io;
use std::net::SocketAddr;

use fairwave_proto::{IntervalRule, Lasts, PathControl, PathKind};
use fairwave_schemes::node::NodeError;
use fairwave_units::{Bytes, Duration, Rate};
use thiserror::Error;

use crate::carrier::Carriers;
use crate::seat::NodeChoice;

/// The rule of an end node that was told none.
const DEFAULT_RULE: &str = "gtp";

/// Where UDP is answered it is so within a round trip or two; each hello may get lost once or twice.
pub(crate) const TUNNELS_AFTER: Duration = Duration::from_secs(2);

/// How an endpoint is set up.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "switches that do not depend on each other")]
pub struct EndpointConfig {
    /// The address to listen at: any port of all addresses if it is not said.
    pub listen: Option<SocketAddr>,
    /// Whether others may come over TCP, too, at the port that it listens at. Where any port will do, it is one that both
    /// have; one that cannot be had keeps nobody from listening: [`EndpointFacts::tcp_error`] says why.
    pub listens_tcp: bool,
    /// What may carry the sessions that it opens.
    pub carriers: Carriers,
    /// When a session that it opens is tried over TCP, too, with UDP allowed and not answered until then. Where a cookie
    /// has come by UDP, TCP waits 2 s, whatever is said here.
    pub tunnels_after: Duration,
    /// What its sessions may send together, as IP packets. Where nothing is known of it, a session's path alone sets
    /// the pace, and fair shares are not promised.
    pub send_capacity: Option<Rate>,
    /// What its sessions may receive together.
    pub receive_capacity: Option<Rate>,
    /// Whether the two capacities above are those of the one network card that leads to the peer, and no word of
    /// anybody's. Then they bound nothing where a daemon divides, which knows all cards.
    pub is_card_capacity: bool,
    /// Which end node its sessions share: with a daemon's, the two capacities above bound this process's part of it.
    pub node: NodeChoice,
    /// What it takes its paths for. A session's is dedicated if both ends say so and know their capacities.
    pub path: PathKind,
    /// By what it goes on a path that others use.
    pub path_control: PathControl,
    /// Whether data go without secrecy. Both ends must ask for it.
    pub is_plain: bool,
    /// The rule of its end node, by its name in the list of schemes: "gtp", or another that runs on hosts. Each end
    /// runs its own.
    pub rule: String,
    /// How long the control interval of its end node is.
    pub interval: IntervalRule,
    /// Whether a queue that grew is drained again, by a rule that can.
    pub drain: bool,
    /// Whether a session begins at a fair share of both ends' capacities. Without, it begins at what its source has room
    /// for and is led to its share step by step, as the papers' sessions are.
    pub fair_start: bool,
    /// Bytes that a session may have asked for and not received, at the most.
    pub room: Bytes,
    /// The largest datagram that it sends and takes, in bytes.
    pub largest_datagram: u32,
    /// When its sessions are over, after a silence of 30 s, and a day after their handshake; and when an attempt to open
    /// one is, after 5 s without an answer. Transfers of files go on in new sessions.
    pub lasts: Lasts,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            listen: None,
            listens_tcp: false,
            carriers: Carriers::Any,
            tunnels_after: TUNNELS_AFTER,
            send_capacity: None,
            receive_capacity: None,
            is_card_capacity: false,
            node: NodeChoice::Own,
            path: PathKind::Shared,
            path_control: PathControl::Bbr,
            is_plain: false,
            rule: DEFAULT_RULE.to_owned(),
            interval: IntervalRule::Fixed(Duration::from_millis(20)),
            drain: true,
            fair_start: true,
            room: Bytes::new(1 << 30),
            largest_datagram: 8972,
            lasts: Lasts::default(),
        }
    }
}

/// What an endpoint has found out about its system.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointFacts {
    /// Where it listens.
    pub local: SocketAddr,
    /// Whether it does so over TCP, too.
    pub listens_tcp: bool,
    /// Why not, if it was asked to.
    pub tcp_error: Option<String>,
    /// Datagrams that one call sends: 1 without segmentation (GSO).
    pub segments: usize,
    /// Whether one call receives several datagrams in one buffer (GRO).
    pub receives_in_batches: bool,
    /// Bytes that wait in the socket at the most before datagrams get lost.
    pub receive_buffer_bytes: usize,
    /// Bytes that wait to be sent.
    pub send_buffer_bytes: usize,
}

/// Why an endpoint cannot be.
#[derive(Debug, Error)]
pub enum BindError {
    /// The port cannot be had.
    #[error("cannot listen on {address}: {source}")]
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
