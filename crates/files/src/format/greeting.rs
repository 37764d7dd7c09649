//! The client's greeting: the purpose of its session.
//!
//! ```text
//! greeting = version (1), kind (1), more
//! more     = of a get: nothing, or flags (1): 1 does not enter other file systems, 2 lists what is left out, 4 obeys
//!            .gitignore files, 8 lists the attributes of an archive
//!            of a put: nothing, or flags (1): 1 compares hashes, 2 dry run, 4 keeps links, 8 a window follows: seconds (u32 BE,
//!            not 0), 16 makes nothing new, 32 keeps what is there, 64 keeps what is newer, 128 flags of the end follow
//!            of a bench: opaque bytes up to the end
//!            behind all of that: nothing, or flags (1): 1 keeps what is not shorter, 2 finds files under other names
//! flags of the end = flags (1): 1 deletes, at most as many as follow (u64 BE), 2 at the destination's top as well, 4 not
//!            in other file systems, 8 lists what was done with each file, 16 keeps what .gitignore files ignore, 32 an
//!            archive, 64 with the owners' numbers, 128 the names of backups follow: suffix and directory, each a
//!            length (1) and bytes
//! ```

use super::backup::Backup;
use super::keeps::Keeps;
use fairwave_host::{MAX_GREETING_BYTES, Purpose};
use fairwave_proto::codec::{Reader, Writer};

use super::error::{FormatError, VERSION};

/// The purpose of a client's session, sent in the encrypted part of the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Greeting<'a> {
    /// It receives files, listed in the manifest.
    Get(Walk),
    /// It gives files: their names are below the root of the share.
    Put(Look),
    /// It measures; the bytes are opaque to this crate.
    Bench(&'a [u8]),
}

/// Options of the listing for a get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "four options that do not depend on each other")]
pub(crate) struct Walk {
    /// Whether directories of other file systems than that of their root are left empty.
    pub(crate) stays_on_file_system: bool,
    /// Whether the list names what is left out: a taker that deletes keeps it.
    pub(crate) lists_left_out: bool,
    /// Whether entries that the `.gitignore` files of the tree ignore are left out.
    pub(crate) obeys_gitignore: bool,
    /// Whether the list has all attributes.
    pub(crate) lists_attributes: bool,
}

/// A copy with all attributes: rsync's `--archive`, with hard links, extended attributes and ACLs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Archive {
    /// Whether owners and groups keep their numbers; otherwise those of the same names are set, if there are any.
    pub numeric_ids: bool,
}

/// Deletions by a taker: of entries that the giver lacks, in the directories that it lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deletions {
    /// Max number.
    pub(crate) most: u64,
    /// Whether the destination itself is a listed directory.
    pub(crate) at_top: bool,
    /// Whether nothing is deleted in other file systems than that of the topmost listed directory.
    pub(crate) stays_on_file_system: bool,
    /// Whether nothing is deleted that the destination's `.gitignore` files ignore.
    pub(crate) keeps_ignored: bool,
}

/// Options of a taker's comparison with existing files, before any transfer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "options that do not depend on each other")]
pub(crate) struct Look {
    /// Whether files that seem complete, having the right size and time, are read and their hashes compared.
    pub(crate) does_check: bool,
    /// Whether nothing is written, and only counted what would move.
    pub(crate) is_dry: bool,
    /// Whether links whose targets lead out are kept as they are.
    pub(crate) keeps_links: bool,
    /// Times that differ by at most this many seconds are equal.
    pub(crate) modify_window_s: u32,
    pub(crate) keeps: Keeps,
    pub(crate) deletes: Option<Deletions>,
    /// Whether the results list what was done with each file; those of a dry run always do.
    pub(crate) lists_files: bool,
    /// Whether all attributes are copied.
    pub(crate) archive: Option<Archive>,
    /// How replaced and deleted files are kept, if they are.
    pub(crate) backup: Option<Backup>,
    /// Whether a new file is looked for under other names at the destination.
    pub(crate) is_fuzzy: bool,
}

