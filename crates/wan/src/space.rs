//! Network namespaces: small hosts on this machine.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Wait for a link to come up; the kernel takes less than a second where it is not busy.
const LINK_LIMIT: Duration = Duration::from_secs(120);

/// A network namespace without a name that could be left behind: it lives as long as this value and the processes in
/// it.
#[derive(Debug)]
pub struct Space {
    handle: File,
}

impl Space {
    /// Makes an empty namespace, with its loopback up.
    ///
    /// # Errors
    ///
    /// If the process is not root, neither really nor in a user namespace ([`become_root`](crate::become_root)).
    pub fn new() -> io::Result<Self> {
        let make = || {
            unshare(CloneFlags::CLONE_NEWNET)?;
            // The open file keeps the namespace after this thread has ended.
            File::open("/proc/thread-self/ns/net")
        };
        let space = Self { handle: on_thread(make)?? };
        space.ip(&["link", "set", "lo", "up"])?;
        Ok(space)
    }

    /// Opens a namespace with a name, made by `ip netns add`.
    pub fn named(name: &str) -> io::Result<Self> {
        Ok(Self { handle: File::open(PathBuf::from("/run/netns").join(name))? })
    }

    /// The reason why namespaces are not available here, if so.
    pub fn missing() -> Option<String> {
        if !rustix::process::geteuid().is_root() {
            return Some("network namespaces need root".into());
        }
        Self::new().err().map(|error| format!("no network namespaces here: {error}"))
    }

    /// Runs `work` on a thread in the namespace. Its sockets, threads and child processes stay in it.
    ///
    /// # Errors
    ///
    /// If no thread can be started, or this process may not enter.
    ///
    /// # Panics
    ///
    /// If `work` does.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        on_thread(|| {
            move_into_link_name_space(self.handle.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(work())
        })?
    }

    /// Runs `ip` in the namespace.
    pub fn ip(&self, arguments: &[&str]) -> io::Result<()> {
        self.command("ip", arguments)
    }

    /// Runs a command in the namespace to its end.
    pub fn command(&self, program: &str, arguments: &[&str]) -> io::Result<()> {
        self.run(|| run(Command::new(program).args(arguments)))?
    }

    /// Gives a device that is up an address, and waits until the kernel accepts packets to it (IPv6 without duplicate
    /// address detection).
    ///
    /// # Errors
    ///
    /// If `ip` fails, or the device does not come up, as a veth whose other end is down.
    pub fn add_address(&self, device: &str, address: IpAddr, prefix: u8) -> io::Result<()> {
        let (text, with_prefix) = (address.to_string(), format!("{address}/{prefix}"));
        if address.is_ipv4() {
            return self.ip(&["address", "add", &with_prefix, "dev", device]);
        }
        self.ip(&["address", "add", &with_prefix, "dev", device, "nodad"])?;
        // The local route comes with the event that the link is ready; until then packets to the address are dropped.
        let give_up = Instant::now() + LINK_LIMIT;
        let route = || Command::new("ip").args(["-6", "route", "show", "table", "local", &text]).output();
        while self.run(route)??.stdout.is_empty() {
            if Instant::now() > give_up {
                return Err(io::Error::other(format!("{device} does not come up: no local route to {text}")));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Removes an address from a device.
    pub fn remove_address(&self, device: &str, address: IpAddr, prefix: u8) -> io::Result<()> {
        self.ip(&["address", "del", &format!("{address}/{prefix}"), "dev", device])
    }

    /// The path for `ip link ... netns`.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.handle.as_raw_fd())
    }
}

/// Limits the rate of `device` (TBF).
pub fn limit(space: &Space, device: &str, rate_bps: u64, queue_bytes: u64) -> io::Result<()> {
    let (rate, queue) = (format!("{rate_bps}bit"), queue_bytes.to_string());
    space.command(
        "tc",
        &["qdisc", "replace", "dev", device, "root", "tbf", "rate", &rate, "burst", "65536", "limit", &queue],
    )
}

/// Runs `work` on a separate thread, and waits for it.
fn on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, work)?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim())))
}
