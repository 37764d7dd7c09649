//! A ticket for one transfer, as a visitor shows it.

use std::fmt;
use std::sync::Arc;

use crate::keyring::Keyring;
use crate::proof::Proof;

/// A ticket for one transfer that a visitor shows. Only the application knows when its transfer is done, and so when
/// the ticket is used up: it then calls [`Keyring::use_up`].
#[derive(Clone, Copy)]
pub struct OneUse<'a> {
    /// The keyring that has the ticket: whom to tell that it is used up.
    pub keyring: &'a Arc<Keyring>,
    /// The proof of the session that the visitor's follows ([`Session::proof`](crate::Session::proof)), if it shows
    /// one.
    pub follows: Option<Proof>,
}

impl fmt::Debug for OneUse<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OneUse").field("follows", &self.follows.is_some()).finish_non_exhaustive()
    }
}
