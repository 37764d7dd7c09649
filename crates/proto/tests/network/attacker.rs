//! An attacker on the network who has no keys.

use std::net::SocketAddr;

use fairwave_proto::Ecn;
use fairwave_units::Duration;

use super::test_random::Random;
use super::{Datagram, Load};

/// Datagrams that an attacker keeps.
const MAX_SEEN: usize = 300;

/// It sees sealed datagrams, and sends the like: repeated, changed, or made up.
#[derive(Debug, Default)]
pub(crate) struct Attacker {
    /// Probability of an attack for each datagram that it sees.
    pub(crate) attacks: f64,
    seen: Vec<(SocketAddr, SocketAddr, Vec<u8>)>,
}

impl Attacker {
    /// The datagram that it makes of this one, and how much later it sends it.
    pub(super) fn see(&mut self, datagram: &Datagram, random: &mut Random) -> Option<(Duration, Datagram)> {
        if !random.chance(self.attacks) {
            return None;
        }
        let Load::Sealed(bytes) = &datagram.load else { return None };
        let seen = (datagram.from, datagram.to, bytes.clone());
        if self.seen.len() < MAX_SEEN {
            self.seen.push(seen);
        } else {
            let place = random.below(MAX_SEEN);
            self.seen[place] = seen;
        }
        let (from, to, mut bytes) = self.seen[random.below(self.seen.len())].clone();
        match random.below(6) {
            0 | 1 => {}
            2 => bytes = (0..random.below(1500)).map(|_| random.bits() as u8).collect(),
            3 => bytes.truncate(random.below(bytes.len() + 1)),
            4 => bytes.extend((0..random.below(50)).map(|_| random.bits() as u8)),
            _ => {
                for _ in 0..=random.below(8) {
                    let bit = random.below(bytes.len().max(1) * 8);
                    if let Some(byte) = bytes.get_mut(bit / 8) {
                        *byte ^= 1 << (bit % 8);
                    }
                }
            }
        }
        let from = if random.chance(0.5) {
            SocketAddr::from(([10, 9, random.below(2) as u8, random.below(4) as u8], 1))
        } else {
            from
        };
        let after = random.ms(0.0..500.0) + random.pick(&[Duration::ZERO, Duration::from_secs(5)]);
        Some((after, Datagram { from, to, ecn: Ecn::Capable, load: Load::Sealed(bytes), link: None }))
    }
}
