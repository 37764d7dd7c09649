//! How large a packet may be on its way.

use fairwave_units::{Duration, Time};

/// Finds the largest datagram that a path takes (DPLPMTUD, RFC 8899), by single probes: control packets with a
/// [`Probe`](crate::wire::codec::Frame::Probe) and padding. Data is never at stake, and a lost probe does not count as a loss
/// of the session.
///
/// Sizes are bytes of a datagram, without IP and UDP. The least, 1200, is assumed to go through, since the hello did.
/// The bound is tried first, then sizes that are common, then the middle between what went through and what did not,
/// until these are less than 16 bytes apart. Sizes that the system refuses lower the bound, and a bound that was
/// lowered this way is not tried first. A size has failed when three probes in a row were not echoed, each within max(3
/// round trips, 1 s). After ten minutes the search starts again.
///
/// A path MTU may shrink later, without an error. Three reports in a row with lost packets above 1200 bytes and without
/// arrived ones mean that: the size is 1200 again, and the search starts after 30 s; doubled each time that it happens
/// again, up to ten minutes.
#[derive(Clone, Debug)]
pub(crate) struct Mtu {
    /// Goes through.
    size: u32,
    /// Does not, or is above the bound.
    fails: u32,
    most: u32,
    /// Whether `most` is what the system refused, less one, and so no size that anything hints at.
    is_refused: bool,
    /// The probe under way.
    probe: Option<Underway>,
    /// When the search starts, or goes on with the next size.
    resume: Time,
    /// Reports in a row with large packets lost and none arrived.
    bad_reports: u32,
    /// Wait after the next black hole.
    patience: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Underway {
    size: u32,
    value: u64,
    times: u32,
    sent: Time,
}

/// A probe that is to be sent: a control packet whose datagram has this size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MtuProbe {
    /// Bytes of the datagram.
    pub size: u32,
    /// The value of its [`Probe`](crate::wire::codec::Frame::Probe).
    pub value: u64,
}

/// A datagram of 1200 bytes goes through on any path that carries a session.
pub(crate) const MIN_DATAGRAM: u32 = 1200;

/// Jumbo frames over IPv4; Ethernet over IPv4 and IPv6, and in a tunnel.
const COMMON: [u32; 4] = [8972, 1472, 1452, 1392];
/// The search ends once the bounds are closer than this, bytes.
const CLOSE: u32 = 16;
/// Probes of one size until it counts as too large (RFC 8899 s5.1.2: MAX_PROBES is 3).
const MAX_TIMES: u32 = 3;
/// Reports in a row without an arrived full packet that show a black hole (RFC 8899 s4.3).
const BAD_REPORTS: u32 = 3;
/// Min wait for the answer to a probe (RFC 8899 s5.1.1: not less than a second).
const MIN_WAIT: Duration = Duration::from_secs(1);
/// Time until a finished search starts again (RFC 8899 s5.1.1: PMTU_RAISE_TIMER is 600 s).
const SEARCH_AGAIN: Duration = Duration::from_secs(600);
/// Time until the first search after a black hole; it doubles with each, up to [`SEARCH_AGAIN`].
const AFTER_BLACK_HOLE: Duration = Duration::from_secs(30);

impl Mtu {
    /// A path about which nothing is known but that a hello went through; no datagram will have more bytes than `most`.
    pub(crate) fn new(now: Time, most: u32) -> Self {
        let most = most.max(MIN_DATAGRAM);
        Self {
            size: MIN_DATAGRAM,
            fails: most.saturating_add(1),
            most,
            is_refused: false,
            probe: None,
            resume: now,
            bad_reports: 0,
            patience: AFTER_BLACK_HOLE,
        }
    }

    /// Bytes of a datagram at most.
    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// Another path: what was known is void.
    pub(crate) fn restart(&mut self, now: Time) {
        *self = Self { is_refused: self.is_refused, ..Self::new(now, self.most) };
    }

    /// A probe that is to be sent now; `random` draws its value, if it is the first of its size.
    pub(crate) fn poll_probe(&mut self, now: Time, rtt: Duration, random: impl FnOnce() -> u64) -> Option<MtuProbe> {
        if now < self.next_at(rtt) {
            return None;
        }
        if let Some(probe) = self.probe.take_if(|probe| probe.times >= MAX_TIMES) {
            self.fails = self.fails.min(probe.size);
        }
        if let Some(probe) = &mut self.probe {
            probe.times += 1;
            probe.sent = now;
        } else if let Some(size) = self.next_size() {
            self.probe = Some(Underway { size, value: random(), times: 1, sent: now });
        } else {
            // All is known: what did not go through may do so later.
            self.fails = self.most.saturating_add(1);
            self.resume = now.saturating_add(SEARCH_AGAIN);
        }
        self.probe.map(|probe| MtuProbe { size: probe.size, value: probe.value })
    }

