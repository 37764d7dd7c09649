//! How a thread of Linux sleeps and is woken.

use std::io;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use fairwave_units::Duration;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::{Interest, Ready};

/// A descriptor that is readable after a ring.
pub(crate) struct Bell(OwnedFd);

impl Bell {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(crate) fn ring(&self) {
        // It can only fail because it has been rung 2^64 times.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    pub(crate) fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A set of descriptors under numbers, and which of them are ready: idle ones cost the others no time.
pub(crate) struct Readiness(OwnedFd);

impl Readiness {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(epoll::create(CreateFlags::CLOEXEC)?))
    }

    pub(crate) fn add(&mut self, fd: impl AsFd, number: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.0, fd, EventData::new_u64(number), flags(interest))?)
    }

    /// Changes what a descriptor of the set is watched for.
    pub(crate) fn change(&mut self, fd: impl AsFd, number: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.0, fd, EventData::new_u64(number), flags(interest))?)
    }

    /// Removes a descriptor, also if others have it.
    pub(crate) fn remove(&mut self, fd: impl AsFd) {
        let _ = epoll::delete(&self.0, fd);
    }

    /// The ready descriptors, at most `MOST`: others have their turn with the next call.
    pub(crate) fn ready<const MOST: usize>(&mut self) -> Vec<Ready> {
        let mut room = [const { MaybeUninit::<Event>::uninit() }; MOST];
        let Ok((events, _)) = epoll::wait(&self.0, &mut room, Some(&Timespec::default())) else { return Vec::new() };
        let ready = |event: &Event| {
            let (data, flags) = (event.data, event.flags);
            Ready {
                number: data.u64(),
                reads: flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR),
                writes: flags.contains(EventFlags::OUT),
                is_broken: flags.contains(EventFlags::ERR),
            }
        };
        events.iter().map(ready).collect()
    }

    /// These descriptors, and those of the set.
    pub(crate) fn with<'fd>(&'fd self, [first, second]: [PollFd<'fd>; 2]) -> impl AsMut<[PollFd<'fd>]> {
        [first, second, PollFd::new(&self.0, PollFlags::IN)]
    }
}

fn flags(interest: Interest) -> EventFlags {
    let reads = if interest.reads { EventFlags::IN } else { EventFlags::empty() };
    reads | if interest.writes { EventFlags::OUT } else { EventFlags::empty() }
}

/// Waits until a descriptor is ready, or for at most `wait`. Returns how many are.
pub(super) fn poll_for(fds: &mut [PollFd<'_>], wait: Option<Duration>) -> rustix::io::Result<usize> {
    // Nothing is due so far ahead that the system cannot say it; if it were, asking again would do no harm.
    let timeout = wait.and_then(|wait| Timespec::try_from(std::time::Duration::from_nanos(wait.as_nanos())).ok());
    poll(fds, timeout.as_ref())
}

/// Makes the sleeps of this thread end on time: by default they end some 50 us late, which costs rate.
pub(crate) fn exact_timers() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}
