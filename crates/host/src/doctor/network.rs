//! Checks of the system's network, as seen by a socket.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use quinn_udp::{UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};

use super::check::Check;
use crate::advertise::advertised;
use crate::driver::grow;
use crate::interface::{card_speed, default_routes, interface_addresses, interface_mtu};
use crate::sys::{granted_buffer, raise_buffer};

/// Receive buffer of a fast receiver, bytes: some 10 ms at 10 Gb/s.
const BUFFER_BYTES: usize = 16 << 20;
/// Less loses packets when a receiver is held up for a few milliseconds.
const MIN_BUFFER_BYTES: usize = 4 << 20;
/// A datagram of 1200 bytes with the headers of UDP and IPv6.
const MIN_MTU: u32 = 1248;
const USUAL_MTU: u32 = 1500;
/// A datagram to oneself takes less, unless something drops it.
const PATIENCE: Duration = Duration::from_millis(500);

/// How much the system lets a socket buffer, each way.
pub(super) fn buffers() -> Vec<Check> {
    let each = |name: &str, which: &str, granted: io::Result<usize>| {
        let fix = raise_buffer(which, BUFFER_BYTES);
        match granted {
            Err(error) => Check::fail(name, format!("cannot open a socket: {error}"), "allow UDP sockets"),
            Ok(granted) => {
                let seen = format!("{} of {} requested", size(granted), size(BUFFER_BYTES));
                if granted < MIN_BUFFER_BYTES { Check::warn(name, seen, fix) } else { Check::ok(name, seen) }
            }
        }
    };
    let socket = || Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP));
    let receive = socket().and_then(|socket| {
        grow(BUFFER_BYTES, |bytes| socket.set_recv_buffer_size(bytes))?;
        Ok(granted_buffer(socket.recv_buffer_size()?))
    });
    let send = socket().and_then(|socket| {
        grow(BUFFER_BYTES, |bytes| socket.set_send_buffer_size(bytes))?;
        Ok(granted_buffer(socket.send_buffer_size()?))
    });
    vec![each("receive buffer", "rmem", receive), each("send buffer", "wmem", send)]
}

/// Whether the system takes and gives many datagrams at once.
pub(super) fn offloads() -> Check {
    const NAME: &str = "GSO and GRO";
    let look = || -> io::Result<(usize, usize)> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        Ok((state.max_gso_segments(), state.gro_segments()))
    };
    match look() {
        Err(error) => Check::fail(NAME, format!("cannot open a socket: {error}"), "allow UDP sockets"),
        Ok((gso, gro)) => {
            let seen = format!("{gso} datagrams per send, {gro} per receive");
            if gso > 1 && gro > 1 {
                Check::ok(NAME, seen)
            } else {
                Check::warn(
                    NAME,
                    seen,
                    "use Linux 5.0 or newer: without offload a gigabyte takes several times the CPU time",
                )
            }
        }
    }
}

/// The interfaces that lead to the world: what they take, and how fast they are.
pub(super) fn routes() -> Vec<Check> {
    // Of IPv4 and of IPv6, mostly the same.
    let names: BTreeSet<_> = default_routes().map(|route| route.name).collect();
    if names.is_empty() {
        let fix = "add a route, or use --listen with an address of the local network";
        return vec![Check::warn("route", "no default route", fix)];
    }
    let each = |name: String| {
        let mtu = interface_mtu(&name);
        let bytes = mtu.map_or("unknown".into(), |mtu| format!("{mtu} bytes"));
        let of_mtu = match mtu {
            Some(mtu) if mtu < MIN_MTU => {
                let fix = format!("sudo ip link set dev {name} mtu {USUAL_MTU}");
                Check::fail(format!("MTU of {name}"), format!("{bytes}; the minimum is {MIN_MTU}"), fix)
            }
            Some(mtu) if mtu < USUAL_MTU => {
                let fix = format!("sudo ip link set dev {name} mtu {USUAL_MTU}, unless it is a tunnel");
                Check::warn(format!("MTU of {name}"), bytes, fix)
            }
            _ => Check::ok(format!("MTU of {name}"), bytes),
        };
        let of_speed = match card_speed(&name) {
            Some(speed) => Check::ok(format!("speed of {name}"), format!("{speed:.2}")),
            None => Check::warn(
                format!("speed of {name}"),
                "unknown: fair shares are not guaranteed",
                "set it with --capacity \"1 Gb/s\"",
            ),
        };
        [of_mtu, of_speed]
    };
    names.into_iter().flat_map(each).collect()
}

