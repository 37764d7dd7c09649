//! The sessions of a core, by name.

use crate::codec::SessionId;

/// What a core keeps of each session. A session's name says where, so that no packet needs a search, and holds enough that
/// cannot be guessed to tell it from the one that had the place before.
#[derive(Clone, Debug)]
pub(crate) struct Slots<T> {
    entries: Vec<Option<(SessionId, T)>>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

/// Sessions of a host at the most.
pub const MOST_SESSIONS: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 16;

/// The name of a session in a slot, with random bits.
pub(crate) fn name(slot: u32, chance: u64) -> SessionId {
    SessionId(chance << SLOT_BITS | u64::from(slot))
}

/// Where a session is.
pub(crate) fn slot(session: SessionId) -> u32 {
    (session.0 & (MOST_SESSIONS as u64 - 1)) as u32
}

impl<T> Slots<T> {
    /// Puts a session into its slot.
    pub(crate) fn insert(&mut self, session: SessionId, value: T) {
        let index = slot(session) as usize;
        if index >= self.entries.len() {
            self.entries.resize_with(index + 1, || None);
        }
        self.entries[index] = Some((session, value));
    }

    pub(crate) fn remove(&mut self, session: SessionId) -> Option<T> {
        let entry = self.entries.get_mut(slot(session) as usize)?;
        entry.take_if(|(name, _)| *name == session).map(|(_, value)| value)
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
        self.entries.iter_mut().flatten().map(|(name, value)| (*name, value))
    }

    /// The first slot that is free, if there is one.
    pub(crate) fn free(&self) -> Option<u32> {
        let free = self.entries.iter().position(Option::is_none).unwrap_or(self.entries.len());
        (free < MOST_SESSIONS).then_some(free as u32)
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
        assert_eq!((slots.free(), slots.get(old), slots.get(new)), (Some(0), Some(&"old"), None));
        assert_eq!((slots.remove(new), slots.remove(old)), (None, Some("old")));
        slots.insert(new, "new");
        assert_eq!((slots.get(old), slots.get(new), slot(new)), (None, Some(&"new"), 3));
        assert_eq!(slots.at_mut(3), Some((new, &mut "new")));
    }
}
