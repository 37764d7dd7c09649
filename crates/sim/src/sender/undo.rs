//! Evidence that a cut of the window answered no loss, as Linux keeps it: time stamps (RFC 3522, Eifel) and reported
//! duplicates (RFC 3708, DSACK).

use fairwave_schemes::session::CongestionWindow;
use fairwave_units::Time;

/// The last cut for a loss or a time-out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// The window before it.
    pub(super) before: CongestionWindow,
    /// undo_marker: the first unacknowledged number at that time.
    begin: u64,
    /// retrans_stamp: time of the first retransmission since.
    first_resent: Option<Time>,
    /// undo_retrans: retransmissions since, less those reported as duplicates.
    resent: u64,
}

impl Undo {
    /// The window is cut now.
    pub(super) fn new(before: CongestionWindow, begin: u64) -> Self {
        Self { before, begin, first_resent: None, resent: 0 }
    }

    /// A packet is sent again.
    pub(super) fn on_resent(&mut self, now: Time) {
        self.first_resent.get_or_insert(now);
        self.resent += 1;
    }

    /// Whether an acknowledgement with this stamp answers a packet sent before the first retransmission (Linux,
    /// tcp_packet_delayed).
    pub(super) fn is_older(&self, stamp: Time) -> bool {
        self.first_resent.is_some_and(|first| stamp < first)
    }

    /// The receiver reports this number as a duplicate; returns whether all retransmissions were.
    pub(super) fn on_duplicate(&mut self, number: u64) -> bool {
        if number < self.begin || self.resent == 0 {
            return false;
        }
        self.resent -= 1;
        self.resent == 0
    }
}
