//! What a process knows beside its sessions.

use fairwave_units::Rate;

/// What a process knows of all its sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Here {
    /// Its capacity, where that is known: an end node then grants its sessions rates.
    pub capacity: Option<Rate>,
}
