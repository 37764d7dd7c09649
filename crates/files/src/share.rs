//! The files that a server offers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use fairwave_host::{Accept, Handler, Judge, Lock, OwnPlaces, Visitor};
use fairwave_proto::Terms;
use fairwave_proto::codec::{Refusal, TicketId};
use fairwave_proto::handshake::Prefix;

use super::once::TicketUses;
use crate::filter::choice::Filter;
use crate::filter::selection::NameSelection;
use crate::format::greeting::{Greeting, Look};
use crate::give::giving_end::GivingEnd;
use crate::give::list_options::ListOptions;
use crate::give::roots::{GivenPaths, Roots};
use crate::give::share_name::share_name;
use crate::give::supply::Readers;
use crate::open_rates::OpenRates;
use crate::sftp::tree::SftpTree;
use crate::take::get::Intake;
use crate::take::share_options::ShareOptions;
use crate::transfer::error::ShareError;
use crate::transfer::ledger::{Ledger, Transfer};
use crate::transfer::memory::Holder;
use crate::transfer::visit::{Visit, VisitKind};

/// Max ended transfers that are still reported,
const MAX_OVER: usize = 64;
/// and max memory of the lists of their outcomes, together, bytes.
const MAX_OVER_BYTES: usize = 32 << 20;
/// Transfers under way with one ticket: each may take threads and a descriptor for each path of the share.
const MAX_OF_TICKET: usize = 256;

/// Threads that read from an SFTP server: with 4 MiB each, requests are in flight while others are hashed.
const SFTP_READERS: usize = 4;

/// Files that a server offers to the holders of its tickets.
///
/// Each visitor gets the files that exist when it connects: the paths are listed again for each.
pub struct Share {
    paths: Vec<PathBuf>,
    /// The paths of an SFTP server, in place of those of this machine.
    far: Option<Arc<SftpTree>>,
    options: ShareOptions,
    name: [u8; 16],
    readers: Arc<Readers>,
    intake: Option<Intake>,
    visits: Lock<Vec<Visit>>,
    /// Owners of the tickets for one transfer.
    claims: TicketUses,
    /// Rate limit of opening sessions, per ticket.
    opens: Lock<OpenRates>,
    next: AtomicU64,
}

impl Share {
    /// Offers these paths. They have to exist and be readable. There may be none, if visitors may put.
    pub fn new(paths: Vec<PathBuf>, options: ShareOptions) -> Result<Self, ShareError> {
        if options.writable_into.is_none() || !paths.is_empty() {
            Roots::find(&paths)?;
        }
        let intake = options.writable_into.clone().map(|path| {
            let own = OwnPlaces::find();
            if let Some(place) = own.around(&path) {
                return Err(ShareError::own(&path, place));
            }
            let place = own.below(&path).next().filter(|_| !options.may_hold_keys).map(Path::to_owned);
            if let Some(place) = place {
                return Err(ShareError::Open { path, place });
            }
            Intake::new(path.clone(), &options).map_err(|error| ShareError::NotWritable { path, error })
        });
        let name = share_name(&paths);
        let readers = Readers::start().map_err(ShareError::Thread)?;
        let (intake, visits, next) = (intake.transpose()?, Lock::default(), AtomicU64::new(0));
        let (claims, opens) = (TicketUses::default(), Lock::default());
        Ok(Self { paths, far: None, options, name, readers, intake, visits, claims, opens, next })
    }

    /// Offers files of an SFTP server, which the taker knows again by `place`.
    pub fn of_sftp(tree: SftpTree, place: PathBuf, options: ShareOptions) -> Result<Self, ShareError> {
        let paths = vec![place];
        let (name, far) = (share_name(&paths), Some(Arc::new(tree)));
        let readers = Readers::start_at_least(SFTP_READERS).map_err(ShareError::Thread)?;
        let (intake, visits, next) = (None, Lock::default(), AtomicU64::new(0));
        let (claims, opens) = (TicketUses::default(), Lock::default());
        Ok(Self { paths, far, options, name, readers, intake, visits, claims, opens, next })
    }

