//! The interfaces of this host: their addresses, what they can carry, and which of them leads to a peer.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;

use fairwave_units::Rate;
use nix::net::if_::InterfaceFlags;

/// The system's directory of interfaces.
const SYSFS: &str = "/sys/class/net";
/// Stand for the world: documentation addresses, which lie behind the default route. Nothing is sent to them.
const WORLD: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];

/// An address of an interface that is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InterfaceAddress {
    /// The interface's name.
    pub(crate) name: String,
    /// The address.
    pub(crate) ip: IpAddr,
    /// Whether it leads back to this host.
    pub(crate) is_loopback: bool,
    /// Whether a cable is in it, or what stands for one.
    pub(crate) is_connected: bool,
}

/// All addresses of the interfaces that are up.
pub(crate) fn interface_addresses() -> io::Result<Vec<InterfaceAddress>> {
    let all = nix::ifaddrs::getifaddrs()?;
    let up = all.filter(|interface| interface.flags.contains(InterfaceFlags::IFF_UP));
    Ok(up
        .filter_map(|interface| {
            let address = interface.address?;
            let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
            let ip = v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))?;
            let is_loopback = interface.flags.contains(InterfaceFlags::IFF_LOOPBACK);
            let is_connected = interface.flags.contains(InterfaceFlags::IFF_RUNNING);
            Some(InterfaceAddress { name: interface.interface_name, ip, is_loopback, is_connected })
        })
        .collect())
}

/// The links of this host, as numbers that stand for them: those that are up, and lead to others.
pub(crate) fn zones() -> Vec<u32> {
    let flags = InterfaceFlags::IFF_UP;
    let all = nix::ifaddrs::getifaddrs().into_iter().flatten();
    let others = all.filter(|link| link.flags.contains(flags) && !link.flags.contains(InterfaceFlags::IFF_LOOPBACK));
    let v6 = others.filter_map(|link| link.address?.as_sockaddr_in6().copied());
    let mut zones: Vec<_> = v6.filter(|v6| v6.ip().is_unicast_link_local()).map(|v6| v6.scope_id()).collect();
    zones.sort_unstable();
    zones.dedup();
    zones
}

/// The address and interface from which this host sends to `peer`; `None` if no route leads there. Nothing is sent.
pub(crate) fn route_to(peer: IpAddr) -> Option<InterfaceAddress> {
    let any: IpAddr = if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(SocketAddr::new(peer, 9)).ok()?;
    let local = socket.local_addr().ok()?.ip();
    interface_addresses().ok()?.into_iter().find(|address| address.ip == local)
}

/// The addresses from which this host sends to the world: of IPv4 and of IPv6, where there is a default route.
pub(crate) fn default_routes() -> impl Iterator<Item = InterfaceAddress> {
    WORLD.into_iter().filter_map(route_to)
}

/// The speed of a network card; `None` if it is not a card, or if the card does not know.
///
/// Only an interface with a device behind it is credible: the system reports 10 Gb/s for veth and tun, and -1 for
/// virtio.
pub(crate) fn card_speed(name: &str) -> Option<Rate> {
    card_speed_in(Path::new(SYSFS), name)
}

/// The largest IP packet that an interface takes, in bytes.
pub(crate) fn interface_mtu(name: &str) -> Option<u32> {
    fs::read_to_string(Path::new(SYSFS).join(name).join("mtu")).ok()?.trim().parse().ok()
}

fn card_speed_in(sysfs: &Path, name: &str) -> Option<Rate> {
    let interface = sysfs.join(name);
    // Fails if it is not a card.
    fs::symlink_metadata(interface.join("device")).ok()?;
    // Reading also fails while the interface is down.
    let mbps: i64 = fs::read_to_string(interface.join("speed")).ok()?.trim().parse().ok()?;
    // "Unknown" of some drivers is -1 as an unsigned number of 16 or 32 bits.
    let is_known = mbps > 0 && mbps != i64::from(u16::MAX) && mbps < i64::from(u32::MAX);
    is_known.then(|| Rate::nearest_bps(mbps as f64 * 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn card_speed__takes_what_has_a_device_and_a_speed() {
        let place = tempfile::tempdir().unwrap();
        let interface = |name: &str, has_device: bool, speed: &str| {
            fs::create_dir(place.path().join(name)).unwrap();
            fs::write(place.path().join(name).join("speed"), speed).unwrap();
            if has_device {
                fs::create_dir(place.path().join(name).join("device")).unwrap();
            }
        };
        interface("eno1", true, "25000\n");
        interface("veth0", false, "10000\n");
        interface("virtio", true, "-1\n");
        interface("old", true, "65535\n");
        interface("older", true, "4294967295\n");
        interface("odd", true, "fast\n");
        let speed = |name: &str| card_speed_in(place.path(), name);
        assert_eq!(speed("eno1"), Some(Rate::gbps(25.0)));
        for name in ["veth0", "virtio", "old", "older", "odd", "absent"] {
            assert_eq!(speed(name), None, "{name}");
        }
    }

    #[test]
    fn route_to__this_host_is_loopback() {
        let route = route_to(Ipv4Addr::LOCALHOST.into()).unwrap();
        assert_eq!((route.ip, route.is_loopback), (Ipv4Addr::LOCALHOST.into(), true));
        assert!(interface_mtu(&route.name).unwrap() >= 1500);
    }
}
