//! Rules for what a transfer leaves unchanged at the destination.

/// Files and links that a transfer leaves unchanged, depending on existing entries. The default keeps nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "options that do not depend on each other")]
pub struct Keeps {
    /// No entries are created, directories included: rsync's `--existing`.
    pub only_existing: bool,
    /// Existing entries stay: rsync's `--ignore-existing`.
    pub existing: bool,
    /// A file that is newer than its source stays: rsync's `--update`.
    pub newer: bool,
    /// A file that is not shorter than its source stays: rsync's `--append`.
    pub not_shorter: bool,
}
