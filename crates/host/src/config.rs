//! How an endpoint is set up, what it finds out about its system, and why it cannot be.

use std::io;
use std::net::SocketAddr;

use fairwave_proto::{IntervalRule, Lasts, PathControl, PathKind};
use fairwave_schemes::node::NodeError;
use fairwave_units::{Bytes, Duration, Rate};
use thiserror::Error;

use crate::carrier::Carriers;
use crate::membership::NodeChoice;

/// The default rule of an end node.
const DEFAULT_RULE: &str = "gtp";

/// UDP is answered within a round trip or two if at all; each hello may get lost once or twice.
pub(crate) const TUNNELS_AFTER: Duration = Duration::from_secs(2);

/// How an endpoint is set up.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "switches that do not depend on each other")]
pub struct EndpointConfig {
    /// The address to listen at: any port of all addresses if it is not said.
    pub listen: Option<SocketAddr>,
    /// Whether it also accepts peers over TCP, at the port that it listens at. If any port will do, one that is free
    /// for both is chosen. If the TCP port cannot be bound, UDP still listens: [`EndpointFacts::tcp_error`] has the
    /// reason.
    pub listens_tcp: bool,
    /// Allowed carriers of the sessions that it opens.
    pub carriers: Carriers,
    /// Delay before a session that it opens is also tried over TCP, if UDP is allowed and has not answered. If a cookie
    /// has come by UDP, TCP waits 2 s regardless of this value.
    pub tunnels_after: Duration,
    /// Total capacity for what its sessions send, as IP packets. If unknown, only a session's path sets the pace, and
    /// fair shares are not promised.
    pub send_capacity: Option<Rate>,
    /// Total capacity for what its sessions receive, as IP packets.
    pub receive_capacity: Option<Rate>,
    /// Whether the two capacities above are those of the one network card that leads to the peer, and no word of
    /// anybody's. Then they bound nothing where a daemon divides, which knows all cards.
    pub is_card_capacity: bool,
    /// Which end node its sessions share: with a daemon's, the two capacities above bound this process's part of it.
    pub node: NodeChoice,
    /// The kind of its paths. A session's is dedicated if both ends declare it so and know their capacities.
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
    /// Whether a session starts at a fair share of both ends' capacities. Otherwise it starts at the room of its source
    /// and is led to its share step by step, as the papers' sessions are.
    pub fair_start: bool,
    /// Max bytes that a session may have requested and not received.
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

/// Facts that an endpoint has determined about its system.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointFacts {
    /// The local address.
    pub local: SocketAddr,
    /// Whether it also listens over TCP.
    pub listens_tcp: bool,
    /// Why not, if it was asked to.
    pub tcp_error: Option<String>,
    /// Datagrams that one call sends: 1 without segmentation (GSO).
    pub segments: usize,
    /// Whether one call receives several datagrams in one buffer (GRO).
    pub receives_in_batches: bool,
    /// Max bytes that wait in the socket before datagrams get lost.
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
        /// The system's error.
        source: io::Error,
    },
    /// Its end node cannot run the rule. [`NodeError::hint`] names those that it can.
    #[error(transparent)]
    Rule(#[from] NodeError),
    /// The system has no thread, no descriptor or no random numbers for it.
    #[error("cannot start: {0}")]
    System(io::Error),
}
