//! Contents of packets in flight, stored apart from them.

use crate::gtp::parcel::Parcels;
use crate::packet::{BlockStore, HeaderStore, SimPacket};

/// The stores of all contents.
#[derive(Default)]
pub(crate) struct Contents {
    pub(crate) blocks: BlockStore,
    pub(crate) headers: HeaderStore,
    pub(crate) parcels: Parcels,
}

impl Contents {
    /// A copy of a packet, with its own header and blocks.
    pub(crate) fn copy(&mut self, packet: SimPacket) -> SimPacket {
        let header = self.headers.get(packet.kind).copied();
        let plain = self.headers.plain(packet.kind);
        let plain = self.blocks.get(plain).copied().map_or(plain, |blocks| self.blocks.keep(blocks));
        let kind = match header {
            None => plain,
            Some(header) if packet.kind.is_data() => self.headers.keep(header),
            Some(header) => self.headers.keep_ack(header, plain),
        };
        SimPacket { kind, ..packet }
    }

    /// Frees what a dropped packet carried.
    #[inline]
    pub(crate) fn free(&mut self, packet: SimPacket, is_between_hosts: bool) {
        let (_, plain) = self.headers.take(packet.kind);
        self.blocks.take(plain);
        if is_between_hosts {
            self.parcels.take(packet.number);
        }
    }
}
