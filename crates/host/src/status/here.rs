//! Facts of a process other than its sessions.

use fairwave_units::Rate;

/// Facts of a process that apply to all its sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Here {
    /// Its capacity, where that is known: an end node then grants its sessions rates.
    pub capacity: Option<Rate>,
}
