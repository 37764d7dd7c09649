//! Which targets a symbolic link may have at the destination.

use thiserror::Error;

use super::manifest::MAX_PATH_BYTES;
use super::names::RelativePath;

/// Why a link is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum TargetError {
    #[error("symbolic link with an empty target")]
    Empty,
    #[error("symbolic link to an absolute path, which is outside the destination")]
    Absolute,
    #[error("symbolic link to a path outside the destination")]
    Escapes,
    #[error("symbolic link with '..' after a name: its target depends on other links")]
    Turns,
    #[error("symbolic link with a zero byte in its target")]
    Nul,
    #[error("symbolic link with a target of {0} bytes, the maximum is {MAX_PATH_BYTES}")]
    Long(usize),
}

impl TargetError {
    /// Whether the link could be made as it is, and only where it leads is wrong.
    pub(crate) fn leads_out(self) -> bool {
        matches!(self, Self::Absolute | Self::Escapes | Self::Turns)
    }
}

/// Whether `target` stays below the destination, seen from the link.
///
/// A `..` may stand at the beginning only, and not more often than the link is deep. Its directories are real ones, so
/// those lead no higher than the destination; every name after them leads down, or through a link of which the same is
/// true. Behind a name a `..` could start from wherever a link with that name leads: three levels of it, behind a link
/// that leads to the top, would be outside.
pub(crate) fn check_target(link: &RelativePath, target: &[u8]) -> Result<(), TargetError> {
    if target.is_empty() {
        return Err(TargetError::Empty);
    }
    if target.len() > MAX_PATH_BYTES {
        return Err(TargetError::Long(target.len()));
    }
    if target.contains(&0) {
        return Err(TargetError::Nul);
    }
    if target.first() == Some(&b'/') {
        return Err(TargetError::Absolute);
    }
    let (mut ups, mut is_down) = (0, false);
    for name in target.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." if is_down => return Err(TargetError::Turns),
            b".." => ups += 1,
            _ => is_down = true,
        }
    }
    if ups > link.depth() { Err(TargetError::Escapes) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(link: &str, target: &str) -> Result<(), TargetError> {
        check_target(&RelativePath::new(link.as_bytes()).unwrap(), target.as_bytes())
    }

    #[test]
    fn check_target__what_stays_below() {
        for (link, target) in [
            ("a", "b"),
            ("a", "b/c"),
            ("d/a", "../b"),
            ("d/e/a", "../../b/c"),
            ("d/a", ".."),
            ("a", "./b//c"),
            ("a", "."),
        ] {
            assert_eq!(check(link, target), Ok(()), "{link} -> {target}");
        }
    }

    #[test]
    fn leads_out__of_what_no_link_can_be_made_of_it_does_not() {
        let all = [
            (TargetError::Empty, false),
            (TargetError::Nul, false),
            (TargetError::Long(4097), false),
            (TargetError::Absolute, true),
            (TargetError::Escapes, true),
            (TargetError::Turns, true),
        ];
        assert!(all.iter().all(|(error, leads_out)| error.leads_out() == *leads_out));
    }

    #[test]
    fn check_target__what_leads_out() {
        for (link, target, error) in [
            ("a", "", TargetError::Empty),
            ("a", "/etc/passwd", TargetError::Absolute),
            ("a", "//x", TargetError::Absolute),
            ("a", "..", TargetError::Escapes),
            ("a", "./../b", TargetError::Escapes),
            ("d/a", "../..", TargetError::Escapes),
            ("d/a", "../../d/b", TargetError::Escapes),
            // With s/t/u -> ../.. the target would be three levels above the destination's top less two.
            ("a", "s/t/u/../../..", TargetError::Turns),
            ("d/a", "b/../c", TargetError::Turns),
            ("a", "b\0", TargetError::Nul),
        ] {
            assert_eq!(check(link, target), Err(error), "{link} -> {target}");
        }
        let long = "x".repeat(4097);
        assert_eq!(check("a", &long), Err(TargetError::Long(4097)));
    }
}