const STAYS_ON_FILE_SYSTEM: u8 = 1;
const LISTS_LEFT_OUT: u8 = 2;
const OBEYS_GITIGNORE: u8 = 4;
const LISTS_ATTRIBUTES: u8 = 8;
const CHECKS: u8 = 1;
const IS_DRY: u8 = 2;
const KEEPS_LINKS: u8 = 4;
const HAS_WINDOW: u8 = 8;
const ONLY_EXISTING: u8 = 16;
const KEEPS_EXISTING: u8 = 32;
const KEEPS_NEWER: u8 = 64;
const HAS_END: u8 = 128;
const DELETES: u8 = 1;
const DELETES_AT_TOP: u8 = 2;
const DELETES_STAYING: u8 = 4;
const LISTS_FILES: u8 = 8;
const KEEPS_IGNORED: u8 = 16;
const ARCHIVES: u8 = 32;
const NUMERIC_IDS: u8 = 64;
const BACKS_UP: u8 = 128;
const KEEPS_NOT_SHORTER: u8 = 1;
const IS_FUZZY: u8 = 2;
const GET: u8 = Purpose::Get as u8;
const PUT: u8 = Purpose::Put as u8;
const BENCH: u8 = Purpose::Bench as u8;

impl<'a> Greeting<'a> {
    /// Reads what a client said.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new(bytes);
        let version = reader.u8("the greeting's version")?;
        if version != VERSION {
            return Err(FormatError::Version(version));
        }
        let greeting = match reader.u8("the greeting's kind")? {
            GET if reader.is_empty() => Self::Get(Walk::default()),
            GET => match reader.u8("the greeting's flags")? {
                flags @ 1..=15 => Self::Get(Walk {
                    stays_on_file_system: flags & STAYS_ON_FILE_SYSTEM != 0,
                    lists_left_out: flags & LISTS_LEFT_OUT != 0,
                    obeys_gitignore: flags & OBEYS_GITIGNORE != 0,
                    lists_attributes: flags & LISTS_ATTRIBUTES != 0,
                }),
                _ => return Err(FormatError::Range("the greeting's flags")),
            },
            PUT if reader.is_empty() => Self::Put(Look::default()),
            PUT => {
                let flags = reader.u8("the greeting's flags")?;
                {
                    let modify_window_s = match flags & HAS_WINDOW {
                        0 => 0,
                        _ => match reader.u32("the greeting's window")? {
                            0 => return Err(FormatError::Range("the greeting's window")),
                            window_s => window_s,
                        },
                    };
                    let end = if flags & HAS_END == 0 { End::default() } else { End::read(&mut reader)? };
                    let more = match reader.is_empty() {
                        true if flags == 0 => return Err(FormatError::Range("the greeting's flags")),
                        true => 0,
                        false => match reader.u8("the greeting's last flags")? {
                            more @ 1..=3 => more,
                            _ => return Err(FormatError::Range("the greeting's length")),
                        },
                    };
                    Self::Put(Look {
                        does_check: flags & CHECKS != 0,
                        is_dry: flags & IS_DRY != 0,
                        keeps_links: flags & KEEPS_LINKS != 0,
                        modify_window_s,
                        keeps: Keeps {
                            only_existing: flags & ONLY_EXISTING != 0,
                            existing: flags & KEEPS_EXISTING != 0,
                            newer: flags & KEEPS_NEWER != 0,
                            not_shorter: more & KEEPS_NOT_SHORTER != 0,
                        },
                        deletes: end.deletes,
                        lists_files: end.lists_files,
                        archive: end.archive,
                        backup: end.backup,
                        is_fuzzy: more & IS_FUZZY != 0,
                    })
                }
            }
            BENCH => return Ok(Self::Bench(reader.rest())),
            kind => return Err(FormatError::Kind { what: "greeting", kind }),
        };
        if reader.is_empty() { Ok(greeting) } else { Err(FormatError::Range("the greeting's length")) }
    }

    /// Encodes it: at most [`MAX_GREETING_BYTES`] if those of a bench are at most 510.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut said;
        let (kind, more): (u8, &[u8]) = match self {
            Self::Get(walk) if *walk == Walk::default() => (GET, &[]),
            &Self::Get(Walk { stays_on_file_system, lists_left_out, obeys_gitignore, lists_attributes }) => {
                said = vec![
                    (u8::from(stays_on_file_system) * STAYS_ON_FILE_SYSTEM)
                        | (u8::from(lists_left_out) * LISTS_LEFT_OUT)
                        | (u8::from(obeys_gitignore) * OBEYS_GITIGNORE)
                        | (u8::from(lists_attributes) * LISTS_ATTRIBUTES),
                ];
                (GET, &said)
            }
            Self::Put(look) if *look == Look::default() => (PUT, &[]),
            Self::Put(look) => {
                let &Look {
                    does_check,
                    is_dry,
                    keeps_links,
                    modify_window_s,
                    keeps,
                    deletes,
                    lists_files,
                    archive,
                    ..
                } = look;
                let end = End { deletes, lists_files, archive, backup: look.backup.clone() };
                let has_window = modify_window_s > 0;
                said = vec![
                    (u8::from(does_check) * CHECKS)
                        | (u8::from(is_dry) * IS_DRY)
                        | (u8::from(keeps_links) * KEEPS_LINKS)
                        | (u8::from(has_window) * HAS_WINDOW)
                        | (u8::from(keeps.only_existing) * ONLY_EXISTING)
                        | (u8::from(keeps.existing) * KEEPS_EXISTING)
                        | (u8::from(keeps.newer) * KEEPS_NEWER)
                        | (u8::from(end != End::default()) * HAS_END),
                ];
                if has_window {
                    said.extend(modify_window_s.to_be_bytes());
                }
                if end != End::default() {
                    said.extend(end.to_bytes());
                }
                let more = (u8::from(keeps.not_shorter) * KEEPS_NOT_SHORTER) | (u8::from(look.is_fuzzy) * IS_FUZZY);
                if more > 0 {
                    said.push(more);
                }
                (PUT, &said)
            }
            Self::Bench(more) => (BENCH, more),
        };
        let bytes = [&[VERSION, kind], more].concat();
        debug_assert!(bytes.len() <= MAX_GREETING_BYTES, "a bench says at most 510 bytes");
        bytes
    }
}

