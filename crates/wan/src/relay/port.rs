//! A host's access to the relay: a TUN device in its namespace.

use std::fs::OpenOptions;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::device::Device;
use crate::space::Space;

/// The device's name in the host's namespace.
pub fn device(port: usize) -> String {
    format!("port{port}")
}

/// An address of the host at a port: all of 10.66.PORT.0/24 and fd66:0:0:PORT::/64 is routed there.
///
/// # Panics
///
/// A relay has at most 256 ports: a byte of each address has the port's number.
pub fn address(port: usize, host: u8, is_ipv6: bool) -> IpAddr {
    let port = u8::try_from(port).expect("a relay has at most 256 ports");
    if is_ipv6 {
        Ipv6Addr::new(0xfd66, 0, 0, u16::from(port), 0, 0, 0, u16::from(host)).into()
    } else {
        Ipv4Addr::new(10, 66, port, host).into()
    }
}

/// One host's device, opened.
pub struct Port {
    pub(super) device: Device,
}

impl Port {
    /// Makes the device of port number `port` in `space`, with the addresses of its first host, and all routes into it:
    /// a TUN device or, if this user cannot open `/dev/net/tun`, a veth. An IP packet has at most `mtu` bytes.
    ///
    /// # Errors
    ///
    /// For a port above 255, and if the kernel permits neither device: users without root in the space may not make
    /// one.
    pub fn new(space: &Space, port: usize, mtu: u32) -> io::Result<Self> {
        if is_closed() { Self::by_veth(space, port, mtu) } else { Self::by_tun(space, port, mtu) }
    }

    /// Makes a port with a TUN device.
    pub fn by_tun(space: &Space, port: usize, mtu: u32) -> io::Result<Self> {
        Self::with(space, port, mtu, &|name| Device::tun(space, name))
    }

    /// Makes a port with a pair of veths, for unprivileged users who cannot open `/dev/net/tun`.
    pub fn by_veth(space: &Space, port: usize, mtu: u32) -> io::Result<Self> {
        Self::with(space, port, mtu, &|name| Device::veth(space, name, port))
    }

    fn with(space: &Space, port: usize, mtu: u32, make: &dyn Fn(&str) -> io::Result<Device>) -> io::Result<Self> {
        if port > usize::from(u8::MAX) {
            return Err(io::Error::other(format!("port {port}: a relay has at most 256")));
        }
        let name = device(port);
        let device = make(&name)?;
        // The relay reads packets much faster than they arrive; a long queue covers the times when it does not run.
        space.ip(&["link", "set", &name, "mtu", &mtu.to_string(), "txqueuelen", "20000", "up"])?;
        for is_ipv6 in [false, true] {
            space.add_address(&name, address(port, 1, is_ipv6), if is_ipv6 { 128 } else { 32 })?;
        }
        space.ip(&["route", "add", "10.66.0.0/16", "dev", &name])?;
        space.ip(&["-6", "route", "add", "fd66::/32", "dev", &name])?;
        Ok(Self { device })
    }
}

/// Whether this user cannot open TUN devices: root of a user namespace does not have root's permissions in /dev.
fn is_closed() -> bool {
    let opened = OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    opened.is_err_and(|error| matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound))
}

/// Packets that the kernel dropped before the relay since this port's device was made.
pub fn overflows(space: &Space, port: usize) -> io::Result<u64> {
    // /sys only shows the namespace of its mount; /proc/thread-self follows the thread.
    let table = space.run(|| std::fs::read_to_string("/proc/thread-self/net/dev"))??;
    let name = format!("{}:", device(port));
    let line = table.lines().find_map(|line| line.trim().strip_prefix(&name));
    // After the eight receive counters: bytes, packets, errors, drops.
    let dropped = line.and_then(|line| line.split_whitespace().nth(11)).and_then(|word| word.parse().ok());
    dropped.ok_or_else(|| io::Error::other(format!("no counters of {name}")))
}
