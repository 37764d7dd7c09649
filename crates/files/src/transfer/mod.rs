//! A running transfer, over all its sessions: progress, retries and outcome.

pub(crate) mod below;
pub(crate) mod boot;
pub(crate) mod error;
pub(crate) mod failures;
pub(crate) mod hold;
pub(crate) mod ledger;
pub(crate) mod memory;
pub(crate) mod outcome;
pub(crate) mod pause;
pub(crate) mod planned;
pub(crate) mod progress;
pub(crate) mod renewal;
pub(crate) mod retry;
pub(crate) mod transfer_sessions;
pub(crate) mod visit;
pub(crate) mod xattrs;
pub(crate) mod zeros;
