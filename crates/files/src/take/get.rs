//! Taking files: what a client gets, and what a host lets others put.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairwave_host::{ConnectOptions, Endpoint, Handler, OwnPlaces, Session, Ticket};
use fairwave_proto::Terms;
use fairwave_proto::codec::{Refusal, TicketId};
use fairwave_proto::handshake::Prefix;
use fairwave_units::{Bytes, Duration, Rate};

use crate::filter::choice::Filter;
use crate::filter::selection::NameSelection;
use crate::format::backup::Backup;
use crate::format::greeting::{Archive, Deletions, Greeting, Look, Walk};
use crate::format::keeps::Keeps;
use crate::format::packed::Compress;
use crate::take::disk::durable::Durable;
use crate::take::disk::quota::Quota;
use crate::take::disk::tree::Tree;
use crate::take::disk::worker_slots::TicketSlots;
use crate::take::list::top_names::TopNames;
use crate::take::options::TakeOptions;
use crate::take::resume::kept_key::KeptKey;
use crate::take::resume::takers::{Admission, Takers};
use crate::take::resume::top_note::Former;
use crate::take::resume::verified::Verified;
use crate::take::share_options::ShareOptions;
use crate::take::taker::{take, take_later};
use crate::transfer::boot::boot_id;
use crate::transfer::error::TransferError;
use crate::transfer::ledger::Transfer;
use crate::transfer::memory::Holder;
use crate::transfer::renewal::Renew;
use crate::transfer::retry::{Destination, Opening, RETRY, persist};

/// Options of a get.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "four options that do not depend on each other")]
pub struct GetOptions {
    /// Paths in the share, each with all that is below it; without any, all of it. They keep their places in its tree.
    pub names: Vec<OsString>,
    /// More such paths, whose wildcards (`*`, `?`, `[...]`) match as in a shell.
    pub globs: Vec<OsString>,
    /// Whether the share's top is one directory whose contents are taken: names and rules are relative to it, and its
    /// name is not part of the destination paths.
    pub is_inside: bool,
    /// Which of them.
    pub filter: Filter,
    /// Allowed names at the top of the list, if this end named them to the peer: any other name ends the transfer.
    /// `None` lets the server choose, as with a ticket.
    pub top_names: Option<TopNames>,
    /// The directory to write into, created if it does not exist.
    pub destination: PathBuf,
    /// The name at the destination of the only path in [`GetOptions::names`], or of the only thing at the share's top, if
    /// it is to have another.
    pub rename: Option<OsString>,
    /// Whether an unfinished transfer of the same, in the directory around the destination and with the destination's
    /// name for [`GetOptions::rename`], is resumed: it made the destination itself. Without one this has no effect.
    pub continues_rename: bool,
    /// Whether files that seem complete, having the right size and time, are read and their hashes compared.
    pub check: bool,
    /// Whether files are fetched whole. Otherwise what an older file at the place of one has of it is not fetched.
    pub whole_file: bool,
    /// Whether anything but one file ends the transfer with an error.
    pub one_file: bool,
    /// When blocks are compressed on their way, if the server can.
    pub compress: Compress,
    /// Whether to write nothing, and only to find out what would be fetched: that is what the outcome counts.
    pub dry_run: bool,
    /// Whether symbolic links whose targets lead out of the destination are kept unchanged, as text, and not followed;
    /// otherwise they fail.
    pub keeps_links: bool,
    /// Whether a new file of 512 KiB or more is looked for at the destination under other names, by its size and time:
    /// what a file there has of it is not fetched.
    pub fuzzy: bool,
    /// Files of the same size whose times differ by at most this many seconds count as equal.
    pub modify_window_s: u32,
    /// Entries that are left unchanged at the destination.
    pub keeps: Keeps,
    /// Whether entries that the source lacks are deleted from the directories that are copied, and at most how many;
    /// `None` deletes nothing. It happens last, and only if nothing failed.
    pub deletes: Option<u64>,
    /// Whether [`Outcome::planned`](crate::Outcome::planned) lists what was done with each file.
    pub lists_files: bool,
    /// Whether all attributes are copied: owners, hard links, extended attributes, ACLs, devices.
    pub archive: Option<Archive>,
    /// How replaced and deleted files are kept, if they are.
    pub backup: Option<Backup>,
    /// Granularity of durability.
    pub durable: Durable,
    /// No faster than this, in IP packets.
    pub limit: Option<Rate>,
    /// Max bytes of files held in memory.
    pub memory: Bytes,
    /// Max memory of the server's list of files; a larger list ends the transfer.
    pub list_memory: Bytes,
    /// Time after the last received bytes for which sessions that end for a passing reason are followed by others; zero
    /// for never, except when keys are old.
    pub retry: Duration,
    /// Options of the session at this end node.
    pub session: Terms,
}

