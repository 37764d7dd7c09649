//! A packet in the network: a small plain value, without payload bytes.

use fairwave_schemes::header::{CongestionHeader, EcnCode};
use fairwave_units::Time;

/// A data packet or an acknowledgement, in half a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SimPacket {
    /// Data: its number. Acknowledgement: the first number that the receiver has not received.
    pub(crate) number: u64,
    /// Data: its send time. Acknowledgement: that of the packet that it answers.
    pub(crate) stamp: Time,
    /// Index of its flow.
    pub(crate) flow: u32,
    /// Bytes on the wire.
    pub(crate) bytes: u32,
    /// Index of the next stage of its path.
    pub(crate) stage: u32,
    pub(crate) kind: SimPacketKind,
}

/// The kind of a packet: data, an acknowledgement with or without blocks, or a message of the source to the sink; and
/// the slot of its congestion header, if it has one.
///
/// Below 2^31 it is an acknowledgement, and the slot of its blocks; from there on data, from 3 x 2^30 on an
/// acknowledgement, with the slot of the header; and the last few are those without any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SimPacketKind(u32);

/// Flag of a kind with a congestion header.
const HEADED: u32 = 1 << 31;
/// Flags of an acknowledgement with a congestion header.
const HEADED_ACK: u32 = HEADED | 1 << 30;
/// Number of slots that fit into a kind.
const PLACES: u32 = 1 << 30;

impl SimPacketKind {
    pub(crate) const DATA: Self = Self(u32::MAX);
    /// An acknowledgement of all packets up to a number, and of none above.
    pub(crate) const PLAIN_ACK: Self = Self(u32::MAX - 1);
    /// A message of the source to the sink, without data.
    pub(crate) const NOTICE: Self = Self(u32::MAX - 2);

    #[inline]
    pub(crate) fn is_data(self) -> bool {
        self == Self::DATA || (HEADED..HEADED_ACK).contains(&self.0)
    }

    /// The slot of its congestion header, if it has one.
    #[inline]
    fn header_place(self) -> Option<usize> {
        (self.0 >= HEADED && self < Self::NOTICE).then_some((self.0 % PLACES) as usize)
    }
}

/// Numbers from `begin` to `end`, exclusive; relative to an acknowledgement's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) begin: u32,
    pub(crate) end: u32,
}

/// Blocks in an acknowledgement (RFC 2018 s3: three with a timestamp).
pub(crate) const BLOCKS: usize = 3;

/// Ranges that the receiver has received above an acknowledgement's number, newest first; empty blocks last.
pub(crate) type SackBlocks = [Block; BLOCKS];

/// The blocks of all acknowledgements in flight. Few have any, so they are not part of a packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockStore {
    blocks: Vec<SackBlocks>,
    free: Vec<u32>,
}

impl BlockStore {
    /// Stores blocks until the acknowledgement of this kind arrives or is dropped.
    pub(crate) fn keep(&mut self, blocks: SackBlocks) -> SimPacketKind {
        if let Some(place) = self.free.pop() {
            self.blocks[place as usize] = blocks;
            return SimPacketKind(place);
        }
        self.blocks.push(blocks);
        let place = u32::try_from(self.blocks.len() - 1).ok().map(SimPacketKind);
        place.filter(|kind| kind.0 < HEADED).expect("fewer than 2^31 acknowledgements are under way")
    }

    /// The blocks of a packet in flight.
    pub(crate) fn get(&self, kind: SimPacketKind) -> Option<&SackBlocks> {
        // The numbers of data and plain acknowledgements are not slots.
        self.blocks.get(kind.0 as usize)
    }

    /// Removes the blocks of a packet that arrives or is dropped; `None` for data.
    #[inline]
    pub(crate) fn take(&mut self, kind: SimPacketKind) -> Option<SackBlocks> {
        if kind.0 >= HEADED {
            return None;
        }
        self.free.push(kind.0);
        Some(self.blocks[kind.0 as usize])
    }
}

/// The congestion headers of all packets in flight. TCP's have none, so they are not part of a packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeaderStore {
    /// Each with the kind of the acknowledgement without it.
    headers: Vec<(CongestionHeader, SimPacketKind)>,
    free: Vec<u32>,
}

impl HeaderStore {
    /// Stores the header of a data packet until it arrives or is dropped.
    pub(crate) fn keep(&mut self, header: CongestionHeader) -> SimPacketKind {
        self.store(HEADED, header, SimPacketKind::DATA)
    }

    /// Stores the header of an acknowledgement that would be `plain` without it.
    pub(crate) fn keep_ack(&mut self, header: CongestionHeader, plain: SimPacketKind) -> SimPacketKind {
        self.store(HEADED_ACK, header, plain)
    }

