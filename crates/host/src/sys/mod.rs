//! Calls that Linux has and other systems lack, and what replaces them there.
//!
//! The files of a pair have the same names. `unix` is for macOS; with `--cfg fairwave_portable` Linux takes it as well,
//! so that it is tested there. Sockets depend on the kernel in any case.

#[cfg(all(target_os = "linux", not(fairwave_portable)))]
#[path = "linux.rs"]
mod system;
#[cfg(not(all(target_os = "linux", not(fairwave_portable))))]
#[path = "unix.rs"]
mod system;

#[cfg(target_os = "linux")]
#[path = "sockets_linux.rs"]
mod sockets;
#[cfg(not(target_os = "linux"))]
#[path = "sockets_unix.rs"]
mod sockets;

use fairwave_units::Duration;
use rustix::event::{PollFd, PollFlags};

pub use sockets::HANG_UP;
pub(crate) use sockets::*;
pub(crate) use system::{Bell, Readiness, exact_timers};

/// Events that a descriptor is watched for. Its failure is always reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interest {
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

/// A descriptor that is ready, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) number: u64,
    /// Whether there is something to read, or an end.
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    /// Whether nothing can be written any more.
    pub(crate) is_broken: bool,
}

impl Interest {
    pub(crate) const NONE: Self = Self { reads: false, writes: false };
    pub(crate) const READ: Self = Self { reads: true, writes: false };
    pub(crate) const WRITE: Self = Self { reads: false, writes: true };
    pub(crate) const BOTH: Self = Self { reads: true, writes: true };
}

/// Sleeps until a descriptor is ready, or for at most `wait`. Returns whether the first is readable.
pub(crate) fn wait_for(fds: &mut [PollFd<'_>], wait: Option<Duration>) -> bool {
    // A signal also wakes it; pending work is looked for in any case.
    let polled = system::poll_for(fds, wait);
    polled.is_ok_and(|ready| ready > 0) && fds.first().is_some_and(|first| first.revents().contains(PollFlags::IN))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn ready__is_what_was_asked_for() {
        let mut readiness = Readiness::new().unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        readiness.add(&ours, 7, Interest::READ).unwrap();
        assert_eq!(readiness.ready::<8>(), []);
        theirs.write_all(b"x").unwrap();
        let read = Ready { number: 7, reads: true, writes: false, is_broken: false };
        assert_eq!(readiness.ready::<8>(), [read]);
        readiness.change(&ours, 7, Interest::BOTH).unwrap();
        assert_eq!(readiness.ready::<8>(), [Ready { writes: true, ..read }]);
        readiness.change(&ours, 7, Interest::NONE).unwrap();
        assert_eq!(readiness.ready::<8>(), []);
        readiness.change(&ours, 7, Interest::READ).unwrap();
        readiness.remove(&ours);
        assert_eq!(readiness.ready::<8>(), []);
    }

    #[test]
    fn ready__of_the_end_of_a_stream_and_of_a_pipe_without_a_reader() {
        let mut readiness = Readiness::new().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        readiness.add(&ours, 1, Interest::READ).unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        readiness.add(&writer, 2, Interest::WRITE).unwrap();
        assert_eq!(readiness.ready::<8>().iter().map(|ready| ready.number).collect::<Vec<_>>(), [2]);
        drop((theirs, reader));
        let ready = readiness.ready::<8>();
        assert!(ready.iter().any(|ready| ready.number == 1 && ready.reads), "{ready:?}");
        assert!(ready.iter().any(|ready| ready.number == 2 && ready.is_broken), "{ready:?}");
    }

    #[test]
    fn ready__all_have_their_turn() {
        let mut readiness = Readiness::new().unwrap();
        let mut pairs: Vec<_> = (0..5).map(|_| UnixStream::pair().unwrap()).collect();
        for (number, (ours, theirs)) in (0..).zip(&mut pairs) {
            readiness.add(&*ours, number, Interest::READ).unwrap();
            theirs.write_all(b"x").unwrap();
        }
        // Nothing is read: all stay ready.
        let mut seen: Vec<_> = (0..3).flat_map(|_| readiness.ready::<2>()).map(|ready| ready.number).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn wait_for__ends_when_a_descriptor_of_the_set_is_ready() {
        let mut readiness = Readiness::new().unwrap();
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        readiness.add(&ours, 1, Interest::READ).unwrap();
        let (first, second) = (Bell::new().unwrap(), Bell::new().unwrap());
        let fds = || [PollFd::new(&first, PollFlags::IN), PollFd::new(&second, PollFlags::IN)];
        theirs.write_all(b"x").unwrap();
        // Without a limit: it would hang.
        assert!(!wait_for(readiness.with(fds()).as_mut(), None));
        ours.read_exact(&mut [0]).unwrap();
        assert!(!wait_for(readiness.with(fds()).as_mut(), Some(Duration::from_micros(10))));
        assert!(!wait_for(readiness.with(fds()).as_mut(), Some(Duration::from_millis(2))));
        second.ring();
        assert!(!wait_for(readiness.with(fds()).as_mut(), None));
        first.ring();
        assert!(wait_for(readiness.with(fds()).as_mut(), None));
    }
}
