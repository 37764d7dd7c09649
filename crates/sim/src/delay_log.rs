//! Round-trip times of one session's packets.

use fairwave_scenario::DelayHistogram;
use fairwave_units::{Duration, Time};

/// Records the delays of a session's packets beyond propagation.
///
/// If packets are acknowledged one by one, an acknowledgement is a sample: it carries the send time of the packet that
/// it answers. For all others, GTP and the sessions that set their own rate, a data packet is a sample: its forward
/// delay, plus the return delay of the sink's last message.
#[derive(Debug)]
pub(crate) struct DelayLog {
    /// Samples within this window count.
    window: (Time, Time),
    /// Round-trip propagation delay.
    base: Duration,
    /// Return delay of the last message.
    back: Duration,
    pub(crate) queueing: DelayHistogram,
}

impl DelayLog {
    /// A log for paths with these propagation delays.
    pub(crate) fn new(window: (Time, Time), [there, back]: [Duration; 2]) -> Self {
        Self { window, base: there + back, back, queueing: DelayHistogram::with_room() }
    }

    /// Records an acknowledgement of a packet that was sent at `sent`.
    #[inline]
    pub(crate) fn on_ack(&mut self, now: Time, sent: Time) {
        self.count(now, now.since(sent));
    }

    /// Records the arrival of a data packet that was sent at `sent`, of a session that does not acknowledge each.
    #[inline]
    pub(crate) fn on_data(&mut self, now: Time, sent: Time) {
        self.count(now, now.since(sent) + self.back);
    }

    /// Records the arrival of a message of the sink.
    #[inline]
    pub(crate) fn on_message(&mut self, now: Time, sent: Time) {
        self.back = now.since(sent);
    }

    #[inline]
    fn count(&mut self, now: Time, rtt: Duration) {
        if self.window.0 <= now && now <= self.window.1 {
            self.queueing.add(Duration::from_nanos(rtt.as_nanos().saturating_sub(self.base.as_nanos())));
        }
    }

    /// Ends the window.
    pub(crate) fn close(&mut self, at: Time) {
        self.window.1 = self.window.1.min(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn on_data__takes_the_way_back_of_the_last_message() {
        let ways = [Duration::from_millis(10), Duration::from_millis(20)];
        let mut log = DelayLog::new((Time::ZERO, ms(1000)), ways);
        log.on_data(ms(112), ms(100)); // 12 + 20 - 30 = 2
        log.on_message(ms(150), ms(125)); // 25 back
        log.on_data(ms(211), ms(200)); // 11 + 25 - 30 = 6
        log.on_ack(ms(331), ms(300)); // 31 - 30 = 1
        assert_eq!(log.queueing.mean_s(), Some(0.003));
        log.close(ms(400));
        log.on_ack(ms(431), ms(400));
        assert_eq!(log.queueing.samples(), 3);
    }
}
