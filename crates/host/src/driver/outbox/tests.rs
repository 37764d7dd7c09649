//! Datagrams as they leave a host, byte for byte: what two versions must agree on.

use std::fmt::Write as _;
use std::net::UdpSocket;
use std::ops::Range;
use std::time::Duration;

use fairwave_proto::PieceAt;
use fairwave_proto::codec::{Checksum, Header, PacketKind, Reader};

use super::*;
use crate::crypto::{OpenKeys, SessionKeys, Suite};

/// Lends bytes that count up with their offset, in parts of this size.
struct Lender(usize);

impl Handler for Lender {
    fn lend(&mut self, _stream: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        let bytes: Vec<u8> = range.map(|at| at as u8).collect();
        bytes.chunks(self.0).for_each(take);
        Ok(())
    }
}

/// Which seal, and whether data go without secrecy.
const SEALS: [(Suite, bool); 3] = [(Suite::Aes, false), (Suite::ChaCha, false), (Suite::Aes, true)];
/// Of tests' epochs of 1024 numbers: in the first one, and in the next.
const NUMBERS: [u64; 2] = [5, 1 << 10 | 3];
const SESSION: SessionId = SessionId(0x0102_0304_0506_0708);

fn keys((suite, is_plain): (Suite, bool), is_initiator: bool) -> OpenKeys {
    let split = ([1; 32], [2; 32]);
    SessionKeys::new(suite, is_initiator, is_plain, split).open().expect("they are fresh")
}

fn data(number: u64) -> DataPacket {
    let piece = PieceAt { stream: 3, offset: 0x0102_0304_0510, length: 21 };
    DataPacket { session: SESSION, number, stamp_us: 0x0a0b_0c0d, piece }
}

fn control(number: u64) -> ControlPacket {
    ControlPacket { session: SESSION, number, frames: (0..11).collect() }
}

/// The datagrams that a socket receives of an outbox: a data packet and a control packet of each number.
fn sent(seal: (Suite, bool), part: usize) -> Vec<Vec<u8>> {
    let there = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    there.set_read_timeout(Some(Duration::from_secs(60))).expect("it is not zero");
    let to = (None, there.local_addr().expect("it is bound"));
    let (mut socket, mut outbox) = (Socket::bind(None).expect("a port is free"), Outbox::new());
    let OpenKeys { mut data, mut control, .. } = keys(seal, true);
    let mut received = Vec::new();
    let mut room = [0; 2000];
    for number in NUMBERS {
        let packet = self::data(number);
        outbox
            .push_data(
                &mut socket,
                SESSION,
                BatchWay { to, takes_marks: false },
                &packet,
                &mut data.sealer,
                &mut Lender(part),
            )
            .expect("it is lent");
        outbox.flush(&mut socket);
        outbox.push_control(&mut socket, SESSION, to, &self::control(number), &mut control.sealer);
        outbox.flush(&mut socket);
        for _ in 0..2 {
            let length = there.recv(&mut room).expect("nothing gets lost on the way to oneself");
            received.push(room[..length].to_vec());
        }
    }
    received
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    })
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("they are two digits");
    (0..hex.len()).step_by(2).map(digits).collect()
}

#[test]
fn datagrams__are_those_on_record() {
    for (seal, expected) in SEALS.into_iter().zip(RECORDED) {
        // In one part, which is sealed from where it is; and in two, which are put together first.
        for part in [100, 13] {
            let sent: Vec<String> = sent(seal, part).iter().map(|datagram| hex(datagram)).collect();
            assert_eq!(sent, expected, "{seal:?}, {part} bytes at a time");
        }
    }
}

#[test]
fn open__finds_in_what_is_on_record_what_was_sealed() {
    for (seal, recorded) in SEALS.into_iter().zip(RECORDED) {
        let OpenKeys { mut data, mut control, .. } = keys(seal, false);
        for (number, recorded) in NUMBERS.into_iter().zip(recorded.chunks(2)) {
            let [mut of_data, mut of_control] = [bytes(recorded[0]), bytes(recorded[1])];
            let header = Header { kind: PacketKind::Data, session: SESSION, number };
            assert_eq!(Header::read(&mut Reader::new(&of_data)), Ok(header));
            let expected: Vec<u8> = (0x10..0x10 + 21).collect();
            let opened = DataPacket::open(&header, &mut data.opener, &mut of_data);
            assert_eq!(opened, Ok((self::data(number), &expected[..])), "{seal:?}");
            let header = Header { kind: PacketKind::Control, ..header };
            assert_eq!(Header::read(&mut Reader::new(&of_control)), Ok(header));
            let opened = ControlPacket::open(&header, &mut control.opener, &mut of_control);
            assert_eq!(opened, Ok(self::control(number)), "{seal:?}");
        }
    }
}

/// A simulation's datagrams equal a host's without secrecy, except the tag.
#[test]
fn seal__of_a_simulation_frames_as_on_record() {
    let [of_data, ..] = RECORDED[2].map(bytes);
    let mut datagram = [0; 70];
    let content: Vec<u8> = (0x10..0x10 + 21).collect();
    let length = data(NUMBERS[0]).seal(&mut Checksum::new(7), &mut datagram, &content);
    assert_eq!(length, Ok(of_data.len()));
    assert_eq!(datagram[..DATA_FRONT + 21], of_data[..DATA_FRONT + 21]);
}

