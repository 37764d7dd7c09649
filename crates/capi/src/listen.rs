//! Sockets that are called.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use fairwave_host::{
    Accept, Handler, Identity, Keyring, Lock, Refusal, ShareId, Terms, Validity, Visitor, WeakEndpoint, advertised,
};
use fairwave_pipe::read_greeting;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use crate::errno::Errno;
use crate::library::{Library, current};
use crate::ours::Ours;
use crate::signals;
use crate::socket::{Socket, SocketOptions, SocketWatch, Stage, set_flags};

/// The library's side of a listening socket, on the network thread.
struct Listener {
    socket: Weak<Socket>,
    endpoint: WeakEndpoint,
    options: SocketOptions,
    is_v6: bool,
    backlog: usize,
    /// Memory that the system counts for each socket that was handed over and not accepted.
    counts_as: usize,
}

/// Size of the message with a descriptor: the address of the peer.
const ADDRESS_BYTES: usize = 20;
/// Linux takes no more waiting connections by default (net.core.somaxconn); the system's room for what waits in a Unix
/// socket holds some 550.
const MAX_BACKLOG: i32 = 4096;

/// A released port is free after this time.
const PORT_TAKES: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Binds a socket to an address, whose port it has from now on.
pub(crate) fn bind(socket: &Socket, address: SocketAddr) -> Result<(), Errno> {
    let options = socket.state.lock().options;
    let capacity = fairwave_host::Capacity::find(options.capacity, None).rate;
    // A program that closed a socket by a system call may bind its port again.
    let left = current().map_or(0, Library::forget_left_ports);
    let until = Instant::now().checked_add(PORT_TAKES).filter(|_| left > 0);
    let endpoint = loop {
        let made = fairwave_host::Endpoint::bind(&options.endpoint(Some(address), capacity));
        match made.map_err(|error| Errno::from(&error)) {
            // The thread of an endpoint closes its port a moment later.
            Err(Errno(libc::EADDRINUSE)) if until.is_some_and(|until| Instant::now() < until) => {
                std::thread::sleep(LOOK_EVERY);
            }
            made => break made?,
        }
    };
    let mut state = socket.state.lock();
    if state.stage != Stage::New || state.endpoint.is_some() {
        drop(state);
        return Err(Errno(libc::EINVAL));
    }
    state.endpoint = Some(endpoint);
    Ok(())
}

/// Accepts connections from holders of its ticket.
pub(crate) fn listen(socket: &Arc<Socket>, backlog: i32) -> Result<(), Errno> {
    if socket.stage() == Stage::Listening {
        return Ok(());
    }
    if socket.state.lock().endpoint.is_none() {
        bind(socket, SocketAddr::new(socket.anywhere(), 0))?;
    }
    let counts_as = counts_of_one()?;
    let keyring = Arc::new(Keyring::in_memory(Identity::random().map_err(|_| Errno(libc::EIO))?, ShareId(1)));
    let (endpoint, options) = {
        let mut state = socket.state.lock();
        if state.stage != Stage::New {
            return Err(Errno(libc::EINVAL));
        }
        let Some(endpoint) = state.endpoint.clone() else { return Err(Errno(libc::EINVAL)) };
        state.stage = Stage::Listening;
        (endpoint, state.options)
    };
    // It is good as long as the socket is there: the keyring ends with it.
    let validity = Validity { lasts_s: None, is_once: false };
    let ticket = keyring.issue(validity, advertised(endpoint.local_addr())?).map_err(|_| Errno(libc::EIO))?;
    socket.state.lock().ticket = Some(ticket);
    let listener = Listener {
        socket: Arc::downgrade(socket),
        endpoint: endpoint.downgrade(),
        options,
        is_v6: socket.is_v6,
        // Linux also adds one.
        backlog: usize::try_from(backlog.clamp(0, MAX_BACKLOG)).unwrap_or_default() + 1,
        counts_as,
    };
    endpoint.listen(keyring, listener.accept());
    Ok(())
}

impl Listener {
    fn accept(self) -> Accept {
        let listener = Lock::over_leaves(self);
        Box::new(move |visitor| listener.lock().hand_over(visitor))
    }

