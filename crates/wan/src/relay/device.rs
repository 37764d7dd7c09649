//! The device between a host and the relay: TUN or, if that is not available, a pair of veths.
//!
//! `/dev/net/tun` is open to all users on most systems. On others, root of a user namespace cannot open it either, but
//! may have veths and packet sockets (packet(7)) in its network namespaces. Both give the same data: segments that the
//! kernel would cut later come as one packet.

use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::libc;
use nix::sys::socket::sockopt::RcvBufForce;
use nix::sys::socket::{AddressFamily, LinkAddr, SockaddrLike, bind, getsockopt, setsockopt};
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};
use rustix::net::{RecvFlags, SendFlags, SocketFlags, SocketType};
use tun_rs::{DeviceBuilder, SyncDevice, VIRTIO_NET_HDR_LEN, VirtioNetHdr};

use crate::space::Space;

sockopt_impl!(VnetHeader, SetOnly, libc::SOL_PACKET, libc::PACKET_VNET_HDR, bool);
sockopt_impl!(IgnoreOutgoing, SetOnly, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, bool);
sockopt_impl!(Statistics, GetOnly, libc::SOL_PACKET, libc::PACKET_STATISTICS, [u32; 2]);

/// Receive buffer of a packet socket, as far as the system allows.
const BUFFER_BYTES: usize = 32 << 20;
/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// EtherType of IPv4.
const IPV4: [u8; 2] = [0x08, 0x00];
/// EtherType of IPv6.
const IPV6: [u8; 2] = [0x86, 0xdd];

/// The device from which the relay reads a host's packets, and to which it writes packets for the host.
pub(super) enum Device {
    /// A TUN device.
    Tun(SyncDevice),
    /// The far end of a veth.
    Veth(Veth),
}

/// A packet socket at the far end of a veth; the host has the other end.
pub(super) struct Veth {
    socket: OwnedFd,
    /// Address of both ends of the host's frames: it gives all its neighbours its own address.
    mac: [u8; 6],
    /// Its namespace, which has no other device.
    _far: Space,
}

impl Device {
    /// Makes a TUN device of that name in `space`.
    pub(super) fn tun(space: &Space, name: &str) -> io::Result<Self> {
        let device = space.run(|| DeviceBuilder::new().name(name).offload(true).build_sync())??;
        device.set_nonblocking(true)?;
        Ok(Self::Tun(device))
    }

    /// Makes a veth of that name in `space`; `port` makes its address unique.
    pub(super) fn veth(space: &Space, name: &str, port: usize) -> io::Result<Self> {
        let far = Space::new()?;
        let mac = [2, 0, 0x66, 0, (port >> 8) as u8, port as u8];
        let text = mac.map(|byte| format!("{byte:02x}")).join(":");
        space.ip(&[
            "link",
            "add",
            "name",
            name,
            "address",
            &text,
            "type",
            "veth",
            "peer",
            "name",
            "far",
            "netns",
            &far.path(),
        ])?;
        // The other end answers no neighbour requests.
        space.ip(&["link", "set", name, "arp", "off"])?;
        far.ip(&["link", "set", "far", "addrgenmode", "none", "arp", "off", "mtu", "65535", "up"])?;
        let socket = far.run(open)??;
        Ok(Self::Veth(Veth { socket, mac, _far: far }))
    }

    /// Reads the next packet: the kernel's header, then the IP packet.
    pub(super) fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tun(device) => device.recv(buffer),
            Self::Veth(veth) => veth.recv(buffer),
        }
    }

    /// Writes a packet of that form.
    pub(super) fn send(&self, packet: &[u8]) -> io::Result<()> {
        match self {
            Self::Tun(device) => device.send(packet).map(drop),
            Self::Veth(veth) => veth.send(packet),
        }
    }

    /// Packets that the kernel dropped before the relay, except those that the device counts; since the last call.
    pub(super) fn lost(&self) -> u64 {
        match self {
            Self::Tun(_) => 0,
            Self::Veth(veth) => getsockopt(&veth.socket, Statistics).map_or(0, |[_, drops]| u64::from(drops)),
        }
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tun(device) => device.as_fd(),
            Self::Veth(veth) => veth.socket.as_fd(),
        }
    }
}