/// The options of a put behind its first flags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct End {
    deletes: Option<Deletions>,
    lists_files: bool,
    archive: Option<Archive>,
    backup: Option<Backup>,
}

impl End {
    fn read(reader: &mut Reader<'_>) -> Result<Self, FormatError> {
        const FLAGS: &str = "the flags of the end";
        let flags = reader.u8(FLAGS)?;
        let has = |flag| flags & flag != 0;
        let of_deletions = DELETES_AT_TOP | DELETES_STAYING | KEEPS_IGNORED;
        if flags == 0 || (!has(DELETES) && has(of_deletions)) || (!has(ARCHIVES) && has(NUMERIC_IDS)) {
            return Err(FormatError::Range(FLAGS));
        }
        let most = if has(DELETES) { Some(reader.u64("the most deletions")?) } else { None };
        let (at_top, stays_on_file_system) = (has(DELETES_AT_TOP), has(DELETES_STAYING));
        let keeps_ignored = has(KEEPS_IGNORED);
        Ok(Self {
            deletes: most.map(|most| Deletions { most, at_top, stays_on_file_system, keeps_ignored }),
            lists_files: has(LISTS_FILES),
            archive: has(ARCHIVES).then_some(Archive { numeric_ids: has(NUMERIC_IDS) }),
            backup: if has(BACKS_UP) { Some(Backup::read(reader)?) } else { None },
        })
    }