impl Default for GetOptions {
    fn default() -> Self {
        Self {
            names: Vec::new(),
            globs: Vec::new(),
            is_inside: false,
            filter: Filter::default(),
            top_names: None,
            destination: PathBuf::from("."),
            rename: None,
            continues_rename: false,
            check: false,
            whole_file: false,
            one_file: false,
            compress: Compress::default(),
            dry_run: false,
            keeps_links: false,
            fuzzy: false,
            modify_window_s: 0,
            keeps: Keeps::default(),
            deletes: None,
            lists_files: false,
            archive: None,
            backup: None,
            durable: Durable::default(),
            limit: None,
            memory: MEMORY,
            list_memory: LIST_MEMORY,
            retry: RETRY,
            session: Terms::default(),
        }
    }
}

/// Max bytes of files held in memory.
const MEMORY: Bytes = Bytes::new(256 << 20);
/// Max memory of a list: some fourteen million files.
const LIST_MEMORY: Bytes = Bytes::new(1 << 30);

/// Gets files: it returns when the session is open, and [`Transfer::wait`] when all is done.
///
/// Bytes that an earlier call fetched, of complete files or not, are not fetched again. A session that ends for a
/// reason that may pass (silence, a peer that ends, a path that loses too much, old keys) is followed by another, see
/// [`GetOptions::retry`].
pub fn get(endpoint: &Endpoint, ticket: &Ticket, options: GetOptions) -> Result<Transfer, TransferError> {
    get_from(endpoint, Destination { ticket: ticket.clone(), renew: None }, options)
}

/// Gets files from a server that may restart: after a session has ended, `renew` returns the ticket of the next one.
pub fn get_renewed(
    endpoint: &Endpoint,
    ticket: &Ticket,
    renew: Renew,
    options: GetOptions,
) -> Result<Transfer, TransferError> {
    get_from(endpoint, Destination { ticket: ticket.clone(), renew: Some(renew) }, options)
}

fn get_from(endpoint: &Endpoint, from: Destination, options: GetOptions) -> Result<Transfer, TransferError> {
    let (patience, verified) = (options.retry, Verified::default());
    let open = Box::new(move |endpoint: &Endpoint, ticket: &Ticket, former: Option<&Session>| {
        begin(endpoint, ticket, options.clone(), verified.clone(), former)
    });
    persist(endpoint, from, patience, false, open).map_err(|error| match error.refusal() {
        // There is nothing to get where others put files.
        Some(Refusal::Direction) => TransferError::OnlyTakes,
        _ => error,
    })
}

