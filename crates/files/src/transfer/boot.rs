//! Names of a host's start and of the directories that it sees.

use std::sync::LazyLock;

use rustix::fs::Stat;

use crate::format::manifest::DirectoryId;

/// A start of the host.
pub(crate) type BootId = [u8; 16];

/// The running system's; a random one if the system does not report it.
pub(crate) fn boot_id() -> BootId {
    static BOOT: LazyLock<BootId> = LazyLock::new(read);
    *BOOT
}

fn read() -> BootId {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.trim().chars().filter(|character| *character != '-').collect();
    let id = data_encoding::HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok().and_then(|id| id.try_into().ok());
    id.unwrap_or_else(|| {
        let mut id = [0; 16];
        // Without randomness either, all zeros: no boot id of a system is that, so that it is another one.
        let _ = getrandom::fill(&mut id);
        id
    })
}

/// Names a directory for both ends of a transfer: equal only if they run on one machine and it is one directory. Without
/// the boot id, which the machine's own processes can read, it reveals nothing.
pub(crate) fn directory_id(stat: &Stat) -> DirectoryId {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&boot_id()).update(&stat.st_dev.to_le_bytes()).update(&stat.st_ino.to_le_bytes());
    let mut id = [0; 8];
    hasher.finalize_xof().fill(&mut id);
    DirectoryId(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read__is_the_same_until_the_next_boot() {
        assert_eq!(read(), read());
    }

    #[test]
    fn directory_id__is_one_directory_s_whatever_its_path() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("other")).unwrap();
        std::os::unix::fs::symlink(".", place.path().join("link")).unwrap();
        let [own, by_link, other] =
            ["", "link", "other"].map(|path| directory_id(&rustix::fs::stat(place.path().join(path)).unwrap()));
        assert_eq!(own, by_link);
        assert_ne!(own, other);
    }
}
