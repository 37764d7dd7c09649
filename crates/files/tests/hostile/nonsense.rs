//! Sessions of random frames and data whose seals are good, in each role, at a server and at a taker.

use std::time::Duration;

use fairwave_files::{Ended, GetOptions, get};
use fairwave_host::{ConnectError, HandshakeError};
use fairwave_proto::codec::{CloseReason, Frame, PacketKind, VoidReason, Writer};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use crate::hostile_session::{GET, PUT, Peer, bind};
use crate::scene::{Scene, check, endpoint, keyring_at};

const PATIENCE: fairwave_units::Duration = fairwave_units::Duration::from_secs(fairwave_testing::LIMIT.as_secs());
/// Packets of a session.
const PACKETS: usize = 300;
/// Max frames of a packet.
const FRAMES: u64 = 40;
const KINDS: u64 = 10;

/// Draws the frames of a hostile peer.
struct Draw(Pcg64Mcg);

impl Draw {
    fn new(seed: u64) -> Self {
        println!("seed {seed}");
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }

    /// A number of any size below 2^60: small ones are as likely as large ones.
    fn number(&mut self) -> u64 {
        let shift = 4 + self.below(60);
        self.0.next_u64() >> shift
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        let mut bytes = vec![0; self.below(most + 1) as usize];
        self.0.fill_bytes(&mut bytes);
        bytes
    }

    /// A body of frames of one kind.
    fn frames(&mut self, kind: u64) -> Vec<u8> {
        let mut room = [0; 1400];
        let mut writer = Writer::new(&mut room);
        for _ in 0..=self.below(FRAMES) {
            let (stream, offset, length) = (self.below(5), self.number(), 1 + self.number());
            let frame = match kind {
                0 => Frame::Request { stream, offset, length },
                1 => Frame::Feedback { expected_bps: offset },
                2 => Frame::Timing { stamp_us: offset as u32, held_us: length },
                3 => Frame::Sent { settled: offset, next: offset + length },
                4 => Frame::Void { stream, offset, length, reason: VoidReason::Vanished },
                5 => Frame::Probe(offset),
                6 => Frame::Echo(offset),
                7 => Frame::Close(CloseReason::Keys),
                _ => {
                    let lost = offset + 1..offset + 1 + length;
                    if Frame::write_losses(offset..lost.end + stream, &[lost], &mut writer).is_err() {
                        break;
                    }
                    continue;
                }
            };
            if frame.write(&mut writer).is_err() {
                break;
            }
        }
        let used = writer.used();
        room[..used].to_vec()
    }

    /// A session's worth of one kind of frames; of the last kind anything, data among it.
    fn speak(&mut self, peer: &mut Peer, kind: u64) {
        for _ in 0..PACKETS {
            if kind < KINDS - 1 {
                let body = self.frames(kind);
                peer.say_bytes(&body);
            } else if self.below(2) == 0 {
                let body = self.bytes(1400);
                let kind = if self.below(2) == 0 { PacketKind::Data } else { PacketKind::Control };
                // Of the first keys and the next: those of far epochs take a sealer long to derive.
                let number = self.below(2 << 22);
                peer.send(kind, number, &body);
            } else {
                let (stream, offset, bytes) = (self.below(5) as u32, self.number(), self.bytes(1300));
                peer.give(stream, offset, &bytes);
            }
            // No faster than a socket's buffer is read.
            if self.below(32) == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// While an honest visitor is served, and after.
#[test]
fn visitor__of_random_sealed_frames_ends_its_own_session_alone() {
    let mut scene = Scene::new();
    for (role, flows, greeting) in [("get", (false, true), GET), ("put", (true, true), PUT)] {
        for kind in 0..KINDS {
            println!("{role}, frames of kind {kind}");
            let begun = scene.get();
            let mut peer = Peer::call(&scene.ticket, flows, greeting);
            Draw::new(kind).speak(&mut peer, kind);
            check(&begun);
        }
    }
    scene.serves();
}

/// A taker that has called a hostile server: its transfer ends, or is stopped, and its process goes on.
#[test]
fn server__of_random_sealed_frames_ends_the_transfer_alone() {
    let mut scene = Scene::new();
    let client = endpoint();
    for kind in 0..KINDS {
        println!("frames of kind {kind}");
        let socket = bind();
        let (keyring, ticket) = keyring_at(socket.local_addr().expect("it is bound"));
        let hostile = std::thread::spawn(move || {
            let mut peer = Peer::answer(socket, keyring);
            Draw::new(kind).speak(&mut peer, kind);
            peer.say(&[Frame::Close(CloseReason::Stopped)]);
        });
        let destination = scene.place.path().join(format!("hostile-{kind}"));
        let options = GetOptions { destination, retry: fairwave_units::Duration::ZERO, ..GetOptions::default() };
        let transfer = get(&client, &ticket, options);
        hostile.join().expect("the handshake is proper");
        let transfer = match transfer {
            Ok(transfer) => transfer,
            // It said that it knows no such session before it said anything else.
            Err(error) => {
                let fell_silent = ConnectError::from(HandshakeError::FellSilent).to_string();
                assert_eq!(error.to_string(), fell_silent);
                continue;
            }
        };
        let outcome = transfer.wait(Some(fairwave_units::Duration::from_millis(500))).unwrap_or_else(|| {
            // The packet that said that the session is over may have got lost.
            transfer.stop();
            transfer.wait(Some(PATIENCE)).expect("it ends when it is stopped")
        });
        assert_ne!(outcome.ended, Ended::Done);
        assert_eq!((outcome.files, outcome.bytes), (0, 0));
    }
    scene.serves();
}
