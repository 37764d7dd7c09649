//! Permissions of a share's visitors.

use std::ffi::OsString;
use std::path::PathBuf;

use fairwave_proto::Terms;
use fairwave_units::{Bytes, Rate};

use crate::take::disk::durable::Durable;

/// Options of a share.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "four facts that do not depend on each other")]
pub struct ShareOptions {
    /// The directory that visitors may put files into, created if it does not exist. `None` allows no puts.
    pub writable_into: Option<PathBuf>,
    /// Whether that is all that they may: what lies at the share's paths is not given.
    pub only_takes: bool,
    /// Whether links that lead out of that directory are kept unchanged if the visitor requests it; else they fail.
    pub may_keep_links: bool,
    /// Whether entries that the source lacks are deleted from the directories that are put if the visitor requests it;
    /// else such a put is refused.
    pub may_delete: bool,
    /// Whether owners, set-user-ID bits, extended attributes and devices are set as the visitor requests; else such a put
    /// is refused.
    pub may_archive: bool,
    /// The name of a put file or tree there, if it is to be renamed.
    pub rename: Option<OsString>,
    /// Whether an unfinished put of the same, in the directory around that one and with its name for
    /// [`ShareOptions::rename`], is resumed: it made the directory itself.
    pub continues_rename: bool,
    /// Durability of put files.
    pub durable: Durable,
    /// Max bytes on the disk of everything below that directory: puts beyond it fail.
    pub quota: Option<Bytes>,
    /// Whether only dry runs are allowed: nothing is written, and no directory is created.
    pub is_dry: bool,
    /// Whether that directory may be one below which this host keeps its keys: where none but its own user puts files.
    pub may_hold_keys: bool,
    /// Each session sends no faster than this.
    pub limit: Option<Rate>,
    /// Options of its sessions at this end node.
    pub session: Terms,
}
