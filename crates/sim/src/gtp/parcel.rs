//! Contents of GTP's packets in flight, stored outside the simulator's own packets.

use fairwave_proto::Packet;

/// The contents of a packet.
#[derive(Debug)]
pub(crate) enum GtpParcel {
    /// A value of the protocol core.
    Value(Packet),
    /// The datagram, from its header to its seal.
    Bytes(Vec<u8>),
}

/// The contents of all packets in flight. Freed slots are reused.
#[derive(Debug, Default)]
pub(crate) struct Parcels {
    /// Each with the number that a trace shows.
    slots: Vec<(u64, Option<GtpParcel>)>,
    free: Vec<u32>,
    /// Buffers of datagrams that have arrived, for reuse.
    spare: Vec<Vec<u8>>,
}

/// Maximum buffers kept for reuse.
const MAX_SPARE: usize = 64;

impl Parcels {
    /// Stores contents until their packet arrives or is dropped, and returns their slot.
    #[inline]
    pub(crate) fn keep(&mut self, number: u64, parcel: GtpParcel) -> u64 {
        if let Some(place) = self.free.pop() {
            self.slots[place as usize] = (number, Some(parcel));
            return u64::from(place);
        }
        self.slots.push((number, Some(parcel)));
        self.slots.len() as u64 - 1
    }

    /// The contents of a packet that arrives or is dropped.
    #[inline]
    pub(crate) fn take(&mut self, place: u64) -> GtpParcel {
        let parcel = self.slots[place as usize].1.take().expect("a packet arrives or is dropped once");
        self.free.push(u32::try_from(place).expect("fewer than 2^32 packets are under way"));
        parcel
    }

    /// The number of a packet in flight.
    pub(crate) fn number(&self, place: u64) -> u64 {
        self.slots[place as usize].0
    }

    /// An empty buffer for a datagram.
    pub(crate) fn room(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes back a buffer, whose contents are not needed any more.
    pub(crate) fn reuse(&mut self, mut room: Vec<u8>) {
        room.clear();
        if self.spare.len() < MAX_SPARE {
            self.spare.push(room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room__is_empty_after_reuse() {
        let mut parcels = Parcels::default();
        parcels.reuse(vec![7; 100]);
        let room = parcels.room();
        assert!(room.is_empty() && room.capacity() >= 100);
    }
}
