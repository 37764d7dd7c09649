//! A packet on its way: a small plain value. Payload bytes do not exist here, their number does.

use fairwave_units::Time;

/// A data packet or an acknowledgement, in half a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// Data: its number. Acknowledgement: the first number that the receiver still lacks.
    pub(crate) number: u64,
    /// Data: when it was sent. Acknowledgement: the same of the packet that it answers.
    pub(crate) stamp: Time,
    /// Index of its flow.
    pub(crate) flow: u32,
    /// Bytes on the wire.
    pub(crate) bytes: u32,
    /// Index of the stage of its way that comes next.
    pub(crate) stage: u32,
    pub(crate) kind: Kind,
}

/// What a packet is: data, an acknowledgement with or without blocks, or a message of the source to the sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind(u32);

impl Kind {
    pub(crate) const DATA: Self = Self(u32::MAX);
    /// An acknowledgement of all that was sent up to a number, and of nothing above.
    pub(crate) const PLAIN_ACK: Self = Self(u32::MAX - 1);
    /// A message of the source to the sink, without data.
    pub(crate) const NOTICE: Self = Self(u32::MAX - 2);

    #[inline]
    pub(crate) fn is_data(self) -> bool {
        self == Self::DATA
    }
}

/// Numbers from `begin` up to, not including, `end`; relative to an acknowledgement's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) begin: u32,
    pub(crate) end: u32,
}

/// Blocks in an acknowledgement (RFC 2018 s3: three beside a timestamp).
pub(crate) const BLOCKS: usize = 3;

/// What an acknowledgement says that the receiver holds above its number, newest first; empty blocks last.
pub(crate) type Blocks = [Block; BLOCKS];

/// The blocks of all acknowledgements under way. Few have any, so that they are not part of a packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockStore {
    blocks: Vec<Blocks>,
    /// Places that are free.
    free: Vec<u32>,
}

impl BlockStore {
    /// Keeps blocks until the acknowledgement of this kind arrives or is dropped.
    pub(crate) fn keep(&mut self, blocks: Blocks) -> Kind {
        if let Some(place) = self.free.pop() {
            self.blocks[place as usize] = blocks;
            return Kind(place);
        }
        self.blocks.push(blocks);
        let place = u32::try_from(self.blocks.len() - 1).ok().map(Kind);
        place.filter(|kind| *kind < Kind::NOTICE).expect("fewer than 2^32 acknowledgements are under way")
    }

    /// The blocks of a packet that is under way.
    pub(crate) fn get(&self, kind: Kind) -> Option<&Blocks> {
        // Data and plain acknowledgements have numbers that no place has.
        self.blocks.get(kind.0 as usize)
    }

    /// The blocks of a packet that arrives or is dropped; none for data.
    #[inline]
    pub(crate) fn take(&mut self, kind: Kind) -> Option<Blocks> {
        if kind >= Kind::NOTICE {
            return None;
        }
        self.free.push(kind.0);
        Some(self.blocks[kind.0 as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_store__gives_back_what_it_keeps_and_uses_places_again() {
        let mut store = BlockStore::default();
        let blocks = |begin| [Block { begin, end: begin + 1 }; BLOCKS];
        let kinds = [1, 2, 3].map(|begin| store.keep(blocks(begin)));
        assert_eq!(store.take(kinds[1]), Some(blocks(2)));
        assert_eq!(store.keep(blocks(4)), kinds[1]);
        assert_eq!([0, 1, 2].map(|at| store.take(kinds[at])), [1, 4, 3].map(|begin| Some(blocks(begin))));
        assert_eq!([Kind::DATA, Kind::PLAIN_ACK, Kind::NOTICE].map(|kind| store.take(kind)), [None; 3]);
        assert_eq!(size_of::<Packet>(), 32);
    }
}
