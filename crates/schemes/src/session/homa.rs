//! Homa's receiver (Montazeri et al., SIGCOMM 2018), as HomaModule for Linux has it: which messages may send how much,
//! at which priority. The exchange around it belongs to the simulator that drives it.
//!
//! Messages with the least remaining bytes go first, at most eight at once, and no two of one peer while others wait.
//! Granted bytes that have not arrived are bounded, and with them the queue at the receiver's link.

use std::collections::BTreeMap;

use fairwave_units::{Duration, Time};

use crate::scheme::option::{OptionSpec, TypedOption, packets_only};
use crate::scheme::{Model, Scheme, entry};

/// Bytes that a source sends without a grant (HomaModule: `unsched_bytes`).
pub const UNSCHEDULED_BYTES: u64 = 40_000;
/// Bytes that may be granted and not received (HomaModule: `max_incoming`).
pub const MAX_INCOMING_BYTES: u64 = 400_000;
/// Highest of the levels for granted packets; the levels above are for others.
const TOP_SCHEDULED: u8 = 3;
/// Level of what the oldest message gets in addition (HomaModule: levels - 2).
const FIFO_LEVEL: u8 = 6;
/// Bytes that it gets each time, and the share of the link, of which the interval follows.
const FIFO_BYTES: u64 = 50_000;
const FIFO_SHARE: f64 = 0.05;

/// Messages that may send at once (HomaModule: `max_overcommit`).
pub const OVERCOMMIT: TypedOption<u64> = packets_only("overcommit", "8", "messages that a receiver lets send at once");

const OPTIONS: [OptionSpec; 1] = [OVERCOMMIT.spec()];

/// The registry entry.
pub(super) const SCHEME: Scheme = Scheme {
    models: &[Model::Packet],
    options: &OPTIONS,
    needs: "a size; and for its priorities discipline = \"priority\" at the receiver's link",
    ..entry::session(
        "homa",
        "receivers grant, the message with the least remaining bytes first",
        "Montazeri et al. 2018; HomaModule",
    )
};

/// The level of packets that are sent without a grant: the shorter the message, the higher.
pub fn unscheduled_level(size_bytes: u64) -> u8 {
    match size_bytes {
        0..=200 => 7,
        201..=2800 => 6,
        2801..=15_000 => 5,
        _ => 4,
    }
}

/// A grant: the message may send its bytes below `offset`, at a priority level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HomaGrant {
    /// The message.
    pub message: u32,
    /// First byte that it may not send.
    pub offset: u64,
    /// Level, 0 to 7; the highest is served first.
    pub level: u8,
}

/// A message that is arriving.
#[derive(Clone, Copy, Debug)]
struct Incoming {
    peer: u32,
    size: u64,
    received: u64,
    granted: u64,
    /// Order of its first packet.
    age: u64,
}

impl Incoming {
    fn remaining(&self) -> u64 {
        self.size - self.received
    }

    fn outstanding(&self) -> u64 {
        self.granted - self.received.min(self.granted)
    }
}

/// The messages that arrive at one receiver.
#[derive(Clone, Debug)]
pub struct HomaReceiver {
    overcommit: usize,
    fifo_interval: Option<Duration>,
    next_fifo: Time,
    messages: BTreeMap<u32, Incoming>,
    count: u64,
}

impl HomaReceiver {
    /// A receiver whose link has this capacity in bit/s, if it has one.
    pub fn new(overcommit: u64, capacity_bps: Option<f64>) -> Self {
        let interval_s = capacity_bps.map(|bps| FIFO_BYTES as f64 * 8.0 / (FIFO_SHARE * bps));
        Self {
            overcommit: usize::try_from(overcommit).unwrap_or(usize::MAX),
            fifo_interval: interval_s.and_then(Duration::from_secs_f64),
            next_fifo: Time::ZERO,
            messages: BTreeMap::new(),
            count: 0,
        }
    }

