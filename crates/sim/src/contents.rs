//! What packets in flight carry, stored apart from them.

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