    fn store(&mut self, base: u32, header: CongestionHeader, plain: SimPacketKind) -> SimPacketKind {
        if let Some(place) = self.free.pop() {
            self.headers[place as usize] = (header, plain);
            return SimPacketKind(base + place);
        }
        self.headers.push((header, plain));
        // The last few numbers are reserved.
        let place = u32::try_from(self.headers.len() - 1).ok().filter(|place| *place < PLACES - 3);
        SimPacketKind(base + place.expect("fewer than 2^30 packets with headers are under way"))
    }

    /// The header of a packet in flight.
    #[inline]
    pub(crate) fn get(&self, kind: SimPacketKind) -> Option<&CongestionHeader> {
        kind.header_place().map(|place| &self.headers[place].0)
    }

    /// The header of a packet in flight, mutable.
    #[inline]
    pub(crate) fn get_mut(&mut self, kind: SimPacketKind) -> Option<&mut CongestionHeader> {
        kind.header_place().map(|place| &mut self.headers[place].0)
    }

    /// Marks a data packet in flight; returns false if its ends do not understand marks.
    pub(crate) fn mark(&mut self, kind: SimPacketKind) -> bool {
        let Some(CongestionHeader::Ecn(code)) = self.get_mut(kind).filter(|_| kind.is_data()) else { return false };
        *code = EcnCode::Experienced;
        true
    }

    /// Whether a data packet in flight can be marked.
    pub(crate) fn is_capable(&self, kind: SimPacketKind) -> bool {
        kind.is_data() && matches!(self.get(kind), Some(CongestionHeader::Ecn(_)))
    }

    /// The kind of a packet in flight without its header.
    #[inline]
    pub(crate) fn plain(&self, kind: SimPacketKind) -> SimPacketKind {
        kind.header_place().map_or(kind, |place| self.headers[place].1)
    }

    /// Removes the header of a packet that arrives or is dropped; returns it and the kind without it.
    #[inline]
    pub(crate) fn take(&mut self, kind: SimPacketKind) -> (Option<CongestionHeader>, SimPacketKind) {
        let Some(place) = kind.header_place() else { return (None, kind) };
        self.free.push(kind.0 % PLACES);
        let (header, plain) = self.headers[place];
        (Some(header), plain)
    }
}

#[cfg(test)]
mod tests {
    use fairwave_schemes::header::LoadCode;

    use super::*;

    #[test]
    fn block_store__returns_blocks_and_reuses_slots() {
        let mut store = BlockStore::default();
        let blocks = |begin| [Block { begin, end: begin + 1 }; BLOCKS];
        let kinds = [1, 2, 3].map(|begin| store.keep(blocks(begin)));
        assert_eq!(store.take(kinds[1]), Some(blocks(2)));
        assert_eq!(store.keep(blocks(4)), kinds[1]);
        assert_eq!([0, 1, 2].map(|at| store.take(kinds[at])), [1, 4, 3].map(|begin| Some(blocks(begin))));
        assert_eq!(
            [SimPacketKind::DATA, SimPacketKind::PLAIN_ACK, SimPacketKind::NOTICE].map(|kind| store.take(kind)),
            [None; 3]
        );
        assert_eq!(size_of::<SimPacket>(), 32);
    }

    #[test]
    fn header_store__distinguishes_data_and_acknowledgements() {
        let (mut store, mut blocks) = (HeaderStore::default(), BlockStore::default());
        let [low, high] = [LoadCode::Low, LoadCode::High].map(CongestionHeader::Vcp);
        let data = store.keep(low);
        let held = blocks.keep([Block { begin: 1, end: 2 }; BLOCKS]);
        let acks = [store.keep_ack(high, SimPacketKind::PLAIN_ACK), store.keep_ack(high, held)];
        assert_eq!(
            [data, acks[0], acks[1], SimPacketKind::DATA].map(SimPacketKind::is_data),
            [true, false, false, true]
        );
        assert_eq!(store.get(SimPacketKind::PLAIN_ACK).or(store.get(held)).or(store.get(SimPacketKind::NOTICE)), None);
        *store.get_mut(data).unwrap() = high;
        assert_eq!((store.get(data), store.plain(acks[1])), (Some(&high), held));
        assert_eq!((store.take(data), store.take(acks[1])), ((Some(high), SimPacketKind::DATA), (Some(high), held)));
        assert_eq!(store.keep(low), data.max(SimPacketKind(HEADED + 2)));
        assert_eq!((store.take(SimPacketKind::DATA), blocks.take(acks[0])), ((None, SimPacketKind::DATA), None));
    }
}
