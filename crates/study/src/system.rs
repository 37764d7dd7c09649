//! Functions for open files whose names differ between systems.

use std::fs::{File, symlink_metadata};
use std::io;
use std::path::Path;

/// Whether `path` names this open file, and not another one or none.
#[cfg(unix)]
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    symlink_metadata(path)
        .is_ok_and(|there| file.metadata().is_ok_and(|mine| (mine.ino(), mine.dev()) == (there.ino(), there.dev())))
}

/// Whether `path` names this open file, and not another one or none: the library has no file index, but the time of
/// creation, in steps of 100 ns.
#[cfg(windows)]
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    use std::os::windows::fs::MetadataExt;
    symlink_metadata(path)
        .is_ok_and(|there| file.metadata().is_ok_and(|mine| mine.creation_time() == there.creation_time()))
}

/// Fills `bytes` from this offset. It may move the file's position.
#[cfg(unix)]
pub(crate) fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

/// Fills `bytes` from this offset. It may move the file's position.
#[cfg(windows)]
pub(crate) fn read_exact_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !bytes.is_empty() {
        match file.seek_read(bytes, at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                bytes = &mut bytes[count..];
                at += count as u64;
            }
        }
    }
    Ok(())
}