    /// Somebody calls: a socket of that session goes to the program.
    fn hand_over(&mut self, visitor: &Visitor<'_>) -> Result<(Terms, Box<dyn Handler>), Refusal> {
        read_greeting(visitor.greeting).ok_or(Refusal::Purpose)?;
        let (Some(library), Some(listening)) = (current(), self.socket.upgrade()) else {
            return Err(Refusal::UnknownName);
        };
        let stage = Stage::Connected { is_reported: true };
        let made = Socket::new(self.is_v6, stage, self.options);
        let (socket, theirs) = made.map_err(|_| Refusal::NoRoom)?;
        let watch = Box::new(SocketWatch { socket: Arc::downgrade(&socket) });
        let (pipe, handler) = library.pump.pipe(self.options.pipe(), watch);
        let ours = {
            let mut state = socket.state.lock();
            state.peer = Some(visitor.from);
            state.endpoint = self.endpoint.upgrade();
            state.pipe = Some(pipe.clone());
            state.ours.take()
        };
        let Some(ours) = ours.and_then(Ours::give) else { return Err(Refusal::NoRoom) };
        pipe.attach(ours);
        library.add(&socket);
        let sent = {
            let state = listening.state.lock();
            let Some(way) = state.ours.as_ref().and_then(Ours::get) else { return Err(Refusal::UnknownName) };
            // The last byte of one that a program is just taking counts for a moment longer (Linux, `sock_wfree`).
            let waiting = untaken(way).map(|counts| counts / self.counts_as);
            match waiting {
                Ok(waiting) if waiting >= self.backlog => Err(rustix::io::Errno::AGAIN),
                Ok(_) => send(way, visitor.from, &theirs),
                Err(error) => Err(error),
            }
        };
        match sent {
            Ok(()) => Ok((self.options.session, handler)),
            Err(error) => {
                library.forget(&socket);
                Err(if error == rustix::io::Errno::AGAIN { Refusal::NoRoom } else { Refusal::UnknownName })
            }
        }
    }
}

/// Memory that the system counts for all that was handed over and not accepted. A child that accepts some does not
/// notify its parent.
fn untaken(way: &OwnedFd) -> rustix::io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    #[expect(unsafe_code, reason = "SIOCOUTQ is an ioctl without a wrapper")]
    // SAFETY: it writes one int there.
    let asked = unsafe { libc::ioctl(way.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if asked != 0 {
        let error = std::io::Error::last_os_error();
        return Err(rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO));
    }
    Ok(usize::try_from(bytes).unwrap_or_default())
}

/// Memory that it counts for one message, the same for each of this size.
fn counts_of_one() -> Result<usize, Errno> {
    let (way, program) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    send(&way, SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0), &program)?;
    Ok(untaken(&way)?.max(1))
}

fn send(way: &OwnedFd, from: SocketAddr, theirs: &OwnedFd) -> rustix::io::Result<()> {
    let address = to_bytes(from);
    let descriptors = [theirs.as_fd()];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut room);
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(way, &[IoSlice::new(&address)], &mut control, flags).map(|_| ())
}

/// Takes a socket that was handed over: the program's end, and who called.
pub(crate) fn accept(listening: BorrowedFd<'_>) -> Result<(OwnedFd, SocketAddr), Errno> {
    let mut address = [0; ADDRESS_BYTES];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let got = signals::let_come(|| {
        recvmsg(listening, &mut [IoSliceMut::new(&mut address)], &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let descriptor = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    if got.bytes == 0 {
        // It was shut down.
        return Err(Errno(libc::EINVAL));
    }
    // If the program has no descriptor left, the system delivers only the bytes.
    let theirs = descriptor.ok_or(Errno(libc::EMFILE))?;
    set_flags(&theirs, false, false)?;
    Ok((theirs, from_bytes(&address)))
}

/// Encodes an address: IPv6 or mapped, port, and zeros.
fn to_bytes(address: SocketAddr) -> [u8; ADDRESS_BYTES] {
    let ip = match address.ip() {
        std::net::IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        std::net::IpAddr::V6(ip) => ip,
    };
    let mut bytes = [0; ADDRESS_BYTES];
    bytes[..16].copy_from_slice(&ip.octets());
    bytes[16..18].copy_from_slice(&address.port().to_be_bytes());
    bytes
}

fn from_bytes(bytes: &[u8; ADDRESS_BYTES]) -> SocketAddr {
    let ip: [u8; 16] = std::array::from_fn(|at| bytes[at]);
    let ip = std::net::IpAddr::from(ip).to_canonical();
    SocketAddr::new(ip, u16::from_be_bytes([bytes[16], bytes[17]]))
}
