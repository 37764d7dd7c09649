//! How packets of a host reach the relay: by a TUN device, or where that is not to be had by a pair of veths.
//!
//! `/dev/net/tun` is open to all on most systems. Where it is not, root of a user namespace cannot open it either; but
//! they may have veths and packet sockets (packet(7)) in network namespaces of their own. Both ways give the same: what
//! the kernel would cut into segments later comes as one.

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

/// What waits for the relay in a packet socket, if the system grants so much.
const BUFFER_BYTES: usize = 32 << 20;
/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];

/// What the relay reads a host's packets from, and writes those for it to.
pub(super) enum Device {
    /// A TUN device.
    Tun(SyncDevice),
    /// The far end of a veth.
    Veth(Veth),
}

/// A packet socket at the end of a veth whose other end the host has.
pub(super) struct Veth {
    socket: OwnedFd,
    /// Both ends of what the host sends and gets: it takes all its neighbours to have its own address.
    mac: [u8; 6],
    /// Its namespace, which has nothing else in it.
    _far: Space,
}

impl Device {
    /// A TUN device of that name in `space`.
    pub(super) fn tun(space: &Space, name: &str) -> io::Result<Self> {
        let device = space.run(|| DeviceBuilder::new().name(name).offload(true).build_sync())??;
        device.set_nonblocking(true)?;
        Ok(Self::Tun(device))
    }

    /// A veth of that name in `space`; `port` tells its address apart from others'.
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
        // Nobody answers questions about neighbours at the other end.
        space.ip(&["link", "set", name, "arp", "off"])?;
        far.ip(&["link", "set", "far", "addrgenmode", "none", "arp", "off", "mtu", "65535", "up"])?;
        let socket = far.run(open)??;
        Ok(Self::Veth(Veth { socket, mac, _far: far }))
    }

    /// Takes the next packet: the kernel's header, then the IP packet.
    pub(super) fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tun(device) => device.recv(buffer),
            Self::Veth(veth) => veth.recv(buffer),
        }
    }

    /// Hands over a packet of that form.
    pub(super) fn send(&self, packet: &[u8]) -> io::Result<()> {
        match self {
            Self::Tun(device) => device.send(packet).map(drop),
            Self::Veth(veth) => veth.send(packet),
        }
    }

    /// Packets that the kernel could not keep for the relay beside those that the device counts; since the last call.
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
            // A packet socket counts from the Ethernet header on, a TUN device from that of IP.
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

/// The packet socket of the one device that this thread's namespace has beside its loopback.
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
