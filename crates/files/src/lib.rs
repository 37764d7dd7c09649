//! Files over a session of `fairwave-host`: the *giver* has them and answers the requests of the *taker*.
//!
//! ```text
//! stream 0  manifest: the entries of the tree, in segments      giver -> taker
//! stream 1  hashes: a record for each block of 4 MiB           giver -> taker
//! stream 2  tree: the bytes of all files, end to end           giver -> taker
//! stream 3  results: failed writes (only of a put)              taker -> giver
//! stream 4  chunks: a list for each block, of its content       giver -> taker
//! stream 8  packed: blocks of the tree, compressed if possible  giver -> taker, up to stream 17 by level
//! ```
//!
//! ```
//! use std::fs;
//! use std::sync::Arc;
//!
//! use fairwave_files::{GetOptions, Share, ShareOptions, get};
//! use fairwave_host::{Endpoint, EndpointConfig, Identity, Keyring, ShareId, Validity};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let place = tempfile::tempdir()?;
//! fs::write(place.path().join("a.txt"), "hello")?;
//! let config = EndpointConfig { listen: Some("127.0.0.1:0".parse()?), ..EndpointConfig::default() };
//! let (server, client) = (Endpoint::bind(&config)?, Endpoint::bind(&config)?);
//!
//! let share = Arc::new(Share::new(vec![place.path().join("a.txt")], ShareOptions::default())?);
//! let keyring = Arc::new(Keyring::in_memory(Identity::random()?, ShareId(1)));
//! server.listen_with(Arc::clone(&keyring), share.judges(), share.accept());
//! let ticket = keyring.issue(Validity { lasts_s: None, is_once: false }, vec![server.local_addr()])?;
//!
//! let destination = place.path().join("copy");
//! let transfer = get(&client, &ticket, GetOptions { destination: destination.clone(), ..GetOptions::default() })?;
//! let outcome = transfer.wait(None).ok_or("still running")?;
//! assert!(outcome.is_complete());
//! assert_eq!(fs::read_to_string(destination.join("a.txt"))?, "hello");
//! # Ok(())
//! # }
//! ```
//!
//! An application calls [`get`] or [`put`], or offers a [`Share`] at an [`Endpoint`](fairwave_host::Endpoint); each is
//! a [`Transfer`] then. Inside, read `format::manifest::TreeEntry` and `format::blocks::Layout` first: the encoding of
//! a tree, and the layout of its bytes. The folders, each on those before it: `format` (the encodings), `transfer` (a
//! running transfer, over all its sessions), `delta` (only the changed parts of a file), `sftp` (files of an SFTP server), `give` and `take` (the two ends), and the share, which has both.

#![cfg_attr(test, allow(non_snake_case))]

#[cfg(test)]
mod collector;
mod delta;
mod filter;
mod format;
#[cfg(test)]
mod fuzz;
mod give;
mod listed;
#[cfg(test)]
mod loopback;
mod once;
mod open_rates;
mod sftp;
mod share;
#[allow(unexpected_cfgs, reason = "`fairwave_portable` is a flag of the build")]
mod sys;
mod take;
mod transfer;

pub use filter::choice::Filter;
pub use filter::glob::{expand, is_glob};
pub use filter::rules::{RuleError, RuleList, Rules};
pub use format::backup::{Backup, BackupError};
pub use format::greeting::Archive;
pub use format::keeps::Keeps;
pub use format::names::escaped;
pub use format::packed::{Compress, CompressLevel, UnknownCompress};
pub use format::results::FileAction;
pub use give::put::{PutOptions, put, put_renewed};
pub use give::put_sftp::put_sftp;
pub use give::put_sftp::request::SftpDestination;
pub use listed::{ListFailure, ListFilter, ListedEntry, ListedKind, list, list_path};
pub use sftp::client::Sftp;
pub use sftp::connection::{SftpConnect, SftpServer};
pub use sftp::tree::SftpTree;
pub use share::Share;
pub use take::disk::durable::{Durable, UnknownDurable};
pub use take::get::{GetOptions, get, get_renewed};
pub use take::list::top_names::TopNames;
pub use take::resume::unfinished::unfinished;
pub use take::share_options::ShareOptions;
pub use transfer::error::{ShareError, TransferError};
pub use transfer::failures::{Failure, Failures, MAX_LISTED, MAX_LISTED_BYTES};
pub use transfer::ledger::Transfer;
pub use transfer::outcome::{Ended, Outcome};
pub use transfer::pause::Pause;
pub use transfer::planned::{PlannedFile, PlannedFiles};
pub use transfer::progress::Progress;
pub use transfer::renewal::{Lost, Renew, RenewError};
pub use transfer::visit::{Visit, VisitKind};
