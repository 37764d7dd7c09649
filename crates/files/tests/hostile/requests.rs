//! Requests for ranges that do not exist.

use fairwave_proto::codec::{Frame, VoidReason};
use fairwave_testing::wait_some;

use crate::hostile_session::{GET, Heard, Peer};
use crate::scene::Scene;

#[test]
fn sink__that_asks_outside_of_the_streams_is_told_that_nothing_is_there() {
    let mut scene = Scene::new();
    let mut peer = Peer::call(&scene.ticket, (false, true), GET);
    // Streams that no transfer has, the results that only a taker of a put gives, and offsets far behind every end.
    for (stream, offset, expected) in [
        (18, 0, VoidReason::Vanished),
        (u64::from(u32::MAX), 1 << 50, VoidReason::Vanished),
        (3, 0, VoidReason::Vanished),
        (0, 1 << 60, VoidReason::Shrank),
        (1, 1 << 60, VoidReason::Shrank),
        (2, (1 << 62) - 1000, VoidReason::Shrank),
        (9, 1 << 60, VoidReason::Shrank),
    ] {
        let reported = wait_some("an answer", || {
            // The walk may not have ended when it is asked for the first time.
            peer.say(&[Frame::Request { stream, offset, length: 10 }]);
            hear_void(&mut peer, stream, offset)
        });
        assert_eq!(reported, expected, "stream {stream}, offset {offset}");
    }
    scene.serves();
}

/// The void reason reported for a range within a moment; no data of it ever arrive.
fn hear_void(peer: &mut Peer, wanted: u64, at: u64) -> Option<VoidReason> {
    for _ in 0..20 {
        match peer.hear(std::time::Duration::from_millis(20))? {
            Heard::Data { stream, offset, .. } => assert!(u64::from(stream) != wanted || offset < at),
            Heard::Control(frames) => {
                let void = fairwave_proto::codec::Frames::new(&frames).flatten().find_map(|frame| match frame {
                    Frame::Void { stream, offset, reason, .. } if (stream, offset) == (wanted, at) => Some(reason),
                    _ => None,
                });
                if void.is_some() {
                    return void;
                }
            }
        }
    }
    None
}
