//! Delayed acknowledgements (RFC 5681 s4.2).

use fairwave_schemes::header::CongestionHeader;
use fairwave_units::{Duration, Time};

/// A receiver that answers every second packet; a single one after [`MAX_DELAY`] without a second; and immediately any
/// packet that is out of order, fills a hole or is a duplicate.
#[derive(Clone, Debug, Default)]
pub(crate) struct DelayedAck {
    /// Send time of the packet that waits for an answer, to be echoed (RFC 7323 s4.3: the earliest of several packets,
    /// so that a round-trip time includes the delay).
    waiting: Option<Time>,
    deadline: Time,
    /// Congestion header of the answer, for all packets that it answers.
    header: Option<CongestionHeader>,
    /// Whether a timer event is pending; one that fires too early is rescheduled.
    is_armed: bool,
}

/// Maximum delay. RFC 5681 allows half a second; ns-2 uses this value.
pub(crate) const MAX_DELAY: Duration = Duration::from_millis(100);

impl DelayedAck {
    /// A data packet arrived, sent at `stamp`: returns the stamp to echo if an answer is sent now. `is_in_order` is
    /// false if it was not the next one, or if later packets have arrived already.
    pub(crate) fn on_data(&mut self, now: Time, stamp: Time, is_in_order: bool) -> Option<Time> {
        let first = self.waiting.take();
        if first.is_none() && is_in_order {
            self.waiting = Some(stamp);
            self.deadline = now.saturating_add(MAX_DELAY);
            return None;
        }
        Some(first.unwrap_or(stamp))
    }

    /// Merges a congestion header that the next answer returns.
    pub(crate) fn hold(&mut self, header: CongestionHeader) {
        match &mut self.header {
            Some(held) => held.absorb(header),
            None => self.header = Some(header),
        }
    }

    /// The congestion header of the answer that is sent now.
    pub(crate) fn take_header(&mut self) -> Option<CongestionHeader> {
        self.header.take()
    }

    /// Time for [`DelayedAck::on_timer`], unless an event is pending.
    pub(crate) fn arm(&mut self) -> Option<Time> {
        let is_needed = self.waiting.is_some() && !self.is_armed;
        self.is_armed |= is_needed;
        is_needed.then_some(self.deadline)
    }

    /// Handles the timer event: returns the stamp to echo if a packet has waited long enough.
    pub(crate) fn on_timer(&mut self, now: Time) -> Option<Time> {
        self.is_armed = false;
        if self.deadline <= now { self.waiting.take() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receiver::WindowReceiver;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn on_data__answers_every_second_packet_and_all_that_is_odd() {
        let (mut delayed, mut receiver) = (DelayedAck::default(), WindowReceiver::default());
        // Arrival in ms, number, stamp echoed in ms. A packet is sent 10 ms before it arrives.
        for (at, number, echo) in [
            (20, 0, None),
            (21, 1, Some(10)), // the second: the first's stamp
            (22, 2, None),
            (23, 4, Some(12)), // out of order: 2, which waits, is the earliest
            (24, 6, Some(14)), // out of order, none waiting
            (25, 3, Some(15)), // fills a hole in part
            (26, 5, Some(16)), // fills the last
            (27, 7, None),
            (28, 7, Some(17)), // duplicate
            (29, 8, None),
        ] {
            let is_in_order = receiver.expects(number);
            receiver.on_data(number);
            assert_eq!(delayed.on_data(ms(at), ms(at - 10), is_in_order), echo.map(ms), "packet {number}");
        }
    }

    #[test]
    fn on_timer__answers_100_ms_after_the_packet() {
        let mut delayed = DelayedAck::default();
        assert_eq!(delayed.on_data(ms(20), ms(10), true), None);
        assert_eq!((delayed.arm(), delayed.arm()), (Some(ms(120)), None));
        // A second packet is answered, a third waits: the timer that fires at 120 ms is moved.
        assert_eq!(delayed.on_data(ms(30), ms(20), true), Some(ms(10)));
        assert_eq!(delayed.on_data(ms(40), ms(30), true), None);
        assert_eq!((delayed.arm(), delayed.on_timer(ms(120))), (None, None));
        assert_eq!(delayed.arm(), Some(ms(140)));
        assert_eq!(delayed.on_timer(ms(140)), Some(ms(30)));
        assert_eq!((delayed.arm(), delayed.on_timer(ms(240))), (None, None));
    }
}
