//! Whether a node's silence is evidence about its sessions.

use fairwave_units::{Duration, Time};

use crate::session::pause::AFTER_PAUSE;

/// A control interval in which no session of a node had a packet.
///
/// A session without packets while others have some is slow. If none has any, the host stalls, or the path of all: no
/// session needs the share of a silent one, and all go on as they were.
///
/// The use of a session soon after this host was kept from running is a lower bound: the host sent no requests and no
/// reports in that time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StallDetector {
    since: Option<Time>,
    /// The end of this host's last pause.
    paused: Option<Time>,
}

/// Conclusion from a node's last interval about a session's use of its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// Nothing: no session sent.
    None,
    /// The session uses at least the measured rate.
    AtLeast,
    /// The session uses exactly the measured rate.
    Exact,
}

/// A silence that lasts longer is an end.
const LASTS: Duration = Duration::from_secs(5);

impl StallDetector {
    /// An interval has ended, with or without packets of any session: returns what it shows.
    pub(crate) fn tick(&mut self, now: Time, has_packets: bool) -> Evidence {
        if has_packets {
            self.since = None;
            let is_soon = self.paused.is_some_and(|paused| now.since(paused) <= AFTER_PAUSE);
            return if is_soon { Evidence::AtLeast } else { Evidence::Exact };
        }
        if now.since(*self.since.get_or_insert(now)) < LASTS { Evidence::None } else { Evidence::Exact }
    }

    /// This host runs again, after a pause.
    pub(crate) fn on_pause(&mut self, now: Time) {
        self.paused = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tick__says_nothing_for_five_seconds_without_any_packet() {
        let mut quiet = StallDetector::default();
        assert_eq!(quiet.tick(Time::from_secs(1), true), Evidence::Exact);
        let ticks = [2, 6, 7].map(|second| quiet.tick(Time::from_secs(second), false));
        assert_eq!(ticks, [Evidence::None, Evidence::None, Evidence::Exact]);
        assert_eq!(quiet.tick(Time::from_secs(8), true), Evidence::Exact);
        assert_eq!(quiet.tick(Time::from_secs(9), false), Evidence::None);
    }

    #[test]
    fn tick__says_at_least_so_much_soon_after_a_pause() {
        let mut quiet = StallDetector::default();
        quiet.on_pause(Time::from_secs(1));
        let ticks = [1.02, 1.2, 1.22].map(|second| quiet.tick(Time::from_nanos((second * 1e9) as u64), true));
        assert_eq!(ticks, [Evidence::AtLeast, Evidence::AtLeast, Evidence::Exact]);
    }
}
