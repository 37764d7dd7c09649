//! The network between this host and another as one shared model for all sessions that go there.

mod controller;
mod cubic;
mod division;
pub(crate) mod ecn;
mod member;
pub(crate) mod mtu;
mod news;
pub(crate) mod path_facts;
pub(crate) mod path_kind;
mod paths;
mod sent_stamps;
mod shared;

pub use controller::PathControl;
pub(crate) use division::{Claim, Division, Portion};
pub(crate) use member::PathMember;
pub(crate) use news::PathNews;
pub(crate) use paths::{PathId, Paths};
pub(crate) use shared::{MemberReport, SharedPath};

#[cfg(test)]
use sent_stamps::SentStamps;
#[cfg(test)]
mod tests;
