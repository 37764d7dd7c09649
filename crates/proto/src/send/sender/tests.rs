//! A sender and what it remembers.

use super::*;
use crate::send::verdict::Repairs;
use crate::wire::codec::{LossReport, Reader, Writer};

fn report(sender: &mut Sender, now: Time, numbers: Range<u64>) {
    let mut room = [0; 64];
    LossReport::write(numbers, &[], &mut Writer::new(&mut room)).unwrap();
    let report = LossReport::read(&mut Reader::new(&room)).unwrap();
    sender.on_report(now, &report, &mut Repairs::default(), None).unwrap();
}

/// Packets under way are remembered, and a sink that never reports the first one settles nothing.
#[test]
fn transmit__no_more_is_under_way_than_may_be_remembered() {
    let (mut now, most) = (Time::ZERO, MAX_UNDER_WAY as u64);
    let setup = SenderSetup {
        piece_bytes: 1000,
        lower_bytes: 28,
        send_bytes: Bytes::new(1),
        start: Rate::gbps(1e6),
        path: PathKind::Dedicated,
        weight: 1.0,
        group: 0,
        rtt: None,
        silence: Duration::from_secs(30),
    };
    let mut sender = Sender::new(now, SessionId(1), SocketAddr::from(([10, 0, 0, 1], 1)), setup, None);
    let mut chance = SecureRandom::new([1; 32], 0);
    sender.serve(now, 1, 0..2000 * most);
    for sent in 0..2 * most {
        now = now.saturating_add(Duration::from_micros(1));
        if sender.transmit(now, &mut chance, None).is_none() {
            break;
        }
        if sent % 1000 == 999 {
            report(&mut sender, now, 1..sent + 1);
        }
    }
    assert_eq!((sender.under_way() as u64, sender.next_at()), (most, None));
    report(&mut sender, now, 0..most);
    assert_eq!(sender.under_way(), 0);
    assert!(sender.transmit(now.saturating_add(Duration::from_micros(1)), &mut chance, None).is_some());
}
