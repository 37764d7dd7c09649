//! The name by which a taker recognizes a share.

use std::path::PathBuf;

use fairwave_host::ShareId;

use crate::format::short_hash::short;

/// Names the share of these paths of this host, so that a taker recognizes it: it is stable for the same host and
/// paths. It is not a secret.
pub(crate) fn share_name(paths: &[PathBuf]) -> [u8; 16] {
    let real = paths.iter().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()));
    let mut hasher = blake3::Hasher::new_derive_key("fairwave 1 share name");
    // Cloned images have the same one; mostly their host names differ.
    hasher.update(&std::fs::read("/etc/machine-id").unwrap_or_default());
    hasher.update(rustix::system::uname().nodename().to_bytes());
    hasher.update(&ShareId::of(real, false).0.to_le_bytes());
    short(&hasher)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn share_name__is_the_same_for_the_same_paths() {
        let place = tempfile::tempdir().unwrap();
        let paths = |names: &[&str]| names.iter().map(|name| place.path().join(name)).collect::<Vec<_>>();
        fs::write(place.path().join("a"), "").unwrap();
        assert_eq!(share_name(&paths(&["a"])), share_name(&paths(&["./a"])));
        assert_ne!(share_name(&paths(&["a"])), share_name(&paths(&["b"])));
    }
}