    /// Whether a visitor is allowed its request, without disk access: an answer for
    /// [`fairwave_host::Endpoint::listen_with`].
    pub fn judge(&self, visitor: &Visitor<'_>) -> Result<Terms, Refusal> {
        if !self.opens.lock().has_room(Instant::now(), visitor.ticket) {
            return Err(Refusal::NoRoom);
        }
        if let Some(one_use) = &visitor.one_use
            && let Some(refusal) = self.claims.refusal(Instant::now(), visitor.ticket, one_use.follows.as_ref())
        {
            return Err(refusal);
        }
        match Greeting::read(visitor.greeting) {
            // A place that only takes gives nothing.
            Ok(Greeting::Get(_)) if !visitor.receives || self.paths.is_empty() || self.options.only_takes => {
                Err(Refusal::Direction)
            }
            Ok(Greeting::Put(_)) if !(visitor.sends && visitor.receives) || self.intake.is_none() => {
                Err(Refusal::Direction)
            }
            // Even a dry run would name what others put there.
            Ok(Greeting::Put(Look { deletes: Some(_), .. })) if !self.options.may_delete => Err(Refusal::Direction),
            Ok(Greeting::Put(Look { archive: Some(_), .. })) if !self.options.may_archive => Err(Refusal::Direction),
            Ok(Greeting::Bench(_)) => Err(Refusal::Purpose),
            Err(_) => Err(Refusal::UnknownName),
            Ok(_) if visitor.sessions >= MAX_OF_TICKET => Err(Refusal::NoRoom),
            Ok(_) => Ok(self.options.session),
        }
    }

    /// Handles a visitor whose session is open: an answer for [`fairwave_host::Endpoint::listen`].
    pub fn visit(&self, visitor: &Visitor<'_>) -> Result<(Terms, Box<dyn Handler>), Refusal> {
        self.judge(visitor)?;
        self.opens.lock().count(Instant::now(), visitor.ticket);
        match Greeting::read(visitor.greeting) {
            Ok(Greeting::Get(walk)) => {
                let ledger = Ledger::default();
                ledger.tally().let_choose();
                // Its own thread resolves them: earlier paths may be gone.
                let given = self.far.clone().map_or_else(|| self.paths.clone().into(), GivenPaths::Far);
                let source = GivingEnd::new(given, self.name, Arc::clone(&self.readers), ledger.clone());
                let holder = Holder::Visitor(visitor.ticket, Prefix::of(visitor.from.ip()));
                let listing = ListOptions {
                    changed_until_unix_s: visitor.goes_on_since_unix_s,
                    filter: Filter {
                        stays_on_file_system: walk.stays_on_file_system,
                        obeys_gitignore: walk.obeys_gitignore,
                        ..Filter::default()
                    },
                    holder,
                    names: NameSelection::default(),
                    depth: None,
                    lists_left_out: walk.lists_left_out,
                    lists_attributes: walk.lists_attributes,
                };
                let source = source.listing(listing).held_by(holder);
                let handler = Box::new(source.with_limit(self.options.limit));
                Ok((self.options.session, self.enter(visitor, VisitKind::Get, ledger.transfer(), handler)))
            }
            Ok(Greeting::Put(look)) => {
                let intake = self.intake.as_ref().ok_or(Refusal::Direction)?;
                let is_dry = look.is_dry || self.options.is_dry;
                // Chunks that are not fetched show what others put there.
                let may_look = self.options.may_hold_keys || !(self.paths.is_empty() || self.options.only_takes);
                let look = Look { is_fuzzy: look.is_fuzzy && may_look, ..look };
                let taken = intake.take(visitor.ticket, visitor.from.ip(), look);
                let (handler, transfer) = taken.map_err(|error| error.refuses())?;
                let kind = if is_dry { VisitKind::DryPut } else { VisitKind::Put };
                Ok((self.options.session, self.enter(visitor, kind, transfer, handler)))
            }
            Ok(Greeting::Bench(_)) | Err(_) => Err(Refusal::Purpose),
        }
    }

    /// [`Share::judge`], in the form that an endpoint takes.
    pub fn judges(self: &Arc<Self>) -> Judge {
        let share = Arc::clone(self);
        Box::new(move |visitor| share.judge(visitor))
    }

    /// [`Share::visit`], in the form that an endpoint takes.
    pub fn accept(self: &Arc<Self>) -> Accept {
        let share = Arc::clone(self);
        Box::new(move |visitor| share.visit(visitor))
    }

    /// Its running transfers, and the last ones that ended: at most 64, fewer if their lists are long.
    pub fn transfers(&self) -> Vec<Visit> {
        drop(self.forget());
        self.visits.lock().clone()
    }

    /// Whether a ticket for one transfer has an owner: a session is open with it, or was lost and may be resumed.
    pub fn is_held(&self, ticket: TicketId) -> bool {
        self.claims.is_held(Instant::now(), ticket)
    }