/// Whether IPv6 can be used.
pub(super) fn ipv6() -> Check {
    const NAME: &str = "IPv6";
    if let Err(error) = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)) {
        return Check::warn(
            NAME,
            format!("off ({error}): only IPv4 is used"),
            "sudo sysctl -w net.ipv6.conf.all.disable_ipv6=0",
        );
    }
    let is_global = |ip: &Ipv6Addr| !(ip.is_loopback() || ip.is_unicast_link_local() || ip.is_unique_local());
    let addresses = interface_addresses().unwrap_or_default();
    let global = addresses.iter().filter_map(|address| match address.ip {
        std::net::IpAddr::V6(ip) => Some(ip).filter(is_global),
        std::net::IpAddr::V4(_) => None,
    });
    match global.count() {
        0 => Check::ok(NAME, "on, without a global address"),
        count => Check::ok(NAME, format!("on, {count} global addresses")),
    }
}

/// Whether datagrams to a port of this host arrive, at each of its addresses.
pub(super) fn port(port: u16) -> Check {
    let name = format!("UDP port {port}");
    let (socket, bound) = match listening(port) {
        Ok(listening) => listening,
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            return Check::ok(
                name,
                "in use by another process: Fairwave will use another port, or choose one with --listen",
            );
        }
        Err(error) => {
            return Check::fail(name, format!("cannot open: {error}"), "choose another port: --listen ADDR:PORT");
        }
    };
    let addresses = advertised(bound).unwrap_or_default();
    let lost: Vec<_> = addresses.iter().filter(|to| !arrives(&socket, **to).unwrap_or(false)).collect();
    if lost.is_empty() {
        return Check::ok(name, format!("open on {} addresses, as seen from this host", addresses.len()));
    }
    let mut seen = String::from("datagrams do not arrive at");
    for address in lost {
        let _ = write!(seen, " {address}");
    }
    Check::fail(name, seen, format!("allow UDP in the firewall: {}", open_port(bound.port())))
}

/// The command that opens a port, for the firewalls that most have.
pub(super) fn open_port(port: u16) -> String {
    format!(
        "sudo ufw allow {port}/udp, or sudo firewall-cmd --add-port={port}/udp, or sudo iptables -I INPUT -p udp --dport {port} -j ACCEPT"
    )
}

fn listening(port: u16) -> io::Result<(UdpSocket, SocketAddr)> {
    let v6 = || -> io::Result<UdpSocket> {
        let socket = Socket::new(Domain::IPV6, Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_only_v6(false)?;
        socket.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)).into())?;
        Ok(socket.into())
    };
    let socket = match v6() {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?,
        other => other?,
    };
    socket.set_read_timeout(Some(PATIENCE))?;
    let bound = socket.local_addr()?;
    Ok((socket, bound))
}

fn arrives(socket: &UdpSocket, to: SocketAddr) -> io::Result<bool> {
    let probe = getrandom::u64().map_err(io::Error::other)?.to_ne_bytes();
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    UdpSocket::bind(any)?.send_to(&probe, to)?;
    let mut bytes = [0; 16];
    // Others may also send to the port.
    for _ in 0..100 {
        let length = socket.recv(&mut bytes)?;
        if bytes[..length] == probe {
            return Ok(true);
        }
    }
    Ok(false)
}

fn size(bytes: usize) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn port__a_free_one_is_open() {
        let check = port(0);
        assert_eq!(check.verdict, Verdict::Ok, "{check:?}");
    }

    #[test]
    fn port__one_in_use_is_no_failure() {
        let (socket, bound) = listening(0).unwrap();
        let check = port(bound.port());
        assert!(check.seen.contains("in use by another process"), "{check:?}");
        drop(socket);
    }

    #[test]
    fn arrives__not_where_nobody_listens() {
        let (socket, bound) = listening(0).unwrap();
        let other = listening(0).unwrap().1;
        assert!(arrives(&socket, SocketAddr::from((Ipv4Addr::LOCALHOST, bound.port()))).unwrap());
        assert!(arrives(&socket, SocketAddr::from((Ipv4Addr::LOCALHOST, other.port()))).is_err());
    }

    #[test]
    fn buffers__name_the_line_that_raises_them() {
        for check in buffers() {
            let which = if check.name == "receive buffer" { "rmem" } else { "wmem" };
            assert!(check.fix.is_none_or(|fix| fix == raise_buffer(which, BUFFER_BYTES)));
        }
    }
}
