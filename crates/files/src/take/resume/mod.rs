//! Leftovers of an earlier transfer: temporaries, the journal, and the keys that name both.

pub(crate) mod homes;
pub(crate) mod journal;
pub(crate) mod kept_key;
pub(crate) mod kept_time;
pub(crate) mod key;
pub(crate) mod takers;
pub(crate) mod temps;
pub(crate) mod top_note;
pub(crate) mod unfinished;
pub(crate) mod verified;