    /// Admits a visitor; returns the handler of its session.
    fn enter(
        &self,
        visitor: &Visitor<'_>,
        kind: VisitKind,
        transfer: Transfer,
        handler: Box<dyn Handler>,
    ) -> Box<dyn Handler> {
        let handler = match visitor.one_use {
            Some(one_use) => Box::new(self.claims.claiming(visitor.ticket, one_use, kind, handler, &transfer)),
            None => handler,
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let visit = Visit { number, from: visitor.from, ticket: visitor.ticket, kind, transfer };
        self.visits.lock().push(visit);
        // They may never be queried.
        let forgotten = self.forget();
        if !forgotten.is_empty() {
            self.readers.drop_visits(forgotten);
        }
        handler
    }

    /// Removes the visits that are not reported any more. It reads no list, however long, and takes no other lock.
    fn forget(&self) -> Vec<Visit> {
        let mut visits = self.visits.lock();
        // Visitors that were announced and never opened a session are dropped.
        let is_nobody = |visit: &mut Visit| visit.transfer.is_over() && !visit.transfer.has_begun();
        let mut forgotten: Vec<_> = visits.extract_if(.., is_nobody).collect();
        let over = || visits.iter().filter(|visit| visit.transfer.is_over());
        let (mut count, mut bytes) = (over().count(), over().map(|visit| visit.transfer.listed_bytes()).sum::<usize>());
        let is_too_much = |visit: &mut Visit| {
            let is_too_much = (count > MAX_OVER || bytes > MAX_OVER_BYTES) && visit.transfer.is_over();
            if is_too_much {
                count -= 1;
                bytes = bytes.saturating_sub(visit.transfer.listed_bytes());
            }
            is_too_much
        };
        forgotten.extend(visits.extract_if(.., is_too_much));
        forgotten
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration as StdDuration;

    use fairwave_proto::codec::CloseReason;
    use fairwave_units::Duration;

    use super::super::collector::{Collector, tree};
    use super::super::loopback::{FAIR, Loopback, LoopbackPath, ROUGH};
    use super::*;
    use crate::format::greeting::Walk;
    use crate::transfer::outcome::Ended;

    fn visitor(greeting: &[u8]) -> Visitor<'_> {
        let from = ([127, 0, 0, 1], 9).into();
        Visitor {
            from,
            ticket: TicketId(7),
            greeting,
            sends: true,
            receives: true,
            sessions: 0,
            one_use: None,
            goes_on_since_unix_s: None,
        }
    }

    #[test]
    fn visit__each_gets_what_is_there_when_it_comes() {
        let place = tempfile::tempdir().unwrap();
        let (root, mut files) = tree(place.path(), &[10, 20]);
        let share = Arc::new(Share::new(vec![root.clone()], ShareOptions::default()).unwrap());
        let mut accept = share.accept();
        for round in 0..3_u64 {
            let (_, giver) = accept(&visitor(&Greeting::Get(Walk::default()).to_bytes())).unwrap();
            let (collector, taken) = Collector::new(true, false, || {});
            let mut loopback = Loopback::open(giver, Box::new(collector), true, FAIR);
            assert_eq!(loopback.run_out(StdDuration::from_secs(600)), Some(CloseReason::Done));
            assert!(taken.lock().unwrap().files == files);
            let visits = share.transfers();
            assert_eq!(visits.iter().map(|visit| visit.number).collect::<Vec<_>>(), (0..=round).collect::<Vec<_>>());
            let last = visits.last().unwrap();
            assert_eq!((last.ticket, last.kind), (TicketId(7), VisitKind::Get));
            assert_eq!(last.transfer.wait(Some(Duration::ZERO)).unwrap().ended, Ended::Done);
            fs::write(root.join("new"), [round as u8; 5]).unwrap();
            files.insert(b"data/new".to_vec(), vec![round as u8; 5]);
        }
    }

    /// Both ends as they are, without a network between them.
    #[test]
    fn visit__what_is_put_is_there() {
        // On the third way anybody changes bytes: of files, of hashes, of the list, and of the results. A block of some
        // 940 pieces comes unharmed three times in four.
        for way in [FAIR, ROUGH, LoopbackPath { forge: 0.0003, ..FAIR }] {
            let place = tempfile::tempdir().unwrap();
            let (root, files) = tree(place.path(), &[10, 0, 5_000_000, 70_000, 4 << 20, (4 << 20) + 1]);
            let into = place.path().join("into");
            fs::create_dir(&into).unwrap();
            let options = ShareOptions { writable_into: Some(into.clone()), ..ShareOptions::default() };
            let share = Share::new(vec![], options).unwrap();
            let (_, taker) = share.visit(&visitor(&Greeting::Put(Look::default()).to_bytes())).unwrap();
            let (giver, transfer) = crate::give::put::giver(&[root], &crate::give::put::PutOptions::default()).unwrap();
            let mut loopback = Loopback::open(giver, taker, false, way);
            assert_eq!(loopback.run_out(StdDuration::from_secs(600)), Some(CloseReason::Done));
            let outcome = transfer.wait(Some(Duration::ZERO)).unwrap();
            assert!(outcome.is_complete(), "{outcome:?}");
            assert_eq!((outcome.files, outcome.bytes), (6, files.values().map(|content| content.len() as u64).sum()));
            for (path, content) in &files {
                let path = into.join(std::str::from_utf8(path).unwrap());
                assert!(fs::read(&path).unwrap() == *content, "{}", path.display());
            }
            let visits = share.transfers();
            assert_eq!(visits[0].kind, VisitKind::Put);
            let taken = visits[0].transfer.wait(Some(Duration::from_secs(600))).unwrap();
            assert_eq!((taken.ended, taken.files), (Ended::Done, 6));
        }
    }

    /// However many sessions the other ticket has at the disk.
    #[test]
    fn visit__a_ticket_whose_disk_workers_are_busy_delays_no_other() {
        let place = tempfile::tempdir().unwrap();
        let (root, _) = tree(place.path(), &[10, 70_000]);
        let into = place.path().join("into");
        fs::create_dir(&into).unwrap();
        let options = ShareOptions { writable_into: Some(into.clone()), ..ShareOptions::default() };
        let share = Share::new(vec![], options).unwrap();
        let other = place.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("file"), "x").unwrap();
        let put = |ticket: u64, root: &Path| {
            let greeting = Greeting::Put(Look::default()).to_bytes();
            let (_, taker) = share.visit(&Visitor { ticket: TicketId(ticket), ..visitor(&greeting) }).unwrap();
            let (giver, _) = crate::give::put::giver(&[root.to_owned()], &crate::PutOptions::default()).unwrap();
            Loopback::open(giver, taker, false, FAIR)
        };
        let slots = share.intake.as_ref().unwrap().worker_slots().of(TicketId(1));
        let busy: Vec<_> = (0..crate::take::disk::worker_slots::worker_count()).map(|_| slots.take()).collect();
        let mut delayed = put(1, &root);
        (0..1000).for_each(|_| _ = delayed.step());
        assert_eq!(put(2, &other).run_out(StdDuration::from_secs(600)), Some(CloseReason::Done));
        assert_eq!(fs::read(into.join("other/file")).unwrap(), b"x");
        assert!(!into.join("data/00000").exists(), "a worker has written without a slot");
        drop(busy);
        assert_eq!(delayed.run_out(StdDuration::from_secs(600)), Some(CloseReason::Done));
        assert!(into.join("data/00000").exists());
    }