    /// Bytes of a message arrived for the first time; `size` is that of the message. Grants follow.
    pub fn on_data(&mut self, now: Time, message: u32, peer: u32, size: u64, bytes: u64) -> Vec<HomaGrant> {
        let count = &mut self.count;
        let incoming = self.messages.entry(message).or_insert_with(|| {
            *count += 1;
            Incoming { peer, size, received: 0, granted: size.min(UNSCHEDULED_BYTES), age: *count }
        });
        incoming.received = (incoming.received + bytes).min(size);
        if incoming.received == size {
            self.messages.remove(&message);
        }
        self.grant(now)
    }

    /// Bytes that are granted to messages and have not arrived.
    pub fn incoming_bytes(&self) -> u64 {
        self.messages.values().map(Incoming::outstanding).sum()
    }

    /// Whether a message is the first of those of which bytes are to arrive: the others may wait behind it.
    pub fn expects_first(&self, message: u32) -> bool {
        let expected = self.messages.iter().filter(|(_, incoming)| incoming.outstanding() > 0);
        let first = expected.min_by_key(|(_, incoming)| (incoming.remaining(), incoming.age));
        first.is_some_and(|(first, _)| *first == message)
    }

    /// The messages that get grants, by rank.
    fn active(&self) -> Vec<u32> {
        let mut waiting: Vec<_> =
            self.messages.iter().filter(|(_, incoming)| incoming.granted < incoming.size).collect();
        waiting.sort_by_key(|(_, incoming)| (incoming.remaining(), incoming.age));
        let mut active: Vec<(u32, u32)> = Vec::new();
        // One per peer first, then the rest by rank.
        for is_first in [true, false] {
            for (message, incoming) in &waiting {
                let is_taken = active.iter().any(|(_, known)| *known == **message);
                let has_peer = active.iter().any(|(peer, _)| *peer == incoming.peer);
                if active.len() < self.overcommit && !is_taken && !(is_first && has_peer) {
                    active.push((incoming.peer, **message));
                }
            }
        }
        let mut active: Vec<u32> = active.into_iter().map(|(_, message)| message).collect();
        active.sort_by_key(|message| (self.messages[message].remaining(), self.messages[message].age));
        active
    }

    fn grant(&mut self, now: Time) -> Vec<HomaGrant> {
        let mut grants = self.grant_oldest(now).into_iter().collect::<Vec<_>>();
        let active = self.active();
        let window = MAX_INCOMING_BYTES / (active.len() as u64 + 1);
        for (rank, message) in active.iter().enumerate() {
            let room = MAX_INCOMING_BYTES.saturating_sub(self.incoming_bytes());
            let Some(incoming) = self.messages.get_mut(message) else { continue };
            let wanted = (incoming.received + window).saturating_sub(incoming.granted);
            let more = wanted.min(incoming.size - incoming.granted).min(room);
            if more > 0 {
                incoming.granted += more;
                grants.push(HomaGrant {
                    message: *message,
                    offset: incoming.granted,
                    level: level(rank, active.len()),
                });
            }
        }
        grants
    }

    /// Grants the oldest message some bytes each interval, so that long messages end.
    fn grant_oldest(&mut self, now: Time) -> Option<HomaGrant> {
        let interval = self.fifo_interval?;
        if now < self.next_fifo {
            return None;
        }
        self.next_fifo = now.saturating_add(interval);
        let window = MAX_INCOMING_BYTES / (self.active().len() as u64 + 1);
        let waiting = self.messages.iter_mut().filter(|(_, incoming)| incoming.granted < incoming.size);
        let (message, oldest) = waiting.min_by_key(|(_, incoming)| incoming.age)?;
        if oldest.outstanding() >= window + 2 * FIFO_BYTES {
            return None;
        }
        oldest.granted = (oldest.granted + FIFO_BYTES).min(oldest.size);
        Some(HomaGrant { message: *message, offset: oldest.granted, level: FIFO_LEVEL })
    }
}

