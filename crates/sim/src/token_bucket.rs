//! An application's offer: bytes at its desired rate, with a small bucket.

use fairwave_scenario::Demand;
use fairwave_units::{Duration, Rate, Time};

/// A bucket that fills at the desired rate. It holds two packets or a millisecond's worth, whichever is more, so that
/// unused time is mostly forgone: a demand is a rate, not a backlog.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    demand: Demand,
    filled_at: Time,
    bits: f64,
    /// Whether an event for the next packet is pending.
    pub(crate) is_waiting: bool,
}

impl TokenBucket {
    /// The offer of a demand, if it is ever limited.
    pub(crate) fn new(demand: &Demand, start: Time) -> Option<Self> {
        match demand {
            Demand::Unlimited => None,
            _ => Some(Self { demand: demand.clone(), filled_at: start, bits: 0.0, is_waiting: false }),
        }
    }

    /// Whether a packet of `bytes` may be sent.
    pub(crate) fn has_packet(&mut self, now: Time, bytes: u32) -> bool {
        self.fill(now, bytes);
        // A rounding error must not cost a whole packet's wait.
        self.bits * (1.0 + 1e-9) >= f64::from(bytes) * 8.0
    }

    /// Takes a packet of `bytes`.
    pub(crate) fn take(&mut self, bytes: u32) {
        self.bits = (self.bits - f64::from(bytes) * 8.0).max(0.0);
    }

    /// Time at which a packet may be sent, if none may be sent `now`: always later than now. `None` if the demand stays
    /// at zero, and if a packet may be sent now, so that there is nothing to wait for.
    pub(crate) fn next_packet(&mut self, now: Time, bytes: u32) -> Option<Time> {
        if self.has_packet(now, bytes) {
            return None;
        }
        let change = self.demand.next_change(now);
        let rate = self.demand.at(now).expect("an unlimited demand has a packet");
        let missing = f64::from(bytes) * 8.0 - self.bits;
        let wait = Duration::from_secs_f64(missing / rate.as_bps());
        // Rounded up, so that the bucket has a packet at that time.
        let at = wait.map(|wait| now.saturating_add(wait).saturating_add(Duration::from_nanos(1)));
        match (at, change) {
            (Some(at), Some(change)) => Some(at.min(change)),
            (at, change) => at.or(change),
        }
    }

    /// Adds the offer since the last call, at the rates that applied. The bucket is infinite while the demand is
    /// unlimited, and at most full when it is limited again.
    fn fill(&mut self, now: Time, bytes: u32) {
        while self.filled_at < now {
            let until = self.demand.next_change(self.filled_at).map_or(now, |change| change.min(now));
            let span_s = until.since(self.filled_at).as_secs_f64();
            let rate = self.demand.at(self.filled_at);
            self.bits = rate.map_or(f64::INFINITY, |rate| (self.bits + rate.as_bps() * span_s).min(depth(rate, bytes)));
            self.filled_at = until;
        }
        self.bits = self.demand.at(now).map_or(f64::INFINITY, |rate| self.bits.min(depth(rate, bytes)));
    }
}

/// Capacity of the bucket in bits.
fn depth(rate: Rate, bytes: u32) -> f64 {
    (f64::from(bytes) * 16.0).max(rate.as_bps() * 1e-3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets sent up to `end` if every offer is used.
    fn sent(demand: &Demand, end: Time) -> u32 {
        let mut offer = TokenBucket::new(demand, Time::ZERO).unwrap();
        let (mut now, mut packets) = (Time::ZERO, 0);
        while now <= end {
            while offer.has_packet(now, 1000) {
                offer.take(1000);
                packets += 1;
            }
            match offer.next_packet(now, 1000) {
                Some(at) => now = at.max(now + Duration::from_nanos(1)),
                None => break,
            }
        }
        packets
    }

    #[test]
    fn offer__is_the_demand() {
        // 8 Mb/s are 1000 packets of 1000 B a second.
        assert_eq!(sent(&Demand::Constant(Rate::mbps(8.0)), Time::from_secs(10)), 9999);
    }

    #[test]
    fn next_packet__is_none_once_the_demand_is_unlimited() {
        // 8 Mb/s up to 2 s, unlimited up to 4 s, 8 Mb/s from there on.
        let steps =
            [(0, Some(8.0)), (2, None), (4, Some(8.0))].map(|(at, mbps)| (Time::from_secs(at), mbps.map(Rate::mbps)));
        let mut offer = TokenBucket::new(&Demand::Schedule(steps.into()), Time::ZERO).unwrap();
        let change = Time::from_secs(2);
        while offer.has_packet(Time::from_nanos(1_999_500_000), 1000) {
            offer.take(1000);
        }
        // The bucket is not full, but from the change on that does not matter.
        assert_eq!(offer.next_packet(Time::from_nanos(1_999_500_000), 1000), Some(change));
        for _ in 0..1000 {
            assert!(offer.has_packet(change, 1000));
            offer.take(1000);
        }
        // The unlimited period leaves no backlog: two packets at most, then a millisecond each.
        let back = Time::from_secs(4);
        let left = (0..10).take_while(|_| offer.has_packet(back, 1000).then(|| offer.take(1000)).is_some()).count();
        assert!(left <= 2, "{left}");
        assert!(offer.next_packet(back, 1000) > Some(back));
    }

    #[test]
    fn offer__follows_a_schedule() {
        let steps = [(0, 8.0), (2, 0.0), (3, 16.0)].map(|(at, mbps)| (Time::from_secs(at), Some(Rate::mbps(mbps))));
        // 2 s x 1000 + 1 s x 0 + 2 s x 2000
        let packets = sent(&Demand::Schedule(steps.into()), Time::from_secs(5));
        assert!((5990..=6001).contains(&packets), "{packets}");
    }
}
