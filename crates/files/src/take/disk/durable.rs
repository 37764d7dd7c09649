//! Granularity of durability.

use std::str::FromStr;

use thiserror::Error;

/// Granularity of durability: a file appears at its place only when its bytes would survive a crash of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durable {
    /// File by file: slow with small ones.
    Each,
    /// Batches of up to 64 MiB, 2000 files or one second.
    #[default]
    Group,
    /// When the system likes: a host that dies may leave files without their bytes.
    None,
}

/// An unknown value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown value {0:?}: expected \"each\", \"group\" or \"none\"")]
pub struct UnknownDurable(String);

impl FromStr for Durable {
    type Err = UnknownDurable;

    fn from_str(text: &str) -> Result<Self, UnknownDurable> {
        match text {
            "each" => Ok(Self::Each),
            "group" => Ok(Self::Group),
            "none" => Ok(Self::None),
            _ => Err(UnknownDurable(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_str__three_words() {
        assert_eq!(
            ["each", "group", "none"].map(str::parse),
            [Ok(Durable::Each), Ok(Durable::Group), Ok(Durable::None)]
        );
        assert_eq!(
            "all".parse::<Durable>().unwrap_err().to_string(),
            "unknown value \"all\": expected \"each\", \"group\" or \"none\""
        );
    }
}
