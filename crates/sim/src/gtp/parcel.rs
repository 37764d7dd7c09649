//! What is in GTP's packets under way, which the simulator's own packets have no room for.

use fairwave_proto::Packet;

/// The contents of a packet.
#[derive(Debug)]
pub(crate) enum GtpParcel {
    /// As the cores give it.
    Value(Packet),
    /// As it would travel, from its header to its seal.
    Bytes(Vec<u8>),
}

/// The contents of all packets under way. What is taken out leaves its place to the next.
#[derive(Debug, Default)]
pub(crate) struct Parcels {
    /// With the number that a trace shows.
    slots: Vec<(u64, Option<GtpParcel>)>,
    free: Vec<u32>,
    /// Room of datagrams that have arrived, for the next.
    spare: Vec<Vec<u8>>,
}

/// So many are kept.
const MOST_SPARE: usize = 64;

impl Parcels {
    /// Keeps contents until their packet arrives or is dropped: their place.
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

    /// The number of a packet under way.
    pub(crate) fn number(&self, place: u64) -> u64 {
        self.slots[place as usize].0
    }

    /// Empty room for a datagram.
    pub(crate) fn room(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Gives room back. What is in it is of no use any more.
    pub(crate) fn reuse(&mut self, mut room: Vec<u8>) {
        room.clear();
        if self.spare.len() < MOST_SPARE {
            self.spare.push(room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room__is_empty_whoever_had_it() {
        let mut parcels = Parcels::default();
        parcels.reuse(vec![7; 100]);
        let room = parcels.room();
        assert!(room.is_empty() && room.capacity() >= 100);
    }
}
