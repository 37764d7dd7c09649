//! The end that has the files: it finds and reads them, and answers requests.

mod attributes;
mod batch_bytes;
pub(crate) mod given_bytes;
pub(crate) mod giving_end;
pub(crate) mod gone;
mod hashed_alone;
pub(crate) mod list_options;
pub(crate) mod listing;
mod packer;
pub(crate) mod put;
pub(crate) mod put_sftp;
pub(crate) mod read_turns;
pub(crate) mod reading;
pub(crate) mod roots;
pub(crate) mod scan;
pub(crate) mod schedule;
pub(crate) mod share_name;
pub(crate) mod supply;
