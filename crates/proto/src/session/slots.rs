//! The sessions of a core, by name.

use crate::wire::codec::SessionId;

/// State that a core keeps of each session. A session's name contains its slot, so that no packet needs a search, and
/// enough unguessable bits to distinguish it from the slot's previous session.
#[derive(Clone, Debug)]
pub(crate) struct Slots<T> {
    entries: Vec<Option<(SessionId, T)>>,
    /// Number of slots in use: if zero, there is nothing to look through.
    taken: usize,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), taken: 0 }
    }
}

/// Max number of sessions of a host.
pub const MAX_SESSIONS: usize = 1 << SLOT_BITS;
/// Bits of a name that number its slot; the other 48 are random.
const SLOT_BITS: u32 = 16;

/// The name of a session in a slot, with random bits.
fn name(slot: u32, chance: u64) -> SessionId {
    SessionId(chance << SLOT_BITS | u64::from(slot))
}

/// The slot of a session: no two sessions of a host have the same at a time, and it is below `MAX_SESSIONS`.
pub fn slot(session: SessionId) -> u32 {
    (session.0 & (MAX_SESSIONS as u64 - 1)) as u32
}

impl<T> Slots<T> {
    /// Puts a session into its slot.
    pub(crate) fn insert(&mut self, session: SessionId, value: T) {
        let index = slot(session) as usize;
        if index >= self.entries.len() {
            self.entries.resize_with(index + 1, || None);
        }
        let before = self.entries[index].replace((session, value));
        self.taken += usize::from(before.is_none());
    }

    pub(crate) fn remove(&mut self, session: SessionId) -> Option<T> {
        let entry = self.entries.get_mut(slot(session) as usize)?;
        let (_, value) = entry.take_if(|(name, _)| *name == session)?;
        self.taken -= 1;
        Some(value)
    }

    #[inline]
    pub(crate) fn get(&self, session: SessionId) -> Option<&T> {
        match self.entries.get(slot(session) as usize)? {
            Some((name, value)) if *name == session => Some(value),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, session: SessionId) -> Option<&mut T> {
        match self.entries.get_mut(slot(session) as usize)? {
            Some((name, value)) if *name == session => Some(value),
            _ => None,
        }
    }

    /// The session in a slot.
    #[inline]
    pub(crate) fn at_mut(&mut self, slot: u32) -> Option<(SessionId, &mut T)> {
        self.entries.get_mut(slot as usize)?.as_mut().map(|(name, value)| (*name, value))
    }

    /// In the order of their slots.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (SessionId, &mut T)> {
        let places = if self.taken == 0 { 0 } else { self.entries.len() };
        self.entries.iter_mut().take(places).flatten().map(|(name, value)| (*name, value))
    }

    /// In the order of their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SessionId, &T)> {
        let places = if self.taken == 0 { 0 } else { self.entries.len() };
        self.entries.iter().take(places).flatten().map(|(name, value)| (*name, value))
    }
}

/// The names that a host gives to its sessions.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionNames {
    /// Slots that were used, and are free.
    free: Vec<u32>,
    used: u32,
}

impl SessionNames {
    /// A name with these random bits, if there is room for one more session.
    pub(crate) fn take(&mut self, chance: u64) -> Option<SessionId> {
        let slot = self.free.pop().or_else(|| {
            let slot = Some(self.used).filter(|slot| (*slot as usize) < MAX_SESSIONS)?;
            self.used += 1;
            Some(slot)
        })?;
        Some(name(slot, chance))
    }

    /// A session is over, or did not come to be.
    pub(crate) fn give_back(&mut self, session: SessionId) {
        debug_assert!(!self.free.contains(&slot(session)), "a name is given back once");
        self.free.push(slot(session));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots__know_who_was_there_before() {
        let mut slots = Slots::default();
        let [old, new] = [5, 6].map(|chance| name(3, chance));
        slots.insert(old, "old");
        assert_eq!((slots.get(old), slots.get(new)), (Some(&"old"), None));
        assert_eq!((slots.remove(new), slots.remove(old)), (None, Some("old")));
        slots.insert(new, "new");
        assert_eq!((slots.get(old), slots.get(new), slot(new)), (None, Some(&"new"), 3));
        assert_eq!(slots.at_mut(3), Some((new, &mut "new")));
        assert_eq!(slots.iter().collect::<Vec<_>>(), [(new, &"new")]);
        slots.insert(new, "newer");
        assert_eq!(slots.remove(new), Some("newer"));
        assert_eq!(slots.iter().count() + slots.iter_mut().count(), 0);
    }

    #[test]
    fn names__are_taken_and_given_back() {
        let mut names = SessionNames::default();
        let first: Vec<_> = (0..MAX_SESSIONS as u64).filter_map(|chance| names.take(chance)).collect();
        assert_eq!((first.len(), names.take(1)), (MAX_SESSIONS, None));
        names.give_back(first[7]);
        assert_eq!(names.take(9), Some(name(7, 9)));
    }
}
