//! The header of a program's file (System V ABI, "Object Files").

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The relevant properties of a program in the format ELF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Elf {
    /// Class and byte order, and the machine: a library is loaded only into a program of the same.
    pub(crate) kind: (u8, u8, u16),
    /// The loader of it and its libraries; `None` if it is static.
    pub(crate) interpreter: Option<Vec<u8>>,
    /// Whether it is compiled by Go, whose programs call the kernel themselves.
    pub(crate) is_go: bool,
}

/// The head of a file.
pub(crate) enum FileHead {
    Elf(Elf),
    /// The interpreter of a script, and one argument.
    Script(Vec<u8>),
    Other,
}

const IDENT: usize = 64;
const CLASS_32: u8 = 1;
const CLASS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;
/// No program has more headers, no interpreter's name is longer, and no note that is looked at.
const MAX_HEADERS: u16 = 256;
const MOST_BYTES: usize = 4096;

/// Reads the head of a file.
pub(crate) fn head(path: &Path) -> io::Result<FileHead> {
    let mut file = File::open(path)?;
    let mut head = Vec::new();
    file.by_ref().take(256).read_to_end(&mut head)?;
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        return Ok(FileHead::Script(line.trim_ascii().to_vec()));
    }
    if !head.starts_with(b"\x7fELF") || head.len() < IDENT {
        return Ok(FileHead::Other);
    }
    // A truncated or invalid file is left to the kernel to refuse.
    Ok(elf(&head, |at, length| piece(&file, at, length)).map_or(FileHead::Other, FileHead::Elf))
}

fn piece(file: &File, at: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, at).ok()?;
    Some(bytes)
}

/// Reads the program headers; `piece` gives bytes of the file.
fn elf(head: &[u8], piece: impl Fn(u64, usize) -> Option<Vec<u8>>) -> Option<Elf> {
    let (class, order) = (*head.get(4)?, *head.get(5)?);
    let is_64 = match class {
        CLASS_64 => true,
        CLASS_32 => false,
        _ => return None,
    };
    let number = |bytes: &[u8], at: usize, length: usize| -> Option<u64> {
        let bytes = bytes.get(at..at + length)?;
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        Some(if order == LITTLE_ENDIAN { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) })
    };
    let machine = u16::try_from(number(head, 18, 2)?).ok()?;
    let (table, size, count) = if is_64 {
        (number(head, 32, 8)?, number(head, 54, 2)?, number(head, 56, 2)?)
    } else {
        (number(head, 28, 4)?, number(head, 42, 2)?, number(head, 44, 2)?)
    };
    let mut found = Elf { kind: (class, order, machine), interpreter: None, is_go: false };
    for index in 0..count.min(MAX_HEADERS.into()) {
        let at = table.checked_add(index.checked_mul(size)?)?;
        let header = piece(at, if is_64 { 56 } else { 32 })?;
        let (offset, length) = if is_64 {
            (number(&header, 8, 8)?, number(&header, 32, 8)?)
        } else {
            (number(&header, 4, 4)?, number(&header, 16, 4)?)
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(MOST_BYTES);
        match u32::try_from(number(&header, 0, 4)?).ok()? {
            PT_INTERP => {
                let name = piece(offset, length)?;
                found.interpreter = Some(name.split(|byte| *byte == 0).next().unwrap_or_default().to_vec());
            }
            PT_NOTE => {
                let notes = piece(offset, length)?;
                // A note of Go's linker: 4 bytes of name, "Go" and zeros, behind the sizes and the type.
                found.is_go |= notes.windows(16).any(|note| number(note, 0, 4) == Some(4) && note.ends_with(b"Go\0\0"));
            }
            _ => {}
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program of 64 bits: headers behind the head, what they point to behind them.
    fn program(parts: &[(u32, &[u8])]) -> Vec<u8> {
        let mut file = vec![0; IDENT];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[18] = 62;
        file[32] = 64;
        file[54] = 56;
        file[56] = parts.len() as u8;
        let mut offset = IDENT + 56 * parts.len();
        for (kind, bytes) in parts {
            let mut header = vec![0; 56];
            header[..4].copy_from_slice(&kind.to_le_bytes());
            header[8..16].copy_from_slice(&(offset as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            file.extend(header);
            offset += bytes.len();
        }
        for (_, bytes) in parts {
            file.extend(*bytes);
        }
        file
    }

    fn read(file: &[u8]) -> Option<Elf> {
        elf(file.get(..IDENT)?, |at, length| Some(file.get(at as usize..at as usize + length)?.to_vec()))
    }

    #[test]
    fn elf__has_its_interpreter_or_none() {
        let dynamic = read(&program(&[(1, b""), (PT_INTERP, b"/lib64/ld-linux-x86-64.so.2\0")])).unwrap();
        assert_eq!(dynamic.interpreter.as_deref(), Some(&b"/lib64/ld-linux-x86-64.so.2"[..]));
        assert_eq!((dynamic.kind, dynamic.is_go), ((2, 1, 62), false));
        assert_eq!(read(&program(&[(1, b"")])).unwrap().interpreter, None);
    }

    #[test]
    fn elf__knows_what_go_compiled() {
        let note = [&[4, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0][..], b"Go\0\0abc\0"].concat();
        assert!(read(&program(&[(PT_NOTE, &note)])).unwrap().is_go);
        let gnu = [&[4, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0][..], b"GNU\0abc\0"].concat();
        assert!(!read(&program(&[(PT_NOTE, &gnu)])).unwrap().is_go);
    }

    #[test]
    fn elf__that_is_cut_is_nothing() {
        let whole = program(&[(PT_INTERP, b"/lib/ld.so\0"), (PT_NOTE, b"\x04\0\0\0")]);
        for end in 0..whole.len() {
            assert_eq!(read(&whole[..end]), None, "{end}");
        }
        assert!(read(&whole).is_some());
    }

    #[test]
    fn head__of_this_program_is_one() {
        let FileHead::Elf(elf) = head(&std::env::current_exe().unwrap()).unwrap() else { panic!("no ELF") };
        assert!(!elf.is_go);
    }
}
