//! The network between this host and another as one shared model for all sessions that go there.

mod controller;
mod cubic_path;
mod division;
pub(crate) mod ecn;
mod member;
pub(crate) mod mtu;
pub(crate) mod path_facts;
pub(crate) mod path_kind;
mod path_news;
mod paths;
mod sent_stamps;
mod shared;

pub use controller::PathControl;
pub(crate) use division::{Claim, Division, Portion};
pub(crate) use member::PathMember;
pub(crate) use path_news::PathNews;
pub(crate) use paths::{PathId, Paths};
pub(crate) use shared::{MemberReport, SharedPath};

#[cfg(test)]
use sent_stamps::SentStamps;
#[cfg(test)]
mod tests;
