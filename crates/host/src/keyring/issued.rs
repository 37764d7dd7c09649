//! A host's record of a ticket that it issued.

use fairwave_proto::codec::Refusal;
use serde::{Deserialize, Serialize};

use crate::secret::Secret;
use crate::share_id::ShareId;

/// Retention of tickets that ended, seconds, so that their holders learn the reason.
pub(super) const REMEMBERED_S: u64 = 90 * 86_400;

/// A keyring's record of a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issued {
    /// The secret that proves possession.
    pub secret: Secret,
    /// The share that it admits to.
    pub share: ShareId,
    /// When it was issued, in seconds since 1970.
    pub issued_unix_s: u64,
    /// When it ends, in seconds since 1970; 0 is never.
    pub expires_unix_s: u64,
    /// Whether it is used up by the first transfer that completes.
    pub is_once: bool,
    /// Whether that has happened.
    pub is_spent: bool,
    /// Whether it was taken back.
    pub is_revoked: bool,
}

/// A description of a share, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offering {
    /// Its paths, as text.
    pub paths: Vec<String>,
    /// Whether others may put files there.
    pub takes: bool,
    /// Whether its files may be fetched.
    pub gives: bool,
}

/// How long a ticket lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Seconds until it ends; `None` is never.
    pub lasts_s: Option<u64>,
    /// Whether it is used up by the first transfer that completes.
    pub is_once: bool,
}

impl Default for Validity {
    /// A day, as often as one likes.
    fn default() -> Self {
        Self { lasts_s: Some(86_400), is_once: false }
    }
}

impl Issued {
    /// Why its holder is not let in at a time, if so.
    pub fn refusal(&self, now_unix_s: u64) -> Option<Refusal> {
        if self.is_revoked {
            Some(Refusal::Revoked)
        } else if self.is_spent {
            Some(Refusal::UsedUp)
        } else if self.expires_unix_s != 0 && now_unix_s >= self.expires_unix_s {
            Some(Refusal::Expired)
        } else {
            None
        }
    }

    /// Whether nobody needs to know of it any more.
    pub(super) fn is_forgotten(&self, now_unix_s: u64) -> bool {
        let end = if self.expires_unix_s == 0 { self.issued_unix_s } else { self.expires_unix_s };
        self.refusal(now_unix_s).is_some() && end.saturating_add(REMEMBERED_S) < now_unix_s
    }
}
