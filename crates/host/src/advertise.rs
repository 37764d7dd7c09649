//! Which addresses go into a ticket.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use nix::net::if_::if_nametoindex;

use crate::interface::{InterfaceAddress, default_routes, interface_addresses};
use crate::ticket::MAX_ADDRESSES;

/// The default UDP port of a host. It lies below the ephemeral port range of common systems.
pub const DEFAULT_PORT: u16 = 8642;

/// Parses a listen address as users write it, with or without a port (default [`DEFAULT_PORT`]). A link-local address
/// has a zone: the interface's name or index.
pub fn listen_address(text: &str) -> Option<SocketAddr> {
    let Some((start, rest)) = text.split_once('%') else { return plain_address(text) };
    let (zone, end) = rest.split_at(rest.find(']').unwrap_or(rest.len()));
    match plain_address(&format!("{start}{end}"))? {
        SocketAddr::V6(address) if address.ip().is_unicast_link_local() => {
            let zone = zone.parse().ok().or_else(|| if_nametoindex(zone).ok()).filter(|zone| *zone != 0)?;
            Some(SocketAddrV6::new(*address.ip(), address.port(), 0, zone).into())
        }
        _ => None,
    }
}

fn plain_address(text: &str) -> Option<SocketAddr> {
    let ip = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    text.parse().ok().or_else(|| Some(SocketAddr::new(ip.parse().ok()?, DEFAULT_PORT)))
}

/// The addresses at which peers may find a socket of this host, the best first: the one that it is bound to, or else
/// all of the host's that others can reach: no link-local ones, and loopback only if the host has no other.
///
/// Those of the default route come first, then those of links that are connected, and of each kind IPv6 before IPv4. No
/// more than a ticket holds; [`unadvertised`] has the rest.
pub fn advertised(bound: SocketAddr) -> io::Result<Vec<SocketAddr>> {
    let mut all = reachable(bound)?;
    all.truncate(MAX_ADDRESSES);
    Ok(all)
}

/// The addresses at which peers may find a socket of this host, and for which a ticket has no room.
pub fn unadvertised(bound: SocketAddr) -> io::Result<Vec<SocketAddr>> {
    Ok(reachable(bound)?.into_iter().skip(MAX_ADDRESSES).collect())
}

fn reachable(bound: SocketAddr) -> io::Result<Vec<SocketAddr>> {
    match bound {
        SocketAddr::V6(address) if address.ip().is_unicast_link_local() => return Ok(vec![bound]),
        _ if !bound.ip().to_canonical().is_unspecified() => {
            return Ok(vec![SocketAddr::new(bound.ip().to_canonical(), bound.port())]);
        }
        _ => {}
    }
    let takes_v6 = bound.is_ipv6();
    let routes: Vec<_> = default_routes().map(|route| route.ip).collect();
    Ok(chosen(interface_addresses()?, &routes, takes_v6).map(|ip| SocketAddr::new(ip, bound.port())).collect())
}

fn chosen(all: Vec<InterfaceAddress>, routes: &[IpAddr], takes_v6: bool) -> impl Iterator<Item = IpAddr> + use<> {
    let mut reachable: Vec<_> =
        all.into_iter().filter(|address| !is_of_a_link(address.ip) && (takes_v6 || address.ip.is_ipv4())).collect();
    if reachable.iter().any(|address| !address.is_loopback) {
        reachable.retain(|address| !address.is_loopback);
    }
    // Stable: else the system's order stays.
    reachable.sort_by_key(|address| (!routes.contains(&address.ip), !address.is_connected, address.ip.is_ipv4()));
    let mut ips: Vec<_> = reachable.into_iter().map(|address| address.ip).collect();
    ips.dedup();
    ips.into_iter()
}