fn begin(
    endpoint: &Endpoint,
    ticket: &Ticket,
    options: GetOptions,
    verified: Verified,
    former: Option<&Session>,
) -> Result<Opening, TransferError> {
    let stays_on_file_system = options.filter.stays_on_file_system;
    let keeps_ignored = options.filter.obeys_gitignore;
    let walk = Walk {
        stays_on_file_system,
        lists_left_out: (stays_on_file_system || keeps_ignored) && options.deletes.is_some(),
        obeys_gitignore: keeps_ignored,
        lists_attributes: options.archive.is_some(),
    };
    let at_top = options.is_inside && options.names.is_empty() && options.globs.is_empty();
    let tree = if options.dry_run { look_for(&options.destination) } else { open(&options.destination).map(Some) };
    let [names, globs] =
        [&options.names, &options.globs].map(|words| words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
    let made = options.continues_rename.then(|| Former::of(&options.destination)).flatten();
    let (sink, transfer) = take(TakeOptions {
        tree: tree.map_err(|error| TransferError::Destination { path: options.destination, error })?,
        selection: NameSelection::with_globs(&names, &globs),
        filter: options.filter,
        is_inside: options.is_inside,
        top_names: options.top_names,
        rename: options.rename.map(OsString::into_vec),
        former: made,
        whole_file: options.whole_file,
        one_file: options.one_file,
        compress: options.compress,
        look: Look {
            does_check: options.check,
            is_dry: options.dry_run,
            keeps_links: options.keeps_links,
            modify_window_s: options.modify_window_s,
            keeps: options.keeps,
            deletes: options.deletes.map(|most| Deletions { most, at_top, stays_on_file_system, keeps_ignored }),
            lists_files: options.lists_files,
            archive: options.archive,
            backup: options.backup,
            is_fuzzy: options.fuzzy,
        },
        durable: options.durable,
        limit: options.limit,
        memory: options.memory,
        list_memory: options.list_memory,
        scope: [&b"get"[..], &ticket.key, &ticket.share.0.to_le_bytes()].concat(),
        boot: boot_id(),
        kept_key: KeptKey::of_host(),
        own: Some(OwnPlaces::find()),
        holder: Holder::Own,
        tells: false,
        verified,
        quota: None,
        admission: None,
        worker_slots: None,
    })?;
    let greeting = Greeting::Get(walk).to_bytes();
    let request = ConnectOptions { sends: false, receives: true, greeting, options: options.session };
    Ok((endpoint.begin(ticket, request, Box::new(sink), former)?, transfer))
}

/// A directory that takes what others put.
#[derive(Clone)]
pub(crate) struct Intake {
    directory: PathBuf,
    options: ShareOptions,
    quota: Option<Quota>,
    worker_slots: TicketSlots,
    takers: Takers,
}

impl Intake {
    /// The directory is created if it does not exist, unless nothing is ever written.
    pub(crate) fn new(directory: PathBuf, options: &ShareOptions) -> io::Result<Self> {
        if options.is_dry {
            look_for(&directory)?;
        } else {
            open(&directory)?;
        }
        let (options, quota) = (options.clone(), options.quota.map(Quota::new));
        let (worker_slots, takers) = (TicketSlots::default(), Takers::default());
        Ok(Self { directory, options, quota, worker_slots, takers })
    }

    /// Slots of the disk workers of each ticket.
    #[cfg(test)]
    pub(crate) fn worker_slots(&self) -> &TicketSlots {
        &self.worker_slots
    }

    /// Takes what the holder of a ticket puts: what its session has to do, and the transfer.
    pub(crate) fn take(
        &self,
        ticket: TicketId,
        from: IpAddr,
        look: Look,
    ) -> Result<(Box<dyn Handler>, Transfer), TransferError> {
        let look = Look {
            is_dry: look.is_dry || self.options.is_dry,
            keeps_links: look.keeps_links && self.options.may_keep_links,
            ..look
        };
        let (intake, holder) = (self.clone(), Holder::Visitor(ticket, Prefix::of(from)));
        let admission = self.takers.admit();
        let (sink, transfer) = take_later(true, move || intake.options(ticket, look, holder, admission))?;
        Ok((Box::new(sink), transfer))
    }

    /// Options of the taker, determined by reading the directory.
    fn options(
        self,
        ticket: TicketId,
        look: Look,
        holder: Holder,
        admission: Admission,
    ) -> Result<TakeOptions, TransferError> {
        let tree =
            if look.is_dry { look_for(&self.directory) } else { Tree::open(&self.directory).map(Arc::new).map(Some) };
        let former = self.options.continues_rename.then(|| Former::of(&self.directory)).flatten();
        Ok(TakeOptions {
            tree: tree.map_err(|error| TransferError::Destination { path: self.directory, error })?,
            selection: NameSelection::default(),
            filter: Filter::default(),
            is_inside: false,
            top_names: None,
            rename: self.options.rename.map(OsString::into_vec),
            former,
            look,
            whole_file: false,
            one_file: false,
            compress: Compress::Auto,
            durable: self.options.durable,
            limit: None,
            memory: MEMORY,
            list_memory: LIST_MEMORY,
            scope: [&b"put"[..], &ticket.0.to_le_bytes()].concat(),
            boot: boot_id(),
            kept_key: KeptKey::of_host(),
            own: (!self.options.may_hold_keys).then(OwnPlaces::find),
            holder,
            tells: true,
            verified: Verified::default(),
            quota: self.quota,
            admission: Some(admission),
            worker_slots: Some(self.worker_slots.of(ticket)),
        })
    }
}

fn open(path: &Path) -> io::Result<Arc<Tree>> {
    if fs::metadata(path).is_ok_and(|meta| !meta.is_dir()) {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "not a directory"));
    }
    Tree::create(path).map(Arc::new)
}

fn look_for(path: &Path) -> io::Result<Option<Arc<Tree>>> {
    match Tree::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(|tree| Some(Arc::new(tree))),
    }
}
