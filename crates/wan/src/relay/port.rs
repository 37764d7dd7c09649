//! A host's way into the relay: a TUN device in its namespace.

use std::fs::OpenOptions;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::device::Device;
use crate::space::Space;

/// The device's name in the host's namespace.
pub fn device(port: usize) -> String {
    format!("port{port}")
}

/// An address of the host behind a port: all of 10.66.PORT.0/24 and fd66:0:0:PORT::/64 leads there.
///
/// # Panics
///
/// A relay has at most 256 ports: a byte of each address names the port.
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
    /// a TUN device, or where `/dev/net/tun` is closed to this user a veth. An IP packet has at most `mtu` bytes.
    ///
    /// # Errors
    ///
    /// For a port above 255, and where the kernel gives neither device: who is not root of the space may have none.
    pub fn new(space: &Space, port: usize, mtu: u32) -> io::Result<Self> {
        if is_closed() { Self::by_veth(space, port, mtu) } else { Self::by_tun(space, port, mtu) }
    }

    /// The same, by a TUN device.
    pub fn by_tun(space: &Space, port: usize, mtu: u32) -> io::Result<Self> {
        Self::with(space, port, mtu, &|name| Device::tun(space, name))
    }

    /// The same, by a pair of veths: what an unprivileged user has where `/dev/net/tun` is closed.
    pub fn by_veth(space: &Space, port: usize, mtu: u32) -> io::Result<Self> {
        Self::with(space, port, mtu, &|name| Device::veth(space, name, port))
    }

    fn with(space: &Space, port: usize, mtu: u32, make: &dyn Fn(&str) -> io::Result<Device>) -> io::Result<Self> {
        if port > usize::from(u8::MAX) {
            return Err(io::Error::other(format!("port {port}: a relay has at most 256")));
        }
        let name = device(port);
        let device = make(&name)?;
        // The relay takes packets out much faster than they come in; a long queue bridges the times when it does not
        // run.
        space.ip(&["link", "set", &name, "mtu", &mtu.to_string(), "txqueuelen", "20000", "up"])?;
        for is_ipv6 in [false, true] {
            space.add_address(&name, address(port, 1, is_ipv6), if is_ipv6 { 128 } else { 32 })?;
        }
        space.ip(&["route", "add", "10.66.0.0/16", "dev", &name])?;
        space.ip(&["-6", "route", "add", "fd66::/32", "dev", &name])?;
        Ok(Self { device })
    }
}

/// Whether TUN devices are not for this user: root of a user namespace is not whom the mode of a file in /dev means.
fn is_closed() -> bool {
    let opened = OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    opened.is_err_and(|error| matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound))
}

/// Packets that the device could not keep for the relay, since the device of this port is there.
pub fn overflows(space: &Space, port: usize) -> io::Result<u64> {
    // Of /sys only the mount's own namespace is seen; /proc/thread-self follows the thread.
    let table = space.run(|| std::fs::read_to_string("/proc/thread-self/net/dev"))??;
    let name = format!("{}:", device(port));
    let line = table.lines().find_map(|line| line.trim().strip_prefix(&name));
    // Behind the eight counters of receiving: bytes, packets, errors, drops.
    let dropped = line.and_then(|line| line.split_whitespace().nth(11)).and_then(|word| word.parse().ok());
    dropped.ok_or_else(|| io::Error::other(format!("no counters of {name}")))
}