#[test]
fn push_data__of_fewer_bytes_than_it_says_sends_nothing() {
    struct Short;
    impl Handler for Short {
        fn lend(&mut self, _stream: u32, _range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
            take(&[7; 20]);
            Ok(())
        }
    }
    let (mut socket, mut outbox) = (Socket::bind(None).expect("a port is free"), Outbox::new());
    let to = (None, "127.0.0.1:9".parse().expect("it is an address"));
    let sealer = &mut keys(SEALS[0], true).data.sealer;
    let pushed =
        outbox.push_data(&mut socket, SESSION, BatchWay { to, takes_marks: false }, &data(5), sealer, &mut Short);
    assert_eq!(pushed, Err(VoidReason::Shrank));
    assert!(outbox.flush(&mut socket) && outbox.calls == 0);
}

#[test]
fn push_control__those_to_one_address_go_together_and_before_data() {
    let there = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    there.set_read_timeout(Some(Duration::from_secs(60))).expect("it is not zero");
    let to = (None, there.local_addr().expect("it is bound"));
    let (mut socket, mut outbox) = (Socket::bind(None).expect("a port is free"), Outbox::new());
    let OpenKeys { data: mut of_data, control: mut of_control, .. } = keys(SEALS[0], true);
    let way = BatchWay { to, takes_marks: false };
    let push_data = |socket: &mut Socket, outbox: &mut Outbox, number, sealer: &mut Sealer| {
        outbox.push_data(socket, SESSION, way, &data(number), sealer, &mut Lender(100)).expect("it is lent");
    };
    for number in 0..10 {
        outbox.push_control(&mut socket, SESSION, to, &control(number), &mut of_control.sealer);
    }
    assert_eq!(outbox.calls, 0);
    // The first packet of data lets them go, and waits itself.
    push_data(&mut socket, &mut outbox, 0, &mut of_data.sealer);
    let go_together = socket.segments() > 1;
    assert!(outbox.calls == 1 || !go_together, "{} calls", outbox.calls);
    push_data(&mut socket, &mut outbox, 1, &mut of_data.sealer);
    // A probe of the path's size waits for nothing.
    let probe = ControlPacket { frames: vec![0; 1300], ..control(10) };
    outbox.push_control(&mut socket, SESSION, to, &probe, &mut of_control.sealer);
    assert!(outbox.calls == 2 || !go_together, "{} calls", outbox.calls);
    outbox.flush(&mut socket);
    assert!(outbox.calls == 3 || !go_together, "{} calls", outbox.calls);
    let mut room = [0; 2000];
    let kinds: Vec<_> = (0..13)
        .map(|_| {
            let length = there.recv(&mut room).expect("nothing gets lost on the way to oneself");
            let header = Header::read(&mut Reader::new(&room[..length])).expect("it is a packet");
            (header.kind, header.number)
        })
        .collect();
    let control = (0..11).map(|number| (PacketKind::Control, number));
    let expected: Vec<_> = control.chain([(PacketKind::Data, 0), (PacketKind::Data, 1)]).collect();
    assert_eq!(kinds, expected);
}

/// Of each seal: data and control of each number.
const RECORDED: [[&str; 4]; 3] = [
    [
        "28010203040506070800000000000000052ab0cca38f326e9952225a3d74023194cc2319c162b3c96d845a1e3dfc6769\
         5bcc35dad9b0f9a72e97941065d3eab4213c3f6c1ea5",
        "2901020304050607080000000000000005f38d761ffe62ae587f395184952db397be9833de2ed3074c484545",
        "280102030405060708000000000000040385a9170a91003928e878794b2b0bb683248dc1f64a7d2bc97bb9664929f6d8\
         e30b32553cf1ae4e4fd231cb360990efac5da6e485f4",
        "29010203040506070800000000000004034889734bd8314803e2dd0baf4dee89d16af3109ec5289d3eb71e2f",
    ],
    [
        "2801020304050607080000000000000005d796d56bc183843e1657c8da144b7de8b4e4090676dfd13bb0b00e21d3ee1e\
         49796f91048c34cbc929e2ce2f02893df95957109e61",
        "2901020304050607080000000000000005e856fdb43b2f8c5661207346352a0188aaa3a06a07f48ddfb11032",
        "28010203040506070800000000000004036c21251dbd00cc316a359bc454d7e2f7da3f9685f504cdcd9b8c62b10fa761\
         b1905454cf354adab97e45ddd3889a680cb478815925",
        "29010203040506070800000000000004037461335b054d5c6b737b2107770ac93a2be99a0e88d3374e64f204",
    ],
    [
        "28010203040506070800000000000000050a0b0c0d000000030000010203040510101112131415161718191a1b1c1d1e\
         1f202122232464ef123a4880238d0000000000000000",
        "2901020304050607080000000000000005f38d761ffe62ae587f395184952db397be9833de2ed3074c484545",
        "28010203040506070800000000000004030a0b0c0d000000030000010203040510101112131415161718191a1b1c1d1e\
         1f20212223242bd2965de75554cd0000000000000000",
        "29010203040506070800000000000004034889734bd8314803e2dd0baf4dee89d16af3109ec5289d3eb71e2f",
    ],
];