    fn to_bytes(&self) -> Vec<u8> {
        let deletions = self.deletes.map_or(0, |deletions| {
            let at_top = u8::from(deletions.at_top) * DELETES_AT_TOP;
            let staying = u8::from(deletions.stays_on_file_system) * DELETES_STAYING;
            DELETES | at_top | staying | (u8::from(deletions.keeps_ignored) * KEEPS_IGNORED)
        });
        let archive = self.archive.map_or(0, |archive| ARCHIVES | (u8::from(archive.numeric_ids) * NUMERIC_IDS));
        let backs_up = u8::from(self.backup.is_some()) * BACKS_UP;
        let mut bytes = vec![deletions | (u8::from(self.lists_files) * LISTS_FILES) | archive | backs_up];
        bytes.extend(self.deletes.iter().flat_map(|deletions| deletions.most.to_be_bytes()));
        if let Some(backup) = &self.backup {
            let mut room = [0; MAX_GREETING_BYTES];
            let mut writer = Writer::new(&mut room);
            let written = backup.write(&mut writer);
            debug_assert!(written.is_ok(), "its texts have at most 64 and 255 bytes");
            let used = writer.used();
            bytes.extend(room.get(..used).unwrap_or_default());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greeting__is_read_as_it_was_written() {
        let gets = (0..16).map(|flags| {
            let [stays_on_file_system, lists_left_out, obeys_gitignore, lists_attributes] =
                [1, 2, 4, 8].map(|flag| flags & flag != 0);
            Greeting::Get(Walk { stays_on_file_system, lists_left_out, obeys_gitignore, lists_attributes })
        });
        for greeting in gets.chain([Greeting::Bench(b""), Greeting::Bench(&[9; 510])]) {
            assert_eq!(Greeting::read(&greeting.to_bytes()), Ok(greeting));
        }
        for flags in 0..3 * 3 * 8 * 64 {
            let is_set = [1, 2, 4, 8, 16, 32].map(|flag| flags & flag != 0);
            let [does_check, is_dry, keeps_links, only_existing, existing, newer] = is_set;
            let modify_window_s = [0, 1, u32::MAX][(flags >> 9) % 3];
            let archive = [None, Some(false), Some(true)][(flags >> 9) / 3].map(|numeric_ids| Archive { numeric_ids });
            let [is_some, at_top, lists_files] = [64, 128, 256].map(|flag| flags & flag != 0);
            let (stays_on_file_system, keeps_ignored) = (does_check, is_dry);
            let most = u64::MAX - flags as u64;
            let deletions = Deletions { most, at_top, stays_on_file_system, keeps_ignored };
            let deletes = is_some.then_some(deletions);
            let (not_shorter, is_fuzzy) = (is_dry && at_top, does_check && at_top);
            let keeps = Keeps { only_existing, existing, newer, not_shorter };
            let directory = is_dry.then_some(std::path::Path::new("old/x"));
            let backup = lists_files.then(|| Backup::new("~".as_ref(), directory).unwrap());
            let look = Look {
                does_check,
                is_dry,
                keeps_links,
                modify_window_s,
                keeps,
                deletes,
                lists_files,
                archive,
                backup,
                is_fuzzy,
            };
            let greeting = Greeting::Put(look);
            assert_eq!(Greeting::read(&greeting.to_bytes()), Ok(greeting));
        }
    }

    #[test]
    fn greeting__of_another_version_is_named() {
        assert_eq!(Greeting::read(&[2, 1]), Err(FormatError::Version(2)));
        assert_eq!(Greeting::read(&[1, 9]), Err(FormatError::Kind { what: "greeting", kind: 9 }));
        assert_eq!(Greeting::read(&[1]), Err(FormatError::Short("the greeting's kind")));
        assert_eq!(Greeting::read(&[1, PUT, 8]), Err(FormatError::Short("the greeting's window")));
        assert_eq!(Greeting::read(&[1, PUT, 8, 0, 0, 0, 0]), Err(FormatError::Range("the greeting's window")));
        assert_eq!(Greeting::read(&[1, PUT, 0]), Err(FormatError::Range("the greeting's flags")));
        assert_eq!(Greeting::read(&[1, PUT, 128]), Err(FormatError::Short("the flags of the end")));
        assert_eq!(Greeting::read(&[1, PUT, 128, 1]), Err(FormatError::Short("the most deletions")));
        let names = "the names of backups";
        assert_eq!(Greeting::read(&[1, PUT, 128, 128, 0, 0]), Err(FormatError::Range(names)));
        for flags in [0, 2, 4, 16, 64] {
            assert_eq!(Greeting::read(&[1, PUT, 128, flags]), Err(FormatError::Range("the flags of the end")));
        }
        assert_eq!(Greeting::read(&[1, PUT, 1, 0]), Err(FormatError::Range("the greeting's length")));
        for flags in [0, 16, 255] {
            assert_eq!(Greeting::read(&[1, GET, flags]), Err(FormatError::Range("the greeting's flags")));
        }
        assert_eq!(Greeting::read(&[1, GET, 1, 0]), Err(FormatError::Range("the greeting's length")));
        assert_eq!(Greeting::read(&[]), Err(FormatError::Short("the greeting's version")));
    }

    #[test]
    fn greeting__of_anything() {
        bolero::check!().with_iterations(2000).with_max_len(MAX_GREETING_BYTES).for_each(|bytes: &[u8]| {
            if let Ok(greeting) = Greeting::read(bytes) {
                assert_eq!(greeting.to_bytes(), bytes);
            }
        });
    }
}
