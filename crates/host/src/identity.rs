//! A host's identity: its static key.

use std::fmt;

use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};

use crate::secret::Secret;
use crate::state::{StateDir, StateError};
use crate::ticket::{from_base32, to_base32};

const FILE: &str = "identity";
/// Prefix of the file; its digit is the version.
const PREFIX: &str = "fairwave-identity-1 ";

/// A host's static key pair (X25519): tickets carry the public half, by which its peers know it.
#[derive(Clone)]
pub struct Identity {
    private: Secret,
    public: [u8; 32],
}

impl Identity {
    /// The user's, from the state directory; made at the first use. Processes that do so at once get the same one.
    pub fn open(state: &StateDir) -> Result<Self, StateError> {
        if let Some(identity) = Self::read(state)? {
            return Ok(identity);
        }
        let _lock = state.lock(FILE)?;
        if let Some(identity) = Self::read(state)? {
            return Ok(identity);
        }
        let identity = Self::random()?;
        state.write(FILE, format!("{PREFIX}{}\n", to_base32(identity.private.as_bytes())).as_bytes())?;
        Ok(identity)
    }

    /// A new one, for as long as a process lives.
    pub fn random() -> Result<Self, StateError> {
        Ok(Self::new(Secret::random()?))
    }

    /// The one with this private key.
    pub fn new(private: Secret) -> Self {
        let mut dh = DefaultResolver.resolve_dh(&DHChoice::Curve25519).expect("X25519 is built in");
        dh.set(private.as_bytes());
        let mut public = [0; 32];
        public.copy_from_slice(dh.pubkey());
        Self { private, public }
    }

    /// The private key.
    pub fn private(&self) -> &Secret {
        &self.private
    }

    /// The public key, by which others know it.
    pub fn public(&self) -> &[u8; 32] {
        &self.public
    }

    fn read(state: &StateDir) -> Result<Option<Self>, StateError> {
        let Some(bytes) = state.read(FILE)? else { return Ok(None) };
        let text = std::str::from_utf8(&bytes).ok().and_then(|text| text.trim_end().strip_prefix(PREFIX));
        let key = text.and_then(from_base32).and_then(|key| <[u8; 32]>::try_from(key.as_slice()).ok());
        let key = key.ok_or_else(|| StateError::Content {
            path: state.path().join(FILE),
            what: "not a key of this version; move it away to create a new identity (old tickets become invalid)"
                .into(),
        })?;
        Ok(Some(Self::new(Secret::new(key))))
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", to_base32(&self.public))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn open__gives_the_same_one_again() {
        let place = tempfile::tempdir().unwrap();
        let state = StateDir::at(place.path()).unwrap();
        let first = Identity::open(&state).unwrap();
        let second = Identity::open(&state).unwrap();
        assert_eq!(first.public(), second.public());
        assert_eq!(first.private(), second.private());
        assert_eq!(std::fs::metadata(place.path().join(FILE)).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn open__all_who_come_at_once_get_the_same_one() {
        let place = tempfile::tempdir().unwrap();
        let state = StateDir::at(place.path()).unwrap();
        let open = || *Identity::open(&state).unwrap().public();
        let keys: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
    }

    #[test]
    fn open__a_broken_file_is_named_and_kept() {
        let place = tempfile::tempdir().unwrap();
        let state = StateDir::at(place.path()).unwrap();
        state.write(FILE, b"fairwave-identity-1 abc\n").unwrap();
        let error = Identity::open(&state).unwrap_err().to_string();
        assert!(error.contains("identity: not a key"), "{error}");
        assert_eq!(state.read(FILE).unwrap().unwrap().as_slice(), b"fairwave-identity-1 abc\n");
    }

    #[test]
    fn public__is_what_noise_makes_of_the_private_key() {
        let params = "Noise_NKpsk0_25519_ChaChaPoly_BLAKE2s".parse().unwrap();
        let pair = snow::Builder::new(params).generate_keypair().unwrap();
        let identity = Identity::new(Secret::new(pair.private.try_into().unwrap()));
        assert_eq!(identity.public().as_slice(), pair.public);
    }

    #[test]
    fn debug__shows_the_public_key_alone() {
        let identity = Identity::random().unwrap();
        let text = format!("{identity:?}");
        assert!(text.contains(&to_base32(identity.public())));
        assert!(!text.contains(&to_base32(identity.private().as_bytes())));
    }
}
