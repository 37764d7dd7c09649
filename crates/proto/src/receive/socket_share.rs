//! State shared by the receivers of one host.

use fairwave_units::{Bytes, Duration};

use crate::receive::requests::MIN_WINDOW;

/// The number of sessions of a host with open requests, the bytes requested, and the system's buffer for unread input.
///
/// All of them are read by one thread from one socket. If no configured capacity bounds the host's rate, the requests
/// bound it: together at most what the socket holds, in equal parts. So a thread that cannot keep up gets its data late
/// instead of losing it, and every session has an equal share.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SocketShare {
    pub(crate) sessions: u32,
    /// Bytes requested and not received, of all sessions, less those in flight on their paths.
    pub(crate) asked_bytes: u64,
    /// None where everything is read as it comes.
    pub(crate) buffer: Option<Bytes>,
}

/// Reports and requests go no more often.
pub(crate) const MIN_PERIOD: Duration = Duration::from_millis(2);
/// A control packet costs some microseconds at each end: with this, those of many sessions take a tenth of a thread.
const PERIOD_A_SESSION: Duration = Duration::from_micros(40);
/// Half of the least patience of a source that knows its interval.
const MAX_LEAST_PERIOD: Duration = Duration::from_millis(20);

impl SocketShare {
    /// A session speaks no more often.
    pub(crate) fn least_period(self) -> Duration {
        if self.buffer.is_none() {
            return MIN_PERIOD;
        }
        let shared = Duration::from_nanos(PERIOD_A_SESSION.as_nanos().saturating_mul(u64::from(self.sessions)));
        MIN_PERIOD.max(shared.min(MAX_LEAST_PERIOD))
    }

    /// Min bytes that a session without a limit here keeps requested, if `asked` are.
    pub(crate) fn least_window(self, asked: Bytes) -> Bytes {
        let Some(buffer) = self.buffer else { return MIN_WINDOW };
        let all = Bytes::new(buffer.get() / 4 * 3).max(MIN_WINDOW).get();
        let share = all / u64::from(self.sessions.max(1));
        // Those who were here before a newcomer have asked for more than their share is now: he waits until that has
        // come.
        let left = asked.get() + all.saturating_sub(self.asked_bytes);
        Bytes::new(share.min(left)).max(MIN_SHARE)
    }
}

/// With more sessions than the buffer has parts of this size it may overflow: with less of them each would wait most of
/// the time.
const MIN_SHARE: Bytes = Bytes::new(32 << 10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_window__shares_the_buffer() {
        let crowd =
            |sessions, asked_bytes, buffer| SocketShare { sessions, asked_bytes, buffer: Some(Bytes::new(buffer)) };
        let window = |sessions, buffer| crowd(sessions, 0, buffer).least_window(Bytes::ZERO).get();
        assert_eq!([1, 4, 10_000].map(|sessions| window(sessions, 16 << 20)), [12 << 20, 3 << 20, 32 << 10]);
        // A small buffer holds no session up: what comes is read, as a rule, before the next.
        assert_eq!(window(1, 200_000), MIN_WINDOW.get());
        assert_eq!(SocketShare { sessions: 50, ..SocketShare::default() }.least_window(Bytes::ZERO), MIN_WINDOW);
    }

    #[test]
    fn least_window__waits_for_what_others_have_asked_for() {
        let window = |asked_bytes, asked| {
            let crowd = SocketShare { sessions: 2, asked_bytes, buffer: Some(Bytes::new(16 << 20)) };
            crowd.least_window(Bytes::new(asked)).get()
        };
        // The first one has asked for all of 12 MiB; as that comes, the second may have its half.
        assert_eq!(window(12 << 20, 0), 32 << 10);
        assert_eq!(window(10 << 20, 0), 2 << 20);
        assert_eq!(window(10 << 20, 1 << 20), 3 << 20);
        assert_eq!(window(6 << 20, 0), 6 << 20);
    }

    #[test]
    fn least_period__grows_with_the_sessions() {
        let period =
            |sessions| SocketShare { sessions, buffer: Some(MIN_WINDOW), ..SocketShare::default() }.least_period();
        assert_eq!([1, 50, 200, 5000].map(period), [2, 2, 8, 20].map(Duration::from_millis));
        assert_eq!(SocketShare { sessions: 5000, ..SocketShare::default() }.least_period(), Duration::from_millis(2));
    }
}
