//! Network cards' own counters.

use std::collections::BTreeMap;
use std::io;

/// Counters of the cards of this process's network namespace; /sys shows those of the namespace that mounted it.
const COUNTERS: &str = "/proc/self/net/dev";
/// Traffic on it stays in this machine.
const LOOPBACK: &str = "lo";

/// Traffic of a card since it was set up, in bytes as the card counts them: frames, on most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CardCounters {
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
}

impl CardCounters {
    /// Those of all cards now, by name: one read of a small file of the system.
    pub fn read() -> io::Result<BTreeMap<String, Self>> {
        std::fs::read_to_string(COUNTERS).map(|text| parse(&text))
    }

    /// Of a card of a table of all, or where none is named of all together but loopback.
    pub fn of(table: &BTreeMap<String, Self>, card: Option<&str>) -> Option<Self> {
        let Some(card) = card else {
            let all = table.iter().filter(|(name, _)| *name != LOOPBACK).map(|(_, counters)| *counters);
            return all.reduce(|sum, one| Self {
                sent_bytes: sum.sent_bytes.wrapping_add(one.sent_bytes),
                received_bytes: sum.received_bytes.wrapping_add(one.received_bytes),
            });
        };
        table.get(card).copied()
    }
}

/// proc(5), /proc/net/dev: two lines of heads, and for each card "name: bytes packets errs drop fifo frame compressed
/// multicast" of received traffic, followed by the same of sent traffic.
fn parse(text: &str) -> BTreeMap<String, CardCounters> {
    let card = |line: &str| {
        let (name, counters) = line.rsplit_once(':')?;
        let mut counters = counters.split_whitespace();
        let received_bytes = counters.next()?.parse().ok()?;
        let sent_bytes = counters.nth(7)?.parse().ok()?;
        Some((name.trim().to_owned(), CardCounters { sent_bytes, received_bytes }))
    };
    text.lines().skip(2).filter_map(card).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse__takes_bytes_of_both_directions() {
        let table = parse(
            "Inter-|   Receive                                                |  Transmit\n \
             face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n    \
             lo: 1000      10    0    0    0     0          0         0     1000      10    0    0    0     0       0          0\n  \
             eth0: 5 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n eth0:1: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n odd\n x: 1 2\n",
        );
        let of = |card| CardCounters::of(&table, card).map(|card| (card.sent_bytes, card.received_bytes));
        assert_eq!(table.len(), 3);
        assert_eq!(of(Some("eth0")), Some((7, 5)));
        assert_eq!(of(Some("lo")), Some((1000, 1000)));
        // All but loopback.
        assert_eq!(of(None), Some((8, 6)));
        assert_eq!(of(Some("eth9")), None);
    }

    #[test]
    fn read__of_loopback_grows_by_what_crosses_it() {
        let of = || CardCounters::of(&CardCounters::read().unwrap(), Some(LOOPBACK)).unwrap();
        let before = of();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..10 {
            socket.send_to(&[0; 1000], socket.local_addr().unwrap()).unwrap();
        }
        let after = of();
        assert!(after.sent_bytes >= before.sent_bytes + 10_280, "{before:?} {after:?}");
        assert!(after.received_bytes >= before.received_bytes + 10_280, "{before:?} {after:?}");
    }
}