    #[test]
    fn visit__who_never_opens_is_not_listed() {
        let place = tempfile::tempdir().unwrap();
        let share = Share::new(vec![place.path().to_owned()], ShareOptions::default()).unwrap();
        let handler = share.visit(&visitor(&Greeting::Get(Walk::default()).to_bytes())).unwrap().1;
        assert_eq!(share.transfers().len(), 1);
        drop(handler);
        assert_eq!(share.transfers().len(), 0);
    }

    /// The network thread does not look at the disk: the session opens, and is refused by the thread that looks.
    #[test]
    fn visit__of_what_has_gone_is_refused_when_it_is_looked_for() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("data");
        fs::create_dir(&root).unwrap();
        let share = Share::new(vec![root.clone()], ShareOptions::default()).unwrap();
        let writable = ShareOptions { writable_into: Some(root.clone()), ..ShareOptions::default() };
        let writable = Share::new(vec![], writable).unwrap();
        fs::remove_dir(&root).unwrap();
        let refused = Some(CloseReason::Refused(Refusal::UnknownName));
        let (_, giver) = share.visit(&visitor(&Greeting::Get(Walk::default()).to_bytes())).unwrap();
        let (collector, _) = Collector::new(true, false, || {});
        let mut loopback = Loopback::open(giver, Box::new(collector), true, FAIR);
        assert_eq!(loopback.run_out(StdDuration::from_secs(600)), refused);
        let (_, taker) = writable.visit(&visitor(&Greeting::Put(Look::default()).to_bytes())).unwrap();
        let (giver, _) = crate::give::put::giver(&[place.path().into()], &crate::PutOptions::default()).unwrap();
        let mut loopback = Loopback::open(giver, taker, false, FAIR);
        assert_eq!(loopback.run_out(StdDuration::from_secs(600)), refused);
    }

    #[test]
    fn fuzzy__shows_nothing_of_what_others_put() {
        let mut content = vec![0; 1 << 20];
        blake3::Hasher::new().finalize_xof().fill(&mut content);
        for may_hold_keys in [false, true] {
            let place = tempfile::tempdir().unwrap();
            let (inbox, new) = (place.path().join("inbox"), place.path().join("new"));
            fs::create_dir(&inbox).unwrap();
            let old = inbox.join("old");
            for path in [&old, &new] {
                fs::write(path, &content).unwrap();
                fs::File::options().write(true).open(path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
            }
            let options = ShareOptions { writable_into: Some(inbox.clone()), may_hold_keys, ..ShareOptions::default() };
            let share = Share::new(vec![], options).unwrap();
            let put = crate::PutOptions { fuzzy: true, ..crate::PutOptions::default() };
            let greeting = Greeting::Put(crate::give::put::look(&put)).to_bytes();
            let (_, taker) = share.visit(&visitor(&greeting)).unwrap();
            let (giver, _) = crate::give::put::giver(&[new], &put).unwrap();
            let mut loopback = Loopback::open(giver, taker, false, FAIR);
            loopback.run_out(StdDuration::from_secs(600));
            assert!(fs::read(inbox.join("new")).unwrap() == content);
            // Only their own user has it found.
            assert_eq!(loopback.carried.iter().sum::<u64>() < 1 << 20, may_hold_keys);
        }
    }

    #[test]
    fn visit__a_ticket_opens_so_many_sessions_a_second() {
        let place = tempfile::tempdir().unwrap();
        let share = Share::new(vec![place.path().to_owned()], ShareOptions::default()).unwrap();
        let get = Greeting::Get(Walk::default()).to_bytes();
        let refused = (0..1000).find_map(|_| share.visit(&visitor(&get)).err());
        assert_eq!(refused, Some(Refusal::NoRoom));
        let other = Visitor { ticket: TicketId(8), ..visitor(&get) };
        assert!(share.visit(&other).is_ok(), "another ticket has its own");
    }

    #[test]
    fn visit__is_refused_with_a_reason() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("data");
        fs::create_dir(&root).unwrap();
        let share = Share::new(vec![root.clone()], ShareOptions::default()).unwrap();
        let writable = ShareOptions { writable_into: Some(root.clone()), ..ShareOptions::default() };
        let writable = Share::new(vec![], writable).unwrap();
        let refused = |visitor: &Visitor<'_>| share.visit(visitor).err();
        let get = Greeting::Get(Walk::default()).to_bytes();
        assert_eq!(refused(&visitor(&Greeting::Put(Look::default()).to_bytes())), Some(Refusal::Direction));
        let put = Greeting::Put(Look::default()).to_bytes();
        assert_eq!(writable.visit(&Visitor { receives: false, ..visitor(&put) }).err(), Some(Refusal::Direction));
        assert_eq!(writable.visit(&visitor(&get)).err(), Some(Refusal::Direction));
        assert_eq!(refused(&Visitor { receives: false, ..visitor(&get) }), Some(Refusal::Direction));
        // An inbox gives nothing of what lies in it.
        let inbox = ShareOptions { writable_into: Some(root.clone()), only_takes: true, ..ShareOptions::default() };
        let inbox = Share::new(vec![root.clone()], inbox).unwrap();
        assert_eq!(inbox.judge(&visitor(&get)).err(), Some(Refusal::Direction));
        assert_eq!(inbox.judge(&visitor(&Greeting::Put(Look::default()).to_bytes())).err(), None);
        assert_eq!(refused(&visitor(&[])), Some(Refusal::UnknownName));
        // One ticket cannot take everything that the process has.
        for (sessions, refusal) in [(MAX_OF_TICKET - 1, None), (MAX_OF_TICKET, Some(Refusal::NoRoom))] {
            assert_eq!(share.judge(&Visitor { sessions, ..visitor(&get) }).err(), refusal);
            assert_eq!(writable.judge(&Visitor { sessions, ..visitor(&put) }).err(), refusal);
        }
        for way in [0, 1, 2, 250] {
            assert_eq!(refused(&visitor(&Greeting::Bench(&[way]).to_bytes())), Some(Refusal::Purpose));
        }
        assert_eq!(refused(&visitor(&get)), None);
        fs::remove_dir(&root).unwrap();
        assert!(matches!(Share::new(vec![root.clone()], ShareOptions::default()), Err(ShareError::Unreadable { .. })));
        assert!(matches!(Share::new(vec![], ShareOptions::default()), Err(ShareError::Nothing)));
        fs::write(&root, "").unwrap();
        let writable = ShareOptions { writable_into: Some(root), ..ShareOptions::default() };
        assert!(matches!(Share::new(vec![], writable), Err(ShareError::NotWritable { .. })));
    }
}
