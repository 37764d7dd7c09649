//! Reports of packets that no honest sink makes.

use fairwave_host::CloseReason;
use fairwave_proto::codec::{Frame, LossReport, Reader, Writer};

use crate::hostile_session::{GET, Heard, Peer};
use crate::scene::{Scene, check};

/// A frame that reports that all of these numbers have arrived.
fn arrived(numbers: std::ops::Range<u64>) -> Vec<u8> {
    let mut room = [0; 64];
    let mut writer = Writer::new(&mut room);
    LossReport::write(numbers, &[], &mut writer).expect("there is room");
    let used = writer.used();
    room[..used].to_vec()
}

fn report(peer: &mut Peer, numbers: std::ops::Range<u64>) {
    let bytes = arrived(numbers);
    let report = LossReport::read(&mut Reader::new(&bytes)).expect("it was written as one");
    peer.say(&[Frame::Losses(report)]);
}

#[test]
fn sink__that_reports_what_was_never_sent_is_closed() {
    let mut scene = Scene::new();
    let begun = scene.get();
    let mut peer = Peer::call(&scene.ticket, (false, true), GET);
    report(&mut peer, 0..1 << 40);
    assert_eq!(peer.hear_close(), Some(CloseReason::Protocol));
    check(&begun);
}

#[test]
fn sink__that_reports_one_more_than_it_was_sent_is_closed() {
    let mut scene = Scene::new();
    let mut peer = Peer::call(&scene.ticket, (false, true), GET);
    // The list of the files: one packet, or two of which a number lies between.
    peer.say(&[Frame::Request { stream: 0, offset: 0, length: 1000 }]);
    let number = loop {
        match peer.hear(fairwave_testing::LIMIT).expect("it is answered") {
            Heard::Data { number, .. } => break number,
            Heard::Control(_) => {}
        }
    };
    report(&mut peer, 0..number + 2);
    assert_eq!(peer.hear_close(), Some(CloseReason::Protocol));
    scene.serves();
}
