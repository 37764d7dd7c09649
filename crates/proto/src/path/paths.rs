//! All shared paths of a host.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use fairwave_units::{Bytes, Duration, Time};

use super::controller::PathControl;
use super::shared::{PathBegin, SharedPath};

/// The paths on which this host sends, one for each address of another host: sessions to several ports of it share one,
/// whatever listens there. Hosts behind one address (NAT) share its path, as they share the network in front of it.
///
/// A path is there for as long as it has sessions.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    control: PathControl,
    /// Of the next path.
    seed: u64,
    by_address: BTreeMap<IpAddr, PathId>,
    places: Vec<Option<SharedPath>>,
    free: Vec<PathId>,
}

/// A path of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathId(u32);

impl Paths {
    /// Without paths; what they leave to chance starts with this.
    pub(crate) fn new(control: PathControl, seed: u64) -> Self {
        Self { control, seed, ..Self::default() }
    }

    /// The session in a slot sends to this address, whose round-trip time is about that if it is known, packets of so
    /// many bytes: its path.
    pub(crate) fn join(
        &mut self,
        now: Time,
        to: SocketAddr,
        slot: u32,
        rtt: Option<Duration>,
        packet: Bytes,
    ) -> PathId {
        let address = to.ip().to_canonical();
        let id = self.by_address.get(&address).copied().unwrap_or_else(|| {
            let id = self.free.pop().unwrap_or_else(|| {
                self.places.push(None);
                PathId((self.places.len() - 1) as u32)
            });
            self.seed = self.seed.wrapping_add(1 << 32);
            let begin = PathBegin { control: self.control, seed: self.seed, rtt, packet };
            self.places[id.0 as usize] = Some(SharedPath::new(now, address, begin));
            self.by_address.insert(address, id);
            id
        });
        if let Some(path) = self.get_mut(id) {
            path.join(slot);
        }
        id
    }

    /// The session in a slot leaves its path, with `in_flight` bytes of packets whose fate it will not learn.
    pub(crate) fn leave(&mut self, id: PathId, slot: u32, in_flight: Bytes) {
        let Some(place) = self.places.get_mut(id.0 as usize) else { return };
        let Some(path) = place else { return };
        path.leave(slot, in_flight);
        if path.members().next().is_none() {
            self.by_address.remove(&path.address());
            *place = None;
            self.free.push(id);
        }
    }

    /// Whether a session at this address would be on this path.
    pub(crate) fn leads_to(&self, id: PathId, to: SocketAddr) -> bool {
        self.by_address.get(&to.ip().to_canonical()) == Some(&id)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: PathId) -> Option<&mut SharedPath> {
        self.places.get_mut(id.0 as usize)?.as_mut()
    }
}