/// Whether an address is link-local.
fn is_of_a_link(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_unspecified(),
        IpAddr::V6(ip) => ip.is_unicast_link_local() || ip.is_unspecified(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_address__has_the_usual_port_where_none_is_said() {
        for (text, address) in [
            ("127.0.0.1", "127.0.0.1:8642"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("::1", "[::1]:8642"),
            ("[::1]", "[::1]:8642"),
            ("[::1]:9000", "[::1]:9000"),
            ("fe80::1%7", "[fe80::1%7]:8642"),
            ("[fe80::1%7]", "[fe80::1%7]:8642"),
            ("[fe80::1%7]:9000", "[fe80::1%7]:9000"),
        ] {
            assert_eq!(listen_address(text), Some(address.parse().unwrap()), "{text}");
        }
        // An interface by its name: each system has this one.
        let of_link = listen_address("[fe80::1%lo]:9").unwrap();
        assert_eq!(of_link, SocketAddrV6::new("fe80::1".parse().unwrap(), 9, 0, if_nametoindex("lo").unwrap()).into());
        for text in
            ["here", "127.0.0.1:", "", "[", "[]", "8642", "fe80::1%", "fe80::1%no-such", "::1%lo", "127.0.0.1%lo"]
        {
            assert_eq!(listen_address(text), None, "{text}");
        }
    }

    #[test]
    fn chosen__no_link_local_and_no_loopback() {
        let all = [("lo", "127.0.0.1"), ("lo", "::1"), ("a", "169.254.1.1"), ("a", "fe80::1"), ("b", "192.0.2.5")];
        assert_eq!(picked(&all, &[], true), ["192.0.2.5"]);
    }

    #[test]
    fn chosen__loopback_if_there_is_nothing_else() {
        let all = [("lo", "127.0.0.1"), ("lo", "::1"), ("a", "fe80::1")];
        assert_eq!(picked(&all, &[], true), ["::1", "127.0.0.1"]);
        assert_eq!(picked(&all, &[], false), ["127.0.0.1"]);
    }

    #[test]
    fn chosen__the_default_route_first_and_v6_before_v4() {
        let all = [("docker0", "172.17.0.1"), ("a", "192.0.2.5"), ("docker0", "fd00::1"), ("a", "2001:db8::5")];
        let order = picked(&all, &["192.0.2.5", "2001:db8::5"], true);
        assert_eq!(order, ["2001:db8::5", "192.0.2.5", "fd00::1", "172.17.0.1"]);
    }

    #[test]
    fn chosen__links_without_a_cable_come_last() {
        let all = [("down0", "2001:db8::9"), ("down1", "192.0.2.9"), ("a", "192.0.2.5"), ("a", "2001:db8::5")];
        assert_eq!(picked(&all, &[], true), ["2001:db8::5", "192.0.2.5", "2001:db8::9", "192.0.2.9"]);
    }

    #[test]
    fn advertised__an_address_of_a_link_keeps_its_zone() {
        let bound: SocketAddr = "[fe80::1%7]:8642".parse().unwrap();
        assert_eq!(advertised(bound).unwrap(), [bound]);
    }

    #[test]
    fn chosen__all_and_of_these_no_more_than_a_ticket_holds() {
        let names: Vec<_> = (0..40).map(|n| format!("192.0.2.{n}")).collect();
        let all: Vec<_> = names.iter().map(|ip| ("a", ip.as_str())).collect();
        assert_eq!(picked(&all, &[], true).len(), 40);
        let bound = "192.0.2.1:8642".parse().unwrap();
        assert_eq!((advertised(bound).unwrap().len(), unadvertised(bound).unwrap().len()), (1, 0));
        assert!(advertised("[::]:8642".parse().unwrap()).unwrap().len() <= MAX_ADDRESSES);
    }

    #[test]
    fn advertised__is_the_address_that_a_socket_is_bound_to() {
        let bound: SocketAddr = "127.0.0.1:8642".parse().unwrap();
        assert_eq!(advertised(bound).unwrap(), [bound]);
        let mapped: SocketAddr = "[::ffff:192.0.2.1]:8642".parse().unwrap();
        assert_eq!(advertised(mapped).unwrap(), ["192.0.2.1:8642".parse().unwrap()]);
    }

    #[test]
    fn advertised__all_have_the_sockets_port() {
        let addresses = advertised("[::]:8642".parse().unwrap()).unwrap();
        assert!(!addresses.is_empty() && addresses.iter().all(|address| address.port() == 8642), "{addresses:?}");
    }

    fn picked(all: &[(&str, &str)], routes: &[&str], takes_v6: bool) -> Vec<String> {
        let address = |(name, ip): &(&str, &str)| {
            let ip: IpAddr = ip.parse().unwrap();
            let is_connected = !name.starts_with("down");
            InterfaceAddress { name: (*name).into(), ip, is_loopback: *name == "lo", is_connected }
        };
        let routes: Vec<IpAddr> = routes.iter().map(|ip| ip.parse().unwrap()).collect();
        chosen(all.iter().map(address).collect(), &routes, takes_v6).map(|ip| ip.to_string()).collect()
    }
}
