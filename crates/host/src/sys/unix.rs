//! How a thread sleeps and is woken with the calls of POSIX.

use std::collections::BTreeMap;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use fairwave_units::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Interest, Ready};

/// A descriptor that is readable after a ring.
pub(crate) struct Bell {
    reader: PipeReader,
    writer: PipeWriter,
}

impl Bell {
    pub(crate) fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&reader, true)?;
        rustix::io::ioctl_fionbio(&writer, true)?;
        Ok(Self { reader, writer })
    }

    pub(crate) fn ring(&self) {
        // It fails only if the pipe is full of unread rings.
        let _ = rustix::io::write(&self.writer, &[1]);
    }

    pub(crate) fn clear(&self) {
        let mut room = [0; 64];
        while rustix::io::read(&self.reader, &mut room) == Ok(room.len()) {}
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

/// A set of descriptors under numbers, and which of them are ready.
#[derive(Default)]
pub(crate) struct Readiness {
    watched: BTreeMap<RawFd, Watched>,
    /// The descriptor that was ready last: those behind it have their turn first.
    last: RawFd,
}

struct Watched {
    /// A copy, which nobody else closes.
    fd: OwnedFd,
    number: u64,
    interest: Interest,
}

impl Readiness {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self::default())
    }

    pub(crate) fn add(&mut self, fd: impl AsFd, number: u64, interest: Interest) -> io::Result<()> {
        let copy = rustix::io::fcntl_dupfd_cloexec(&fd, 0)?;
        self.watched.insert(fd.as_fd().as_raw_fd(), Watched { fd: copy, number, interest });
        Ok(())
    }

    /// Changes what a descriptor of the set is watched for.
    pub(crate) fn change(&mut self, fd: impl AsFd, number: u64, interest: Interest) -> io::Result<()> {
        let watched = self.watched.get_mut(&fd.as_fd().as_raw_fd()).ok_or(io::ErrorKind::NotFound)?;
        (watched.number, watched.interest) = (number, interest);
        Ok(())
    }

    /// Removes a descriptor, also if others have it.
    pub(crate) fn remove(&mut self, fd: impl AsFd) {
        self.watched.remove(&fd.as_fd().as_raw_fd());
    }

    /// The ready descriptors, at most `MOST`: others have their turn with the next call.
    pub(crate) fn ready<const MOST: usize>(&mut self) -> Vec<Ready> {
        let mut fds: Vec<_> = self.watched.values().map(Watched::poll_fd).collect();
        if !poll(&mut fds, Some(&Timespec::default())).is_ok_and(|count| count > 0) {
            return Vec::new();
        }
        let all = || self.watched.iter().zip(&fds).map(|((fd, watched), polled)| (*fd, watched, polled.revents()));
        let last = self.last;
        let in_turn = all().filter(|(fd, ..)| *fd > last).chain(all().filter(|(fd, ..)| *fd <= last));
        let ready: Vec<_> = in_turn.filter(|(.., flags)| !flags.is_empty()).take(MOST).collect();
        let last = ready.last().map_or(last, |(fd, ..)| *fd);
        let ready = ready.into_iter().map(|(_, watched, flags)| watched.ready(flags)).collect();
        self.last = last;
        ready
    }

    /// These descriptors, and those of the set.
    pub(crate) fn with<'fd>(&'fd self, first: [PollFd<'fd>; 2]) -> impl AsMut<[PollFd<'fd>]> {
        first.into_iter().chain(self.watched.values().map(Watched::poll_fd)).collect::<Vec<_>>()
    }
}

impl Watched {
    fn poll_fd(&self) -> PollFd<'_> {
        let reads = if self.interest.reads { PollFlags::IN } else { PollFlags::empty() };
        let writes = if self.interest.writes { PollFlags::OUT } else { PollFlags::empty() };
        PollFd::new(&self.fd, reads | writes)
    }

    fn ready(&self, flags: PollFlags) -> Ready {
        let is_hung_up = flags.contains(PollFlags::HUP);
        let has_failed = flags.intersects(PollFlags::ERR | PollFlags::NVAL);
        Ready {
            number: self.number,
            reads: flags.contains(PollFlags::IN) || is_hung_up || has_failed,
            writes: flags.contains(PollFlags::OUT),
            // macOS reports a pipe without a reader as hung up.
            is_broken: has_failed || (is_hung_up && !self.interest.reads),
        }
    }
}

/// `poll` rounds shorter times up to this one on systems that have no `ppoll`, such as macOS.
const POLL_UNIT: Duration = Duration::from_millis(1);

/// Waits until a descriptor is ready, or for at most `wait`. Returns how many are.
pub(super) fn poll_for(fds: &mut [PollFd<'_>], wait: Option<Duration>) -> rustix::io::Result<usize> {
    let zero = Timespec::default();
    let Some(wait) = wait else { return poll(fds, None) };
    let wait = std::time::Duration::from_nanos(wait.as_nanos());
    if wait >= std::time::Duration::from_nanos(POLL_UNIT.as_nanos()) {
        // The rest is waited for with the next call.
        let whole = std::time::Duration::from_millis(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        return poll(fds, Timespec::try_from(whole).ok().as_ref());
    }
    match poll(fds, Some(&zero)) {
        Ok(0) if !wait.is_zero() => {
            // Packets that arrive during the sleep wait for less than a millisecond.
            std::thread::sleep(wait);
            poll(fds, Some(&zero))
        }
        polled => polled,
    }
}

/// Sleeps end when they end.
pub(crate) fn exact_timers() {}
