//! The journal: rows in the order of their arrival, each with its key and a checksum, so that the partial record of a
//! killed process is detected and cut off.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::cell::{decode, encode};
use crate::study::RunKey;
use crate::{BUILD, Row, StudyError, system};

/// Start of a journal; the build that writes it follows, and a newline.
const MAGIC: &[u8] = b"fairwave sweep journal 2\n";
/// Start of journals of any format.
const ANY_MAGIC: &[u8] = b"fairwave sweep journal ";
/// Header of a record: its length, a check of the length, and the checksum of the record.
const HEAD: usize = 4 + 4 + 16;
/// Minimum length of a record: a key and an empty row.
const MIN_LENGTH: u32 = 16 + 4;

/// Storage of records: a file locked by this process, or memory.
pub(crate) struct Journal {
    place: Place,
    /// Offset of the next record.
    end: u64,
}

enum Place {
    File(File, PathBuf),
    Memory(Vec<u8>),
}

/// Position of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordPlace {
    at: u64,
    length: u32,
}

impl Journal {
    /// A journal in memory, which ends with the process.
    pub(crate) fn in_memory() -> Self {
        Self { place: Place::Memory(Vec::new()), end: 0 }
    }

    /// Opens or creates the journal at `path`, and locks it against other processes. Returns the existing records. A
    /// partial or broken record that a killed process left at the end is cut off; a broken record elsewhere is an
    /// error, and leaves the file unchanged.
    pub(crate) fn open(path: &Path) -> Result<(Self, Vec<(RunKey, RecordPlace)>), StudyError> {
        let failed = |error: io::Error| StudyError::io(path, &error);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StudyError::refused(
                    path,
                    "another process is writing these results",
                    "wait until it ends, or choose another --out",
                ));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        // The previous owner may have ended and removed it between the two calls.
        if !system::is_at(&file, path) {
            return Err(StudyError::refused(
                path,
                "another process has just finished writing these results",
                "run the command again",
            ));
        }
        let mut journal = Self { place: Place::File(file, path.to_owned()), end: 0 };
        let records = journal.read_all()?;
        Ok((journal, records))
    }

    fn read_all(&mut self) -> Result<Vec<(RunKey, RecordPlace)>, StudyError> {
        let Place::File(file, path) = &mut self.place else { return Ok(Vec::new()) };
        let failed = |error: io::Error| StudyError::io(path, &error);
        let mut reader = io::BufReader::with_capacity(1 << 20, &*file);
        let mine = first_bytes();
        let mut begin = Vec::new();
        reader.by_ref().take(mine.len() as u64).read_to_end(&mut begin).map_err(failed)?;
        if !mine.starts_with(&begin) {
            return Err(of_others(path, &begin));
        }
        let mut records = Vec::new();
        let mut end = mine.len() as u64;
        if begin.len() == mine.len() {
            let total = file.metadata().map_err(failed)?.len();
            loop {
                match next_record(&mut reader, end, total.saturating_sub(end)).map_err(failed)? {
                    Next::Record(key, length) => {
                        records.push((key, RecordPlace { at: end + HEAD as u64, length }));
                        end += HEAD as u64 + u64::from(length);
                    }
                    Next::End => break,
                    Next::Broken(behind) => {
                        let what = format!("row {} is broken, {behind} bytes follow", records.len() + 1);
                        let hint = format!("run `truncate -s {end} {}` to keep the rows before it", path.display());
                        return Err(StudyError::refused(path, what, hint));
                    }
                }
            }
            file.set_len(end).map_err(failed)?;
        } else {
            file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(&mine)).map_err(failed)?;
        }
        self.end = end;
        Ok(records)
    }

    /// Appends the row of a run.
    pub(crate) fn append(&mut self, key: RunKey, row: &Row) -> Result<RecordPlace, StudyError> {
        let mut record = vec![0; HEAD];
        record.extend_from_slice(&key.0);
        encode(row, &mut record);
        let length = u32::try_from(record.len() - HEAD).unwrap_or(u32::MAX);
        let sum = blake3::hash(&record[HEAD..]);
        record[..4].copy_from_slice(&length.to_le_bytes());
        record[4..8].copy_from_slice(&length_check(length, self.end));
        record[8..HEAD].copy_from_slice(&sum.as_bytes()[..16]);
        let place = RecordPlace { at: self.end + HEAD as u64, length };
        match &mut self.place {
            Place::Memory(bytes) => bytes.extend_from_slice(&record),
            Place::File(file, path) => {
                let end = self.end;
                let written = file.seek(SeekFrom::Start(end)).and_then(|_| file.write_all(&record));
                written.map_err(|error| {
                    // A partial record is useless; the next reader would cut it off as well.
                    let _ = file.set_len(end);
                    StudyError::io(path, &error)
                })?;
            }
        }
        self.end += record.len() as u64;
        Ok(place)
    }

    /// The row of a record.
    pub(crate) fn read(&self, place: RecordPlace) -> Result<Row, StudyError> {
        let mut bytes = vec![0; place.length as usize];
        match &self.place {
            Place::Memory(all) => bytes.copy_from_slice(&all[place.at as usize..][..place.length as usize]),
            Place::File(file, path) => {
                system::read_exact_at(file, &mut bytes, place.at).map_err(|error| StudyError::io(path, &error))?;
            }
        }
        decode(&bytes[16..]).ok_or_else(|| {
            let path = match &self.place {
                Place::File(_, path) => path.as_path(),
                Place::Memory(_) => Path::new("memory"),
            };
            StudyError::refused(path, "was changed by another process", "run the sweep again")
        })
    }

    /// Removes the file, which releases the lock.
    pub(crate) fn remove(self) -> Result<(), StudyError> {
        match self.place {
            Place::File(_, path) => std::fs::remove_file(&path).map_err(|error| StudyError::io(&path, &error)),
            Place::Memory(_) => Ok(()),
        }
    }
}

