//! Writing without the zeros.

use std::os::fd::AsFd;

use rustix::io::{Errno, pwrite};

use crate::sys;

/// Holes are made of whole pages of this size, at offsets that are multiples of it.
const PAGE: usize = 4096;
static ZEROS: [u8; PAGE] = [0; PAGE];

/// The storage below the zeros that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Below {
    /// Nothing yet: a hole is what is not written.
    Hole,
    /// Something, or room that was set aside: a hole has to be made.
    Anything,
}

/// Writes `bytes` at `offset`, a multiple of 4 KiB, and leaves a hole for each run of whole pages of zeros. The file's
/// length does not include a hole at the end. Returns the end of the writes.
pub(crate) fn write_sparse(file: impl AsFd, offset: u64, bytes: &[u8], below: Below) -> rustix::io::Result<u64> {
    let file = file.as_fd();
    let is_zero = |page: &[u8]| page == &ZEROS[..page.len()];
    let (mut start, mut written) = (0, offset);
    while start < bytes.len() {
        let is_hole = is_zero(&bytes[start..bytes.len().min(start + PAGE)]);
        let pages = bytes[start..].chunks(PAGE).take_while(|page| is_zero(page) == is_hole);
        let end = start + pages.map(<[u8]>::len).sum::<usize>();
        let at = offset + start as u64;
        let is_made = !is_hole || (below == Below::Anything && !punch(file, at, (end - start) as u64)?);
        if is_made {
            write_all(file, at, &bytes[start..end])?;
            written = at + (end - start) as u64;
        }
        start = end;
    }
    Ok(written)
}

/// Whether there is a whole page of zeros, which would become a hole.
pub(crate) fn has_hole(bytes: &[u8]) -> bool {
    bytes.chunks_exact(PAGE).any(|page| page == ZEROS)
}

/// Writes all of it.
pub(crate) fn write_all(file: impl AsFd, mut offset: u64, mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        match pwrite(&file, bytes, offset) {
            Ok(0) => return Err(Errno::IO),
            Ok(count) => {
                offset += count as u64;
                bytes = &bytes[count..];
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Makes a hole: whether the file system can.
pub(crate) fn punch(file: impl AsFd, offset: u64, bytes: u64) -> rustix::io::Result<bool> {
    match sys::punch(file, offset, bytes) {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::PERM) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn pages(kinds: &[u8]) -> Vec<u8> {
        kinds.iter().flat_map(|kind| [*kind; PAGE]).collect()
    }

    #[test]
    fn write_sparse__zeros_take_no_room() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(64 * PAGE as u64).unwrap();
        let content = pages(&[0, 1, 0, 0, 2, 0]);
        // The second page and the fifth; what follows is a hole.
        assert_eq!(write_sparse(&file, PAGE as u64, &content, Below::Hole), Ok(6 * PAGE as u64));
        assert!(file.metadata().unwrap().blocks() * 512 <= 4 * PAGE as u64);
        let mut read = vec![9; 6 * PAGE];
        rustix::io::pread(&file, &mut read, PAGE as u64).unwrap();
        assert!(read == content);
    }

    #[test]
    fn write_sparse__over_something_it_makes_holes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        fs::write(&path, vec![7; 8 * PAGE]).unwrap();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        let mut content = pages(&[0, 1, 0]);
        content.extend([0; 10]);
        write_sparse(&file, 0, &content, Below::Anything).unwrap();
        let read = fs::read(&path).unwrap();
        assert!(read[..content.len()] == content);
        assert!(read[content.len()..].iter().all(|byte| *byte == 7));
    }

    #[test]
    fn write_sparse__what_ends_in_a_hole_does_not_reach_the_end() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(write_sparse(&file, 0, &[0; 10_000], Below::Hole), Ok(0));
        assert_eq!(file.metadata().unwrap().len(), 0);
        let mut content = vec![1; 5000];
        content.extend([0; 8192]);
        // 5000 bytes end in the second page, which is written whole.
        assert_eq!(write_sparse(&file, 0, &content, Below::Hole), Ok(8192));
    }
}
