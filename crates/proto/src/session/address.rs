//! The address of a session's initiator.

use std::net::SocketAddr;

use fairwave_units::{Duration, Time};

use crate::wire::codec::PacketKind;

/// The address of an initiator, which may move: from one network to another, or because a NAT forgot it.
///
/// Packets go to the address that is proven. When a packet that is newer than all others comes from elsewhere, that
/// place is asked: a [`Probe`](crate::wire::codec::Frame::Probe) with 64 random bits goes there, and only an
/// [`Echo`](crate::wire::codec::Frame::Echo) of it that comes from there proves that the peer is. Until then no more bytes go
/// there than came from there, so a forged address is a poor weapon, and at most one place a second is asked.
///
/// After a move all that is known of the path is void: round trip and size of packets start again, and a shared
/// path is that of the new address.
///
/// Only packets that were opened and are new ([`Replay`](crate::wire::replay::Replay),
/// [`MissingNumbers`](crate::MissingNumbers)) are handed in.
#[derive(Clone, Debug)]
pub(crate) struct PeerAddress {
    proven: SocketAddr,
    /// One above the highest number of a data packet, and of a control packet.
    next: [u64; 2],
    trial: Option<Trial>,
    /// When the last trial started.
    tried: Option<Time>,
}

/// A place that is asked whether the peer is there.
#[derive(Clone, Copy, Debug)]
struct Trial {
    address: SocketAddr,
    challenge: u64,
    since: Time,
    /// When the next probe may go.
    due: Time,
    received_bytes: u64,
    sent_bytes: u64,
}

/// At most one place is asked in this time.
pub(crate) const BETWEEN_TRIALS: Duration = Duration::from_secs(1);
/// A place that has not answered by then is no longer asked.
pub(crate) const TRIAL_LASTS: Duration = Duration::from_secs(3);

/// A probe is repeated after it.
const REPEAT: Duration = Duration::from_millis(250);

impl PeerAddress {
    /// The handshake has proven an address.
    pub(crate) fn new(proven: SocketAddr) -> Self {
        Self { proven, next: [0; 2], trial: None, tried: None }
    }

    /// The destination of packets.
    #[cfg(test)]
    fn proven(&self) -> SocketAddr {
        self.proven
    }

    /// A packet of the session came, of `bytes` bytes with IP and UDP. `random` draws a challenge, if one is needed;
    /// ask [`PeerAddress::poll_probe`] afterwards.
    pub(crate) fn on_packet(
        &mut self,
        now: Time,
        from: SocketAddr,
        (kind, number): (PacketKind, u64),
        bytes: u32,
        random: impl FnOnce() -> u64,
    ) {
        let [data, control] = &mut self.next;
        let next = if kind == PacketKind::Data { data } else { control };
        let is_newest = number >= *next;
        *next = (*next).max(number.saturating_add(1));
        if let Some(trial) = self.trial.as_mut().filter(|trial| trial.address == from) {
            trial.received_bytes = trial.received_bytes.saturating_add(u64::from(bytes));
        } else if is_newest && from == self.proven {
            // It is still there, or there again.
            self.trial = None;
        } else if is_newest && self.tried.is_none_or(|tried| now.since(tried) >= BETWEEN_TRIALS) {
            let (challenge, received_bytes) = (random(), u64::from(bytes));
            self.trial = Some(Trial { address: from, challenge, since: now, due: now, received_bytes, sent_bytes: 0 });
            self.tried = Some(now);
        }
    }

    /// A probe to send now: its destination and value. Its packet has `bytes` bytes with IP and UDP.
    pub(crate) fn poll_probe(&mut self, now: Time, bytes: u32) -> Option<(SocketAddr, u64)> {
        self.trial = self.trial.filter(|trial| now.since(trial.since) < TRIAL_LASTS);
        let trial = self.trial.as_mut()?;
        let sent = trial.sent_bytes.saturating_add(u64::from(bytes));
        if now < trial.due {
            return None;
        }
        trial.due = now.saturating_add(REPEAT);
        if sent > trial.received_bytes {
            return None;
        }
        trial.sent_bytes = sent;
        Some((trial.address, trial.challenge))
    }

