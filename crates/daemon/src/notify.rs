//! Notifications to systemd, and its sockets: sd_notify(3) and sd_listen_fds(3).

use std::io;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use rustix::time::{ClockId, clock_gettime};

/// The service manager that started this process and wants its status, if any.
#[derive(Debug, Default)]
pub struct Notifier {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl Notifier {
    /// From the environment: NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
    pub fn of_environment() -> Self {
        let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let is_here = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|_| is_here).map(Duration::from_micros);
        let address = std::env::var_os("NOTIFY_SOCKET").and_then(|name| address(name.as_bytes()).ok());
        Self::at(address, watchdog)
    }

    fn at(address: Option<SocketAddr>, watchdog: Option<Duration>) -> Self {
        let socket = address.and_then(|address| {
            let socket = UnixDatagram::unbound().ok()?;
            // A slow receiver must not delay a tick.
            socket.set_nonblocking(true).ok()?;
            Some((socket, address))
        });
        Self { socket, watchdog }
    }

    /// It serves from now on.
    pub fn ready(&self) {
        self.say("READY=1\nSTATUS=sharing the capacity of this machine");
    }

    /// It reads its file again; [`Self::ready`] follows.
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let us = now.tv_sec.saturating_mul(1_000_000).saturating_add(now.tv_nsec / 1000);
        self.say(&format!("RELOADING=1\nMONOTONIC_USEC={us}"));
    }

    /// It ends.
    pub fn stopping(&self) {
        self.say("STOPPING=1");
    }

    /// Keep-alive: send it once in every [`Self::watchdog_interval`].
    pub fn alive(&self) {
        self.say("WATCHDOG=1");
    }

    /// Status text for people.
    pub fn status(&self, words: &str) {
        self.say(&format!("STATUS={}", words.replace('\n', " ")));
    }

    /// Period of keep-alives: half of the time after which the daemon is considered dead. `None` for never.
    pub fn watchdog_interval(&self) -> Option<Duration> {
        self.watchdog.map(|span| span / 2)
    }

    fn say(&self, words: &str) {
        if let Some((socket, address)) = &self.socket {
            // Nobody may be listening any more.
            let _ = socket.send_to_addr(words.as_bytes(), address);
        }
    }
}

/// A path, or with "@" an abstract name.
fn address(name: &[u8]) -> io::Result<SocketAddr> {
    match name {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest),
        _ => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name)),
    }
}

/// The first descriptor that is handed over: sd_listen_fds(3).
const FIRST: i32 = 3;
/// More are not looked at.
const MOST: i32 = 16;

/// The sockets that whoever started this process hands over, by LISTEN_FDS, where LISTEN_PID means this process.
///
/// They are duplicates: the handed ones stay open as well, which costs nothing.
pub fn handed_sockets() -> io::Result<Vec<OwnedFd>> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    if number("LISTEN_PID") != Some(std::process::id()) {
        return Ok(Vec::new());
    }
    let count = number("LISTEN_FDS").map_or(0, |count| i32::try_from(count).unwrap_or(MOST).min(MOST));
    duplicates(FIRST..FIRST + count)
}

/// A number does not prove that a descriptor is open, so the system is asked, from the process that has it: this one.
fn duplicates(fds: std::ops::Range<i32>) -> io::Result<Vec<OwnedFd>> {
    let here = pidfd_open(getpid(), PidfdFlags::empty())?;
    fds.map(|fd| Ok(pidfd_getfd(&here, fd, PidfdGetfdFlags::empty())?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::net::UnixListener;

    #[test]
    fn notifier__says_how_it_is() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("notify");
        let systemd = UnixDatagram::bind(&path).unwrap();
        let notifier = Notifier::at(address(path.as_os_str().as_bytes()).ok(), Some(Duration::from_secs(10)));
        let heard = || {
            let mut room = [0; 256];
            let read = systemd.recv(&mut room).unwrap();
            String::from_utf8_lossy(&room[..read]).into_owned()
        };
        notifier.ready();
        assert!(heard().starts_with("READY=1\n"));
        notifier.reloading();
        let text = heard();
        let us: i64 = text.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap().parse().unwrap();
        assert!(us > 0);
        notifier.status("two\nlines=1");
        assert_eq!(heard(), "STATUS=two lines=1");
        notifier.alive();
        assert_eq!(heard(), "WATCHDOG=1");
        notifier.stopping();
        assert_eq!(heard(), "STOPPING=1");
        assert_eq!(notifier.watchdog_interval(), Some(Duration::from_secs(5)));
        // A closed service manager receives nothing, and sends do not fail.
        drop(systemd);
        notifier.ready();
        Notifier::default().ready();
        assert_eq!(Notifier::default().watchdog_interval(), None);
    }

    #[test]
    fn address__may_be_an_abstract_name() {
        let name = format!("@fairwave-test-{}", std::process::id());
        let at = address(name.as_bytes()).unwrap();
        let systemd = UnixDatagram::bind_addr(&at).unwrap();
        Notifier::at(Some(at), None).alive();
        let mut room = [0; 16];
        assert_eq!(systemd.recv(&mut room).unwrap(), 10);
        assert!(address(&[b'x'; 200]).is_err());
    }

    #[test]
    fn duplicates__are_the_sockets_that_are_open() {
        let place = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(place.path().join("d.sock")).unwrap();
        let fd = listener.as_raw_fd();
        let handed = UnixListener::from(duplicates(fd..fd + 1).unwrap().remove(0));
        assert_ne!(handed.as_raw_fd(), fd);
        let mut client = std::os::unix::net::UnixStream::connect(place.path().join("d.sock")).unwrap();
        std::io::Write::write_all(&mut client, b"x").unwrap();
        handed.accept().unwrap();
        assert!(duplicates(9999..10_000).is_err(), "nothing is open there");
        // Nobody handed this process anything.
        assert!(handed_sockets().unwrap().is_empty());
    }
}