    /// When to come with [`Mtu::poll_probe`].
    pub(crate) fn next_at(&self, rtt: Duration) -> Time {
        let wait = Duration::from_nanos(rtt.as_nanos().saturating_mul(3)).max(MIN_WAIT);
        self.probe.map_or(self.resume, |probe| probe.sent.saturating_add(wait))
    }

    /// An echo came: whether it is of a probe, and packets may be larger from now on.
    pub(crate) fn on_echo(&mut self, now: Time, value: u64) -> bool {
        let Some(probe) = self.probe.take_if(|probe| probe.value == value) else { return false };
        self.size = self.size.max(probe.size);
        self.resume = now;
        true
    }

    /// A loss report came, by which `arrived` packets above 1200 bytes arrived, and `lost` were lost: returns whether
    /// the path takes no more than 1200 now.
    pub(crate) fn on_report(&mut self, now: Time, arrived: u64, lost: u64) -> bool {
        match (arrived, lost) {
            (0, 0) => {}
            (0, _) => self.bad_reports += 1,
            _ => self.bad_reports = 0,
        }
        if self.bad_reports < BAD_REPORTS {
            return false;
        }
        self.bad_reports = 0;
        if self.size == MIN_DATAGRAM {
            return false; // packets from before the last time
        }
        self.size = MIN_DATAGRAM;
        self.fails = self.most.saturating_add(1);
        self.probe = None;
        self.resume = now.saturating_add(self.patience);
        self.patience = Duration::from_nanos(self.patience.as_nanos().saturating_mul(2)).min(SEARCH_AGAIN);
        true
    }

    /// The system refuses datagrams of such a size (EMSGSIZE): no larger ones are tried, on this path or another.
    pub(crate) fn on_too_large(&mut self, now: Time, size: u32) {
        if size <= self.most {
            self.most = size.saturating_sub(1).max(MIN_DATAGRAM);
            self.is_refused = true;
        }
        self.fails = self.fails.min(self.most.saturating_add(1));
        self.size = self.size.min(self.most);
        if self.probe.take_if(|probe| probe.size >= size).is_some() {
            self.resume = now;
        }
    }

