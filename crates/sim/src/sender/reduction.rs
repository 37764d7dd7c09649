//! Proportional rate reduction (RFC 9937): during a recovery the packets in flight fall towards the cut window in
//! proportion to deliveries.

/// One recovery, in packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reduction {
    /// RecoverFS: packets in flight before the acknowledgement that started it.
    flight: u64,
    /// prr_delivered.
    delivered: u64,
    /// prr_out.
    sent: u64,
    /// cwnd until the next acknowledgement.
    window: u64,
}

impl Reduction {
    /// A recovery starts: `flight` packets had not arrived before the current acknowledgement, and `in_flight` are in
    /// the network after it.
    pub(super) fn new(flight: u64, in_flight: u64) -> Self {
        // Found by a timer, it sends a packet before the next acknowledgement.
        Self { flight: flight.max(1), delivered: 0, sent: 0, window: in_flight + 1 }
    }

    /// The window until the next acknowledgement.
    pub(super) fn window(&self) -> u64 {
        self.window
    }

    /// RFC 9937 s6.2: an acknowledgement of `delivered` packets, after which `in_flight` are in the network; `target`
    /// is the cut window. `is_safe`: it moved the first unacknowledged number and showed no further loss.
    pub(super) fn on_ack(&mut self, delivered: u64, in_flight: u64, target: u64, is_safe: bool) {
        if delivered == 0 {
            return;
        }
        self.delivered += delivered;
        let mut may_send = if in_flight > target {
            (self.delivered * target).div_ceil(self.flight).saturating_sub(self.sent)
        } else {
            // The conservative bound; the slow-start bound if the recovery makes progress.
            let bound = self.delivered.saturating_sub(self.sent).max(delivered) + u64::from(is_safe);
            bound.min(target - in_flight)
        };
        if self.sent == 0 {
            // The fast retransmit is sent in any case.
            may_send = may_send.max(1);
        }
        self.window = in_flight + may_send;
    }

    /// A packet is sent.
    pub(super) fn on_sent(&mut self) {
        self.sent += 1;
    }
}
