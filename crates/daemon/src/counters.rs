//! A network card's own counters.

use std::path::Path;

/// Where the system tells about cards.
const SYSFS: &str = "/sys/class/net";

/// What crossed a card since it was set up, in bytes as the card counts them: frames, on most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardCounters {
    /// What it sent.
    pub sent_bytes: u64,
    /// What it received.
    pub received_bytes: u64,
}

impl CardCounters {
    /// Those of a card now; `None` of a card that is not there. It costs two small files of the system.
    pub fn read(card: &str) -> Option<Self> {
        Self::read_in(Path::new(SYSFS), card)
    }

    fn read_in(sysfs: &Path, card: &str) -> Option<Self> {
        let counter = |name| {
            let path = sysfs.join(card).join("statistics").join(name);
            std::fs::read_to_string(path).ok()?.trim().parse().ok()
        };
        Some(Self { sent_bytes: counter("tx_bytes")?, received_bytes: counter("rx_bytes")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read__of_loopback_grows_by_what_crosses_it() {
        let before = CardCounters::read("lo").unwrap();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..10 {
            socket.send_to(&[0; 1000], socket.local_addr().unwrap()).unwrap();
        }
        let after = CardCounters::read("lo").unwrap();
        assert!(after.sent_bytes >= before.sent_bytes + 10_280, "{before:?} {after:?}");
        assert!(after.received_bytes >= before.received_bytes + 10_280, "{before:?} {after:?}");
        assert_eq!(CardCounters::read("no such card"), None);
    }
}