    /// The next size to try, if there is anything left to know.
    fn next_size(&self) -> Option<u32> {
        let bound = self.fails.saturating_sub(1);
        if bound <= self.size {
            return None;
        }
        if bound == self.most && !self.is_refused {
            return Some(bound);
        }
        let common = COMMON.into_iter().find(|size| (self.size.saturating_add(1)..self.fails).contains(size));
        let gap = self.fails - self.size;
        common.or_else(|| (gap > CLOSE).then(|| self.size + gap / 2))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RTT: Duration = Duration::from_millis(20);

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// Lets it search for `span_ms` on a path that takes `path` bytes: the sizes that were tried.
    fn search(mtu: &mut Mtu, from: u64, span_ms: u64, path: u32) -> Vec<u32> {
        let mut tried = Vec::new();
        let mut value = from;
        for now in from..from + span_ms {
            let probe = mtu.poll_probe(ms(now), RTT, || {
                value += 1;
                value
            });
            if let Some(probe) = probe {
                tried.push(probe.size);
                if probe.size <= path {
                    assert!(mtu.on_echo(ms(now), probe.value));
                    assert!(!mtu.on_echo(ms(now), probe.value));
                }
            }
        }
        tried
    }

    #[test]
    fn poll_probe__finds_common_paths_soon() {
        let mut mtu = Mtu::new(ms(0), 1472);
        assert_eq!((mtu.size(), search(&mut mtu, 0, 60_000, 1472), mtu.size()), (1200, vec![1472], 1472));
        let mut mtu = Mtu::new(ms(0), 8972);
        assert_eq!(search(&mut mtu, 0, 60_000, 9000), [8972]);
        // Ethernet: three probes of the bound, and 1472 next.
        let mut mtu = Mtu::new(ms(0), 8972);
        let tried = search(&mut mtu, 0, 3001, 1472);
        assert_eq!(tried[..4], [8972, 8972, 8972, 1472]);
        assert_eq!(mtu.size(), 1472);
    }

    #[test]
    fn poll_probe__searches_again_after_ten_minutes() {
        let mut mtu = Mtu::new(ms(0), 1472);
        search(&mut mtu, 0, 20_000, 1400);
        assert!((1392..=1400).contains(&mtu.size()), "{}", mtu.size());
        assert_eq!(search(&mut mtu, 20_000, 500_000, 1472), []);
        search(&mut mtu, 520_000, 120_000, 1472);
        assert_eq!(mtu.size(), 1472);
    }

    #[test]
    fn on_report__a_black_hole_is_three_reports_in_a_row() {
        let mut mtu = Mtu::new(ms(0), 1472);
        search(&mut mtu, 0, 10, 1472);
        assert_eq!(
            [(0, 3), (0, 1), (1, 5), (0, 1), (0, 0), (0, 1)].map(|(arrived, lost)| mtu.on_report(
                ms(10),
                arrived,
                lost
            )),
            [false; 6]
        );
        assert!(mtu.on_report(ms(10), 0, 1));
        assert_eq!(mtu.size(), 1200);
        // Packets in flight are lost as well, and are not new evidence.
        assert_eq!([0; 9].map(|_| mtu.on_report(ms(20), 0, 10)), [false; 9]);
        assert_eq!(search(&mut mtu, 20, 29_980, 1472), []);
        assert_eq!(search(&mut mtu, 30_000, 20, 1472), [1472]);
        // The next time it waits for twice as long.
        assert_eq!([0; 3].map(|_| mtu.on_report(ms(40_000), 0, 1)), [false, false, true]);
        assert_eq!(mtu.next_at(RTT), ms(100_000));
    }

    #[test]
    fn on_too_large__the_system_knows_better() {
        let mut mtu = Mtu::new(ms(0), 8972);
        assert_eq!(mtu.poll_probe(ms(0), RTT, || 1), Some(MtuProbe { size: 8972, value: 1 }));
        mtu.on_too_large(ms(0), 8972);
        // One byte less is as hopeless; what is common is not.
        assert_eq!(mtu.poll_probe(ms(0), RTT, || 2), Some(MtuProbe { size: 1472, value: 2 }));
        assert!(mtu.on_echo(ms(1), 2));
        mtu.on_too_large(ms(2), 1473);
        assert_eq!(mtu.size(), 1472);
        mtu.on_too_large(ms(2), 10);
        assert_eq!((mtu.size(), mtu.poll_probe(ms(2), RTT, || 3)), (1200, None));
    }

    #[test]
    fn on_too_large__few_sizes_are_tried() {
        for interface in [1280_u32, 1472, 1500, 4000, 8972] {
            let mut mtu = Mtu::new(ms(0), 8972);
            let mut tried = 0;
            while let Some(probe) = mtu.poll_probe(ms(0), RTT, || tried) {
                tried += 1;
                if probe.size > interface {
                    mtu.on_too_large(ms(0), probe.size);
                } else {
                    assert!(mtu.on_echo(ms(0), probe.value));
                }
            }
            // The bound, four common sizes, and 13 halves of less than 8192.
            assert!(tried <= 18, "{tried} for {interface}");
            assert!(mtu.size() <= interface && interface - mtu.size() < CLOSE, "{} for {interface}", mtu.size());
        }
    }

    proptest! {
        /// Whatever the path takes, at the end of a search it is known to 16 bytes, or exactly at the bound, with no
        /// more than three probes for each size that fails.
        #[test]
        fn search__comes_close(most in 1200_u32..9100, path in 1200_u32..9100) {
            let mut mtu = Mtu::new(ms(0), most);
            let tried = search(&mut mtu, 0, 60_000, path);
            let best = path.min(most);
            prop_assert!(mtu.size() <= best && best - mtu.size() < CLOSE, "{} of {best}", mtu.size());
            prop_assert!(path < most || mtu.size() == most);
            prop_assert!(tried.len() <= 3 * 16);
        }

        /// Whatever is reported: a size between the bounds.
        #[test]
        fn mtu__of_anything(
            steps in proptest::collection::vec((0_u64..100_000, 0_u8..4, 0_u64..4, 0_u32..10_000), 1..200),
        ) {
            let mut mtu = Mtu::new(ms(0), 9000);
            let (mut now, mut drawn) = (0, 0);
            for (wait, what, count, size) in steps {
                now += wait;
                match what {
                    0 => {
                        mtu.on_echo(ms(now), drawn - u64::from(drawn > 0) * (count % 2));
                    }
                    1 => {
                        mtu.on_report(ms(now), u64::from(count == 3), count);
                    }
                    2 if count == 0 => mtu.on_too_large(ms(now), size),
                    _ => {
                        let probe = mtu.poll_probe(ms(now), RTT, || {
                            drawn += 1;
                            drawn
                        });
                        prop_assert!(probe.is_none_or(|probe| (1201..=9000).contains(&probe.size)));
                    }
                }
                prop_assert!((1200..=9000).contains(&mtu.size()));
            }
        }
    }
}
