//! A packet on its way: a small plain value. Payload bytes do not exist here, their number does.

use fairwave_units::Time;

/// A data packet or an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// Index of its flow.
    pub(crate) flow: u32,
    /// Bytes on the wire.
    pub(crate) bytes: u32,
    /// Links that it has crossed.
    pub(crate) hop: u16,
    pub(crate) kind: Kind,
    /// Data: its number. Acknowledgement: the first number that the receiver still lacks.
    pub(crate) number: u64,
    /// Data: when it was sent. Acknowledgement: the same of the packet that it answers.
    pub(crate) stamp: Time,
    /// Acknowledgement: blocks that the receiver holds above `number`, newest first, relative to it; empty blocks last.
    pub(crate) blocks: [Block; BLOCKS],
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Data,
    Ack,
}

/// Numbers from `begin` up to, not including, `end`; relative to an acknowledgement's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) begin: u32,
    pub(crate) end: u32,
}

/// Blocks in an acknowledgement (RFC 2018 s3: three beside a timestamp).
pub(crate) const BLOCKS: usize = 3;