    /// When the next probe is due.
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.trial.map(|trial| trial.due)
    }

    /// An echo came: whether it proves a new address, which packets go to from now on.
    pub(crate) fn on_echo(&mut self, now: Time, from: SocketAddr, value: u64) -> bool {
        let is_proof = self.trial.is_some_and(|trial| {
            let was_sent = trial.sent_bytes > 0 && trial.challenge == value;
            was_sent && trial.address == from && now.since(trial.since) < TRIAL_LASTS
        });
        if is_proof {
            self.proven = from;
            self.trial = None;
        }
        is_proof
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    fn control(address: &mut PeerAddress, now: u64, port: u16, number: u64) {
        address.on_packet(ms(now), at(port), (PacketKind::Control, number), 100, || 1000 + number);
    }

    #[test]
    fn on_echo__moves_to_where_the_probe_was_answered() {
        let mut address = PeerAddress::new(at(1));
        control(&mut address, 0, 1, 0);
        assert_eq!(address.next_at(), None);
        control(&mut address, 10, 2, 1);
        assert_eq!(address.poll_probe(ms(10), 60), Some((at(2), 1001)));
        assert_eq!(address.proven(), at(1));
        // From elsewhere, or another value.
        assert!(!address.on_echo(ms(20), at(1), 1001));
        assert!(!address.on_echo(ms(20), at(2), 1002));
        assert!(address.on_echo(ms(20), at(2), 1001));
        assert_eq!((address.proven(), address.next_at()), (at(2), None));
        assert!(!address.on_echo(ms(20), at(2), 1001));
    }

    #[test]
    fn poll_probe__sends_no_more_than_came() {
        let mut address = PeerAddress::new(at(1));
        control(&mut address, 0, 2, 0);
        assert!(address.poll_probe(ms(0), 60).is_some());
        assert_eq!(address.next_at(), Some(ms(250)));
        assert_eq!(address.poll_probe(ms(249), 40), None);
        assert_eq!(address.poll_probe(ms(250), 60), None); // 120 of 100
        control(&mut address, 250, 2, 1);
        assert_eq!(address.next_at(), Some(ms(500)));
        assert!(address.poll_probe(ms(500), 60).is_some());
        assert!(!address.on_echo(ms(3000), at(2), 1000)); // too late
        assert_eq!(address.poll_probe(ms(3000), 1), None);
        assert_eq!(address.next_at(), None);
    }

    #[test]
    fn on_packet__asks_a_place_for_the_newest_packet_alone_and_one_a_second() {
        let mut address = PeerAddress::new(at(1));
        control(&mut address, 0, 1, 5);
        control(&mut address, 0, 2, 4); // late: on another way, perhaps
        assert_eq!(address.poll_probe(ms(0), 1), None);
        // Each kind has its own numbers.
        address.on_packet(ms(0), at(3), (PacketKind::Data, 0), 100, || 7);
        assert_eq!(address.poll_probe(ms(0), 1), Some((at(3), 7)));
        control(&mut address, 999, 4, 6);
        assert_eq!(address.poll_probe(ms(999), 1), Some((at(3), 7)));
        control(&mut address, 1000, 4, 7);
        assert_eq!(address.poll_probe(ms(1000), 1), Some((at(4), 1007)));
        // The peer is heard from where it was.
        control(&mut address, 1100, 1, 8);
        assert_eq!(address.poll_probe(ms(2000), 1), None);
    }

    proptest! {
        /// Packets from anywhere: nobody gets more than he sent before he is proven, nobody is proven by a value that
        /// was not sent to him, and there are no more trials than seconds.
        #[test]
        fn address__of_anything(
            steps in proptest::collection::vec((0_u64..600, 0_u16..4, 0_u64..40, 0_u8..4, 1_u32..200), 1..200),
        ) {
            let mut address = PeerAddress::new(at(0));
            let (mut now, mut drawn) = (0, 0_u64);
            let mut balance: BTreeMap<SocketAddr, (u64, u64)> = BTreeMap::new();
            let mut sent_to: BTreeMap<u64, SocketAddr> = BTreeMap::new();
            for (wait, port, number, what, bytes) in steps {
                now += wait;
                match what {
                    0 => {
                        if let Some((to, value)) = address.poll_probe(ms(now), bytes) {
                            let (received, sent) = balance.entry(to).or_default();
                            *sent += u64::from(bytes);
                            prop_assert!(sent <= received);
                            sent_to.insert(value, to);
                        }
                    }
                    1 => {
                        let before = address.proven();
                        let is_proof = address.on_echo(ms(now), at(port), number);
                        prop_assert_eq!(is_proof, address.proven() != before);
                        prop_assert!(!is_proof || sent_to.get(&number) == Some(&at(port)));
                    }
                    _ => {
                        balance.entry(at(port)).or_default().0 += u64::from(bytes);
                        let kind = if what == 2 { PacketKind::Data } else { PacketKind::Control };
                        address.on_packet(ms(now), at(port), (kind, number), bytes, || {
                            drawn += 1;
                            drawn
                        });
                    }
                }
                prop_assert!(drawn <= now / 1000 + 1);
            }
        }
    }
}
