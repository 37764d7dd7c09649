//! A session between two hosts, as the simulated network sees it.

use fairwave_proto::Terms;
use fairwave_proto::codec::SessionId;
use fairwave_scenario::Demand;
use fairwave_units::Duration;

/// A session: its two ends, and the progress of its data.
pub(crate) struct GtpSession {
    pub(crate) source: GtpEnd,
    pub(crate) sink: GtpEnd,
    pub(crate) demand: Demand,
    pub(crate) size_bytes: Option<u64>,
    /// Round-trip propagation delay.
    pub(crate) rtt: Duration,
    /// Whether its packets are sealed datagrams.
    pub(crate) is_wire: bool,
    pub(crate) is_stopped: bool,
    /// Bytes that the sink received for the first time.
    pub(crate) delivered_bytes: u64,
    /// Bytes on the wire that reached the sink, of data and of the source's messages: both are in the rates of GTP.
    pub(crate) arrived_bytes: u64,
    /// One above the highest byte that was sent.
    pub(crate) sent_below: u64,
    /// Attempts of its sink to open it.
    pub(crate) attempts: u32,
    /// Messages sent so far: by the source, by the sink.
    pub(crate) messages: [u64; 2],
}

/// One end of a session.
pub(crate) struct GtpEnd {
    /// Index of its host.
    pub(crate) host: u32,
    /// Its name there, while it is open.
    pub(crate) session: Option<SessionId>,
    pub(crate) options: Terms,
    /// Whether its host's capacity is known, so that a rule grants rates.
    pub(crate) is_ruled: bool,
}

impl GtpSession {
    pub(crate) fn end(&mut self, is_source: bool) -> &mut GtpEnd {
        if is_source { &mut self.source } else { &mut self.sink }
    }

    /// Whether a piece is a retransmission; bytes that were never sent are recorded as sent.
    pub(crate) fn is_again(&mut self, offset: u64, length: u32) -> bool {
        let end = offset + u64::from(length);
        let is_again = end <= self.sent_below;
        self.sent_below = self.sent_below.max(end);
        is_again
    }
}