impl Veth {
    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut head = [0; VIRTIO_NET_HDR_LEN];
        let mut ethernet = [0; ETHERNET];
        let (_, rest) = buffer.split_at_mut(VIRTIO_NET_HDR_LEN);
        let bytes = {
            let mut parts =
                [io::IoSliceMut::new(&mut head), io::IoSliceMut::new(&mut ethernet), io::IoSliceMut::new(rest)];
            let mut control = rustix::net::RecvAncillaryBuffer::default();
            rustix::net::recvmsg(&self.socket, &mut parts, &mut control, RecvFlags::DONTWAIT)?.bytes
        };
        let ip = bytes.saturating_sub(VIRTIO_NET_HDR_LEN + ETHERNET);
        if let Ok(mut kernel) = VirtioNetHdr::decode(&head) {
            // A packet socket's offsets start at the Ethernet header, a TUN device's at that of IP.
            kernel.csum_start = kernel.csum_start.saturating_sub(ETHERNET as u16);
            kernel.hdr_len = kernel.hdr_len.saturating_sub(ETHERNET as u16);
            kernel.encode(&mut head).map_err(io::Error::other)?;
        }
        buffer[..VIRTIO_NET_HDR_LEN].copy_from_slice(&head);
        Ok(VIRTIO_NET_HDR_LEN + ip)
    }

    fn send(&self, packet: &[u8]) -> io::Result<()> {
        let (head, ip) = packet.split_at_checked(VIRTIO_NET_HDR_LEN).ok_or(io::ErrorKind::InvalidInput)?;
        let mut kernel = VirtioNetHdr::decode(head).map_err(io::Error::other)?;
        if kernel.csum_start > 0 {
            kernel.csum_start += ETHERNET as u16;
        }
        if kernel.hdr_len > 0 {
            kernel.hdr_len += ETHERNET as u16;
        }
        let mut head = [0; VIRTIO_NET_HDR_LEN];
        kernel.encode(&mut head).map_err(io::Error::other)?;
        let kind = if ip.first().is_some_and(|byte| byte >> 4 == 6) { IPV6 } else { IPV4 };
        let ethernet = [&self.mac[..], &self.mac[..], &kind[..]].concat();
        let parts = [io::IoSlice::new(&head), io::IoSlice::new(&ethernet), io::IoSlice::new(ip)];
        let mut control = rustix::net::SendAncillaryBuffer::default();
        rustix::net::sendmsg(&self.socket, &parts, &mut control, SendFlags::DONTWAIT)?;
        Ok(())
    }
}

/// The packet socket of the only device of this thread's namespace except its loopback.
fn open() -> io::Result<OwnedFd> {
    let all = rustix::net::Protocol::from_raw(
        NonZeroU32::new(u32::from((libc::ETH_P_ALL as u16).to_be())).ok_or(io::ErrorKind::InvalidInput)?,
    );
    let family = rustix::net::AddressFamily::PACKET;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::RAW, flags, Some(all))?;
    setsockopt(&socket, VnetHeader, &true)?;
    setsockopt(&socket, IgnoreOutgoing, &true)?;
    if setsockopt(&socket, RcvBufForce, &BUFFER_BYTES).is_err() {
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, BUFFER_BYTES)?;
    }
    let mut interfaces = nix::ifaddrs::getifaddrs()?;
    let link = interfaces.find_map(|one| {
        let address = one.address.filter(|_| one.interface_name == "far")?;
        address.as_link_addr().copied().filter(|link| link.family() == Some(AddressFamily::Packet))
    });
    let link: LinkAddr = link.ok_or_else(|| io::Error::other("the veth has no end here"))?;
    bind(socket.as_raw_fd(), &link)?;
    Ok(socket)
}
