//! How often what others see of a session is renewed.

use fairwave_units::{Duration, Time};

/// Statistics of a session that has rested for [`REST_BEGINS`] are renewed at this period.
const REST_EVERY: Duration = Duration::from_millis(500);
/// A session rests when it has moved no data and had no command of its application for this time.
const REST_BEGINS: Duration = Duration::from_secs(1);

/// When the statistics of one session are renewed.
#[derive(Debug, Default)]
pub(crate) struct PublishPace {
    /// Data packets of both directions when it was last looked.
    packets: u64,
    /// When it was last seen to do something; none before it is looked at first.
    busy_at: Option<Time>,
    published_at: Time,
}

impl PublishPace {
    /// Its application has sent a command.
    pub(super) fn wake(&mut self) {
        self.busy_at = None;
    }

    /// Whether to renew them at `now`, given the total of data packets sent and received.
    pub(super) fn is_due(&mut self, now: Time, packets: u64) -> bool {
        if packets != self.packets {
            (self.packets, self.busy_at) = (packets, Some(now));
        }
        let rests = now.since(*self.busy_at.get_or_insert(now)) >= REST_BEGINS;
        let is_due = !rests || now.since(self.published_at) >= REST_EVERY;
        if is_due {
            self.published_at = now;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_due__each_time_while_a_session_does_something() {
        let mut pace = PublishPace::default();
        // 20 looks a second. It moves nothing until 10 s, then a packet, and has a command at 20 s.
        let mut renewed = [0; 30];
        for look in 0..600_u64 {
            let now = Time::from_nanos(look * 50_000_000);
            if look == 400 {
                pace.wake();
            }
            renewed[look as usize / 20] += u32::from(pace.is_due(now, u64::from(look >= 200)));
        }
        for (second, renewed) in renewed.into_iter().enumerate() {
            // Every time for a second, and then every 500 ms.
            let expected = if [0, 10, 20].contains(&second) { 20 } else { 2 };
            assert_eq!(renewed, expected, "in second {second}");
        }
    }
}
