//! What a transfer leaves as it is at the destination.

/// Which files and links a transfer leaves as they are, by what is at their places. The default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keeps {
    /// Nothing is made that is not there, directories included: rsync's `--existing`.
    pub only_existing: bool,
    /// What is there stays: rsync's `--ignore-existing`.
    pub existing: bool,
    /// A file whose time is later than that of its source stays: rsync's `--update`.
    pub newer: bool,
}