/// The first bytes of a journal of this build.
fn first_bytes() -> Vec<u8> {
    [MAGIC, BUILD.as_bytes(), b"\n"].concat()
}

/// The error for a file with another start.
fn of_others(path: &Path, begin: &[u8]) -> StudyError {
    if let Some(rest) = begin.strip_prefix(MAGIC) {
        let build = String::from_utf8_lossy(rest);
        return StudyError::other_build(path, build.trim_end());
    }
    if begin.starts_with(ANY_MAGIC) {
        return StudyError::other_build(path, "from another version");
    }
    StudyError::refused(path, "is not a journal of a sweep", "choose another --out, or move it away")
}

/// Distinguishes the written length from one damaged since: bound to its offset, so that bytes of another record do not
/// pass.
fn length_check(length: u32, at: u64) -> [u8; 4] {
    let hash = blake3::Hasher::new().update(&length.to_le_bytes()).update(&at.to_le_bytes()).finalize();
    let mut check = [0; 4];
    check.copy_from_slice(&hash.as_bytes()[..4]);
    check
}

/// The next item in a journal.
enum Next {
    /// A whole record: its key and its length.
    Record(RunKey, u32),
    /// Nothing, or the start of a record: a process was killed there. Or zeros up to the end, or a last record of which
    /// only the length is correct: a machine lost its power there.
    End,
    /// A broken record with the number of bytes after its header.
    Broken(u64),
}

/// Reads the next record of a file, at offset `at`, with `left` bytes left.
fn next_record(reader: &mut impl Read, at: u64, left: u64) -> io::Result<Next> {
    // A killed process leaves the first bytes of its last write, undamaged.
    let Some(left) = left.checked_sub(HEAD as u64) else { return Ok(Next::End) };
    let mut head = [0; HEAD];
    reader.read_exact(&mut head)?;
    let field = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
    let length = u32::from_le_bytes(field(0));
    if length < MIN_LENGTH || length_check(length, at) != field(4) {
        let is_empty = head == [0; HEAD] && is_zeros(reader)?;
        return Ok(if is_empty { Next::End } else { Next::Broken(left) });
    }
    let Some(behind) = left.checked_sub(u64::from(length)) else { return Ok(Next::End) };
    let mut payload = vec![0; length as usize];
    reader.read_exact(&mut payload)?;
    let (mut key, row) = ([0; 16], &payload[16..]);
    key.copy_from_slice(&payload[..16]);
    let is_whole = blake3::hash(&payload).as_bytes()[..16] == head[8..] && decode(row).is_some();
    Ok(match behind {
        _ if is_whole => Next::Record(RunKey(key), length),
        0 => Next::End,
        behind => Next::Broken(behind),
    })
}

/// Whether only zeros follow.
fn is_zeros(reader: &mut impl Read) -> io::Result<bool> {
    let mut part = [0; 4096];
    loop {
        match reader.read(&mut part)? {
            0 => return Ok(true),
            count if part[..count].iter().any(|byte| *byte != 0) => return Ok(false),
            _ => {}
        }
    }
}
