//! Compressed blocks.
//!
//! ```text
//! place of a block in a stream of packed blocks = its zstd frame (RFC 8878), and the rest void;
//!                                                 or the block itself
//! ```
//!
//! These streams have the offsets of the tree's. A giver without them refuses every request, as it may refuse any block:
//! the taker then requests the stream of the tree. Blocks are compressed one by one, and are verified by the hash of
//! what they hold, like others.

use std::cell::RefCell;
use std::str::FromStr;

use thiserror::Error;
use zstd::bulk::{Compressor, Decompressor};

use super::blocks::BLOCK_BYTES;

/// A frame that is not shorter than its block by this part (1/16) is not worth expanding.
const MIN_GAIN: usize = 16;
/// Start of a frame (RFC 8878, section 3.1.1).
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The level of `auto`: zstd's default.
const AUTO_LEVEL: u8 = 3;
/// Levels above compress text to a few per cent less and take several times as long.
const MAX_LEVEL: u8 = 9;

/// When blocks of files are compressed on their way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compress {
    /// If a probe of a block shows that it arrives earlier: it is compressible, and the path is slower than zstd.
    #[default]
    Auto,
    /// Never.
    Never,
    /// All that are compressible, at this level of zstd.
    Level(CompressLevel),
}

/// A level of zstd, 1 to 9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressLevel(u8);

/// An unknown value of `--compress`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown value {0:?}: expected \"auto\", \"never\" or a level from 1 to {MAX_LEVEL}")]
pub struct UnknownCompress(String);

impl FromStr for Compress {
    type Err = UnknownCompress;

    fn from_str(text: &str) -> Result<Self, UnknownCompress> {
        let unknown = || UnknownCompress(text.to_owned());
        match text {
            "auto" => Ok(Self::Auto),
            "never" => Ok(Self::Never),
            _ => text.parse().ok().and_then(CompressLevel::new).map(Self::Level).ok_or_else(unknown),
        }
    }
}

impl CompressLevel {
    pub(crate) const AUTO: Self = Self(AUTO_LEVEL);

    /// If there is such a level.
    pub(crate) fn new(level: u8) -> Option<Self> {
        (1..=MAX_LEVEL).contains(&level).then_some(Self(level))
    }

    pub(crate) fn number(self) -> u8 {
        self.0
    }
}

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
    static FRAME: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Length of the frame of some bytes, unless it is hardly shorter than them.
pub(crate) fn packed_bytes(level: CompressLevel, content: &[u8]) -> Option<usize> {
    FRAME.with_borrow_mut(|frame| pack_into(level, content, frame))
}

/// Replaces a block by its frame, unless that is hardly shorter: returns the frame's length.
pub(crate) fn pack(level: CompressLevel, block: &mut [u8]) -> Option<usize> {
    FRAME.with_borrow_mut(|frame| {
        let length = pack_into(level, block, frame)?;
        block.get_mut(..length)?.copy_from_slice(frame.get(..length)?);
        Some(length)
    })
}

fn pack_into(level: CompressLevel, content: &[u8], frame: &mut Vec<u8>) -> Option<usize> {
    let most = content.len() - content.len().div_ceil(MIN_GAIN);
    if frame.len() < most {
        frame.resize(most, 0);
    }
    COMPRESSOR.with_borrow_mut(|compressor| {
        if compressor.is_none() {
            *compressor = Compressor::new(0).ok();
        }
        let compressor = compressor.as_mut()?;
        compressor.set_compression_level(level.0.into()).ok()?;
        // Without room for the frame zstd fails early.
        compressor.compress_to_buffer(content, frame.get_mut(..most)?).ok()
    })
}

/// Expands a frame from a peer into a block of exactly this length: returns whether it has it. Nothing is allocated by
/// what the frame claims, and the work is bounded by the block's length and the frame's.
pub(crate) fn unpack(frame: &[u8], block: &mut [u8]) -> bool {
    debug_assert!(block.len() as u64 <= BLOCK_BYTES, "a block");
    let length = block.len();
    DECOMPRESSOR.with_borrow_mut(|decompressor| {
        if decompressor.is_none() {
            *decompressor = Decompressor::new().ok();
        }
        let Some(decompressor) = decompressor.as_mut() else { return false };
        decompressor.decompress_to_buffer(frame, block).is_ok_and(|bytes| bytes == length)
    })
}

/// Whether what starts like this may be a frame.
pub(crate) fn may_be_frame(start: &[u8]) -> bool {
    start.first_chunk::<4>().is_none_or(|start| *start == MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pack__what_is_compressible_comes_back() {
        let text = b"as it was when listed, ".repeat(9000);
        for level in 1..=MAX_LEVEL {
            let level = CompressLevel::new(level).unwrap();
            let mut block = text.clone();
            let length = pack(level, &mut block).unwrap();
            assert!(length < text.len() / 100 && packed_bytes(level, &text) == Some(length));
            assert!(may_be_frame(&block));
            let mut room = vec![0; text.len()];
            assert!(unpack(&block[..length], &mut room) && room == text);
        }
    }

    #[test]
    fn pack__what_is_not_stays_as_it_is() {
        let mut random = vec![0; 100_000];
        blake3::Hasher::new().finalize_xof().fill(&mut random);
        for length in [0, 1, 10, 1000, random.len()] {
            let mut block = random[..length].to_vec();
            assert_eq!(pack(CompressLevel::AUTO, &mut block), None);
            assert_eq!(block, random[..length]);
        }
    }

    #[test]
    fn unpack__bombs_and_nonsense_fill_no_more_than_the_block() {
        let mut bomb = vec![0; 64 << 20];
        let length = pack(CompressLevel::AUTO, &mut bomb).unwrap();
        assert!(length < 10_000);
        let mut block = vec![7; BLOCK_BYTES as usize];
        assert!(!unpack(&bomb[..length], &mut block));
        // Shorter than the block, cut, and nothing.
        let mut short = vec![0; 1000];
        let length = pack(CompressLevel::AUTO, &mut short).unwrap();
        for frame in [&short[..length], &short[..length - 1], &[], b"nonsense"] {
            assert!(!unpack(frame, &mut block));
        }
        assert!(unpack(&short[..length], &mut [1; 1000]));
        // A frame that claims 2^62 bytes in a single segment.
        let claim = [&MAGIC[..], &[0xe0], &(1_u64 << 62).to_le_bytes(), &[3, 0, 0, 7]].concat();
        assert!(!unpack(&claim, &mut block));
    }

    #[test]
    fn unpack__of_anything() {
        bolero::check!().with_iterations(2000).with_max_len(2000).for_each(|bytes: &[u8]| {
            let frame = [&MAGIC[..], bytes].concat();
            unpack(bytes, &mut [0; 5000]);
            unpack(&frame, &mut [0; 5000]);
        });
    }

    #[test]
    fn from_str__two_words_and_nine_levels() {
        assert_eq!(["auto", "never"].map(str::parse), [Ok(Compress::Auto), Ok(Compress::Never)]);
        assert_eq!("9".parse(), Ok(Compress::Level(CompressLevel(9))));
        for text in ["0", "10", "always", ""] {
            let error = text.parse::<Compress>().unwrap_err().to_string();
            assert_eq!(error, format!("unknown value {text:?}: expected \"auto\", \"never\" or a level from 1 to 9"));
        }
    }
}
