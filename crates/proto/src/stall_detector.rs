//! Whether a node's silence says anything about its sessions.

use fairwave_units::{Duration, Time};

/// A control interval in which no session of a node had a packet.
///
/// A session without packets while others have some is slow. Where nobody has any, it is the host that stalls, or the
/// path of all: nobody needs what a silent one has, and all go on as they were.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StallDetector {
    since: Option<Time>,
}

/// A silence that lasts longer is an end.
const LASTS: Duration = Duration::from_secs(5);

impl StallDetector {
    /// An interval is over, in which some session had a packet or none: whether it says nothing.
    pub(crate) fn tick(&mut self, now: Time, has_packets: bool) -> bool {
        if has_packets {
            self.since = None;
            return false;
        }
        now.since(*self.since.get_or_insert(now)) < LASTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tick__says_nothing_for_five_seconds_without_any_packet() {
        let mut quiet = StallDetector::default();
        assert!(!quiet.tick(Time::from_secs(1), true));
        let ticks = [2, 6, 7].map(|second| quiet.tick(Time::from_secs(second), false));
        assert_eq!(ticks, [true, true, false]);
        assert!(!quiet.tick(Time::from_secs(8), true));
        assert!(quiet.tick(Time::from_secs(9), false));
    }
}