/// The level of an active message by its rank: the lowest levels that suffice.
fn level(rank: usize, active: usize) -> u8 {
    let top = usize::from(TOP_SCHEDULED).min(active.saturating_sub(1));
    top.saturating_sub(rank) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level__uses_the_lowest_that_suffice() {
        let levels = |active| (0..active).map(|rank| level(rank, active)).collect::<Vec<_>>();
        assert_eq!((levels(1), levels(2)), (vec![0], vec![1, 0]));
        assert_eq!(levels(8), [3, 2, 1, 0, 0, 0, 0, 0]);
        assert_eq!([200, 2800, 15_000, 15_001].map(unscheduled_level), [7, 6, 5, 4]);
    }

    #[test]
    fn new__fifo_interval_follows_from_the_capacity() {
        // 50 000 x 8 / (5 % of 25 Gb/s).
        assert_eq!(HomaReceiver::new(8, Some(25e9)).fifo_interval, Some(Duration::from_micros(320)));
    }

    /// So many messages of 1 MB of different peers, each with its first packet.
    fn receiver(count: u32, overcommit: u64) -> HomaReceiver {
        let mut receiver = HomaReceiver::new(overcommit, None);
        for message in 0..count {
            receiver.on_data(Time::ZERO, message, message, 1_000_000, 1000);
        }
        receiver
    }

    #[test]
    fn grant__shares_the_incoming_bytes_in_windows() {
        // 400 000 / (active + 1).
        for (count, window) in [(1, 200_000), (3, 100_000), (7, 50_000)] {
            let receiver = receiver(count, 8);
            let active = receiver.active();
            assert_eq!(MAX_INCOMING_BYTES / (active.len() as u64 + 1), window, "{count}");
            let unscheduled = u64::from(count) * UNSCHEDULED_BYTES;
            assert!(receiver.incoming_bytes() <= MAX_INCOMING_BYTES + unscheduled, "{count}");
        }
        // A lone message has a window ahead of what it received.
        assert_eq!(receiver(1, 8).messages[&0].granted, 201_000);
    }

    #[test]
    fn grant__serves_the_least_remaining_and_one_at_a_time_without_overcommitment() {
        let mut receiver = receiver(3, 1);
        // Of equals the oldest.
        assert_eq!(receiver.active(), [0]);
        let grants = receiver.on_data(Time::ZERO, 2, 2, 1_000_000, 30_000);
        assert_eq!(receiver.active(), [2]);
        assert!(grants.iter().all(|grant| grant.message == 2 && grant.level == 0), "{grants:?}");
    }

    #[test]
    fn active__has_one_of_each_peer_while_others_wait() {
        let mut receiver = HomaReceiver::new(2, None);
        for (message, peer, size) in [(0, 7, 3_000_000), (1, 7, 4_000_000), (2, 8, 9_000_000)] {
            receiver.on_data(Time::ZERO, message, peer, size, 1000);
        }
        assert_eq!(receiver.active(), [0, 2]);
        // Without other peers the second of the same one.
        receiver.on_data(Time::ZERO, 2, 8, 9_000_000, 8_999_000);
        assert_eq!(receiver.active(), [0, 1]);
    }

    proptest::proptest! {
        /// For any arrivals: what is granted and missing stays within the bound, beyond what needs no grant.
        #[test]
        fn grant__never_exceeds_the_incoming_bytes(
            sizes in proptest::collection::vec(1_u64..5_000_000, 1..30),
            arrivals in proptest::collection::vec((0_usize..30, 1_u64..3000), 1..400),
        ) {
            let mut receiver = HomaReceiver::new(8, None);
            for (message, bytes) in arrivals {
                let message = message % sizes.len();
                receiver.on_data(Time::ZERO, message as u32, message as u32 % 5, sizes[message], bytes);
                let unscheduled = receiver.messages.len() as u64 * UNSCHEDULED_BYTES;
                proptest::prop_assert!(receiver.incoming_bytes() <= MAX_INCOMING_BYTES + unscheduled);
            }
        }
    }
}
