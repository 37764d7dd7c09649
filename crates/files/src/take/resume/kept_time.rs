//! Whether a file has a listed time, as far as its file system keeps times.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags, fstat, futimens, openat, unlinkat};

use crate::format::manifest::Meta;
use crate::take::disk::tree::{There, times};

/// Common time resolutions of file systems and tools, in nanoseconds: NTFS and SMB keep 100 ns, databases 1 us and 1
/// ms, exFAT 10 ms, ext3 and HFS+ 1 s. A file whose time is the listed one rounded down to one of them was copied from
/// there.
const COMMON_NS: [i128; 5] = [100, 1_000, 1_000_000, 10_000_000, 1_000_000_000];
/// FAT keeps 2 s. Most seconds are whole for other reasons, so the file system is asked.
const RARE_NS: i128 = 2_000_000_000;
/// A time that each of these cuts to another one: an odd second, and nanoseconds of no form.
const PROBE: Meta = Meta { mode: 0, mtime_s: 1_700_000_001, mtime_ns: 987_654_321 };

/// Finds out which times the file systems of a destination keep.
#[derive(Debug)]
pub(crate) struct TimeProbe {
    /// The name of a file that is made for it.
    name: Vec<u8>,
    /// By device: what it cuts times to.
    known: HashMap<u64, i128>,
}

/// Whether a time is the listed one, or that rounded down to a common resolution; differences of up to `window_s`
/// seconds do not matter.
pub(crate) fn is_same_time(there: Meta, listed: Meta, window_s: u32) -> bool {
    let (there, listed) = (ns(there), ns(listed));
    let is_near = (there - listed).abs() <= i128::from(window_s) * 1_000_000_000;
    is_near || COMMON_NS.iter().any(|unit| there == cut(listed, *unit))
}

impl TimeProbe {
    /// Files of this name may be made and removed.
    pub(crate) fn new(name: Vec<u8>) -> Self {
        Self { name, known: HashMap::new() }
    }

    /// Whether the existing entry, in an open directory, has the listed time at its file system's resolution.
    pub(crate) fn is_kept(&mut self, directory: &OwnedFd, there: &There, listed: Meta) -> bool {
        if ns(there.meta) != cut(ns(listed), RARE_NS) {
            return false;
        }
        let unit = *self.known.entry(there.id.0).or_insert_with(|| unit_of(directory, &self.name).unwrap_or(1));
        ns(there.meta) == cut(ns(listed), unit)
    }
}

/// Time resolution of the file system of a directory, nanoseconds.
fn unit_of(directory: &OwnedFd, name: &[u8]) -> rustix::io::Result<i128> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let _ = unlinkat(directory, name, AtFlags::empty());
    let file = openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?;
    let kept = futimens(&file, &times(PROBE)).and_then(|()| fstat(&file));
    drop(file);
    let _ = unlinkat(directory, name, AtFlags::empty());
    Ok(unit_from(There::new(&kept?).meta))
}

/// The resolution that rounds the probe to this time.
fn unit_from(kept: Meta) -> i128 {
    let units = COMMON_NS.into_iter().chain([RARE_NS]);
    units.into_iter().find(|unit| ns(kept) == cut(ns(PROBE), *unit)).unwrap_or(1)
}

fn cut(ns: i128, unit: i128) -> i128 {
    ns - ns.rem_euclid(unit)
}

/// Since 1970.
fn ns(meta: Meta) -> i128 {
    i128::from(meta.mtime_s) * 1_000_000_000 + i128::from(meta.mtime_ns)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn at(mtime_s: i64, mtime_ns: u32) -> Meta {
        Meta { mode: 0, mtime_s, mtime_ns }
    }

    #[test]
    fn is_same_time__of_what_is_left_of_the_listed_one() {
        let listed = at(1001, 123_456_789);
        for ns in [123_456_789, 123_456_700, 123_456_000, 123_000_000, 120_000_000, 0] {
            assert!(is_same_time(at(1001, ns), listed, 0), "{ns}");
        }
        for (s, ns) in [(1001, 123_456_788), (1001, 123_456_790), (1001, 100_000_000), (1000, 0), (1002, 0)] {
            assert!(!is_same_time(at(s, ns), listed, 0), "{s} {ns}");
        }
        // A listed time of lower resolution than the destination's is equal.
        assert!(!is_same_time(listed, at(1001, 0), 0));
        // Times before 1970 are rounded towards the past as well.
        assert!(is_same_time(at(-6, 0), at(-6, 5), 0) && !is_same_time(at(-5, 0), at(-6, 5), 0));
    }

    #[test]
    fn is_same_time__within_the_window() {
        for (window_s, is_same) in [(0, false), (1, false), (2, true), (3600, true)] {
            assert_eq!(is_same_time(at(1000, 0), at(1002, 0), window_s), is_same, "{window_s}");
            assert_eq!(is_same_time(at(1002, 0), at(1000, 0), window_s), is_same, "{window_s}");
        }
    }

    #[test]
    fn unit_from__tells_each_unit_from_the_others() {
        for unit in COMMON_NS.into_iter().chain([1, RARE_NS]) {
            let kept = cut(ns(PROBE), unit);
            let kept = at((kept / 1_000_000_000) as i64, (kept % 1_000_000_000) as u32);
            assert_eq!(unit_from(kept), unit);
        }
    }

    #[test]
    fn is_kept__two_seconds_count_only_where_the_file_system_cuts_to_them() {
        let place = tempfile::tempdir().unwrap();
        let directory = OwnedFd::from(File::open(place.path()).unwrap());
        let mut probe = TimeProbe::new(b".probe".to_vec());
        let there = There { meta: at(1000, 0), ..There::new(&fstat(&directory).unwrap()) };
        let unit = unit_of(&directory, b".probe").unwrap();
        assert_eq!(probe.is_kept(&directory, &there, at(1001, 5)), unit == RARE_NS);
        assert!(!probe.is_kept(&directory, &there, at(1002, 0)));
        // As on FAT.
        probe.known.insert(there.id.0, RARE_NS);
        assert!(probe.is_kept(&directory, &there, at(1001, 5)));
        assert!(!probe.is_kept(&directory, &there, at(999, 5)));
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
