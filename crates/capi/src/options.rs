//! Options of sockets, at level `SOL_FAIRWAVE` and at those of the system.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use fairwave_host::{Here, LimitedBy, PathKind, SessionStats, StatusSample, Ticket};
use fairwave_units::{Bytes, Rate};
use libc::socklen_t;

use crate::errno::Errno;
use crate::socket::{Socket, Stage};

/// The level; "FW".
pub(crate) const SOL_FAIRWAVE: c_int = 0x4657;

const TICKET: c_int = 1;
const WEIGHT: c_int = 2;
const MINIMUM: c_int = 3;
const DESIRED: c_int = 4;
const PATH: c_int = 5;
const PLAIN: c_int = 6;
const AHEAD: c_int = 7;
const CAPACITY: c_int = 8;
const STATS: c_int = 9;
const LIMITED_BY: c_int = 10;

const PATH_SHARED: c_int = 0;
const PATH_DEDICATED: c_int = 1;

/// Statistics of a socket: `struct fairwave_stats` of fairwave.h. Later versions add to its end.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Stats {
    /// Bytes of this structure that the library knows.
    size: u64,
    written_bytes: u64,
    written_taken_bytes: u64,
    came_bytes: u64,
    came_taken_bytes: u64,
    sent_packets: u64,
    lost_packets: u64,
    sent_wire_bytes: u64,
    received_packets: u64,
    received_wire_bytes: u64,
    /// Smoothed; zero where it is not known.
    rtt_us: u64,
    /// Rate that the rule expects to send, bit/s; zero if no capacity is known.
    expected_send_bps: u64,
    /// And of what is received.
    expected_receive_bps: u64,
}

/// The value of an option as a program hands it over.
pub(crate) struct Value<'a>(pub(crate) &'a [u8]);

impl Value<'_> {
    fn int(&self) -> Result<c_int, Errno> {
        let bytes = self.0.first_chunk().ok_or(Errno(libc::EINVAL))?;
        Ok(c_int::from_ne_bytes(*bytes))
    }

    fn u64(&self) -> Result<u64, Errno> {
        let bytes = self.0.first_chunk().ok_or(Errno(libc::EINVAL))?;
        Ok(u64::from_ne_bytes(*bytes))
    }

    fn f64(&self) -> Result<f64, Errno> {
        let bytes = self.0.first_chunk().ok_or(Errno(libc::EINVAL))?;
        Ok(f64::from_ne_bytes(*bytes))
    }

    fn rate(&self) -> Result<Rate, Errno> {
        Ok(Rate::nearest_bps(self.u64()? as f64))
    }

    /// With a zero at its end, or without.
    fn text(&self) -> Result<&str, Errno> {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        std::str::from_utf8(&self.0[..end]).map_err(|_| Errno(libc::EINVAL))
    }
}

/// Sets an option of the library.
pub(crate) fn set(socket: &Arc<Socket>, option: c_int, value: &Value<'_>) -> Result<(), Errno> {
    let is_new = socket.stage() == Stage::New;
    let before = |is_allowed: bool| if is_allowed { Ok(()) } else { Err(Errno(libc::EISCONN)) };
    match option {
        TICKET => {
            before(is_new)?;
            let ticket: Ticket = value.text()?.parse().map_err(|_| Errno(libc::EINVAL))?;
            socket.state.lock().ticket = Some(ticket);
        }
        WEIGHT => {
            before(is_new)?;
            let weight = value.f64()?;
            if !(weight.is_finite() && (1e-6..=1e6).contains(&weight)) {
                return Err(Errno(libc::EINVAL));
            }
            socket.state.lock().options.session.weight = weight;
        }
        MINIMUM => {
            before(is_new)?;
            let minimum = value.rate()?;
            socket.state.lock().options.session.minimum = minimum;
        }
        DESIRED => {
            let desired = value.u64()?;
            let desired = if desired == 0 { Rate::nearest_bps(f64::MAX) } else { Rate::nearest_bps(desired as f64) };
            let session = {
                let mut state = socket.state.lock();
                state.options.desired = Some(desired);
                state.session.clone()
            };
            if let Some(session) = session {
                session.set_desired(desired);
            }
        }
        PATH => {
            before(is_unbound(socket))?;
            let path = match value.int()? {
                PATH_SHARED => PathKind::Shared,
                PATH_DEDICATED => PathKind::Dedicated,
                _ => return Err(Errno(libc::EINVAL)),
            };
            socket.state.lock().options.path = path;
        }
        PLAIN => {
            before(is_unbound(socket))?;
            let is_plain = value.int()? != 0;
            socket.state.lock().options.is_plain = is_plain;
        }
        AHEAD => {
            before(is_new)?;
            let bytes = value.u64()?;
            if !(64 << 10..=1 << 30).contains(&bytes) {
                return Err(Errno(libc::EINVAL));
            }
            socket.state.lock().options.ahead = Bytes::new(bytes);
        }
        CAPACITY => {
            before(is_unbound(socket))?;
            let capacity = Some(value.rate()?).filter(|rate| *rate > Rate::ZERO);
            socket.state.lock().options.capacity = capacity;
        }
        STATS | LIMITED_BY => return Err(Errno(libc::EACCES)),
        _ => return Err(Errno(libc::ENOPROTOOPT)),
    }
    Ok(())
}

/// Whether a socket has no endpoint yet.
fn is_unbound(socket: &Socket) -> bool {
    let state = socket.state.lock();
    state.stage == Stage::New && state.endpoint.is_none()
}

/// The value of an option of the library.
pub(crate) fn get(socket: &Arc<Socket>, option: c_int) -> Result<Vec<u8>, Errno> {
    let options = socket.state.lock().options;
    let int = |value: c_int| value.to_ne_bytes().to_vec();
    let bps = |rate: Rate| rate_bps(rate).to_ne_bytes().to_vec();
    Ok(match option {
        TICKET => {
            let ticket = socket.state.lock().ticket.clone();
            let text = ticket.map(|ticket| ticket.to_string()).ok_or(Errno(libc::ENOENT))?;
            [text.as_bytes(), &[0]].concat()
        }
        WEIGHT => options.session.weight.to_ne_bytes().to_vec(),
        MINIMUM => bps(options.session.minimum),
        DESIRED => options.desired.map_or(0, rate_bps).to_ne_bytes().to_vec(),
        PATH => int(if options.path == PathKind::Dedicated { PATH_DEDICATED } else { PATH_SHARED }),
        PLAIN => int(c_int::from(options.is_plain)),
        AHEAD => options.ahead.get().to_ne_bytes().to_vec(),
        CAPACITY => options.capacity.map_or(0, rate_bps).to_ne_bytes().to_vec(),
        STATS => stats(socket).to_bytes(),
        LIMITED_BY => [limited_by(socket)?.to_string().as_bytes(), &[0]].concat(),
        _ => return Err(Errno(libc::ENOPROTOOPT)),
    })
}

/// Zero where nothing limits.
fn rate_bps(rate: Rate) -> u64 {
    let bps = rate.as_bps();
    if bps < f64::MAX { bps as u64 } else { 0 }
}

fn stats(socket: &Socket) -> Stats {
    let (pipe, session) = {
        let state = socket.state.lock();
        (state.pipe.clone(), state.session.clone())
    };
    let pipe = pipe.map(|pipe| pipe.status()).unwrap_or_default();
    let stats = session.map(|session| session.stats());
    let none = SessionStats::default();
    let stats = stats.as_deref().unwrap_or(&none);
    Stats {
        size: size_of::<Stats>() as u64,
        written_bytes: pipe.written,
        written_taken_bytes: pipe.written_taken,
        came_bytes: pipe.came,
        came_taken_bytes: pipe.came_taken,
        sent_packets: stats.sent_packets,
        lost_packets: stats.lost_packets,
        sent_wire_bytes: stats.sent_wire_bytes,
        received_packets: stats.received_packets,
        received_wire_bytes: stats.received_wire_bytes,
        rtt_us: stats.rtt.map_or(0, |rtt| rtt.as_nanos() / 1000),
        expected_send_bps: stats.source.map_or(0, |rates| rate_bps(rates.expected)),
        expected_receive_bps: stats.sink.map_or(0, |rates| rate_bps(rates.expected)),
    }
}

impl Stats {
    fn to_bytes(self) -> Vec<u8> {
        let numbers = [
            self.size,
            self.written_bytes,
            self.written_taken_bytes,
            self.came_bytes,
            self.came_taken_bytes,
            self.sent_packets,
            self.lost_packets,
            self.sent_wire_bytes,
            self.received_packets,
            self.received_wire_bytes,
            self.rtt_us,
            self.expected_send_bps,
            self.expected_receive_bps,
        ];
        numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
    }
}

/// The limit of its session since the last call; the first time, since it started.
fn limited_by(socket: &Socket) -> Result<LimitedBy, Errno> {
    let (session, before, capacity) = {
        let mut state = socket.state.lock();
        (state.session.clone(), state.sample.take(), state.options.capacity)
    };
    let session = session.ok_or(Errno(libc::ENOTCONN))?;
    let now = StatusSample::take(vec![session], &[]);
    let before = before.unwrap_or_else(|| StatusSample::take(Vec::new(), &[]));
    let found = now.since(&before, Here { capacity });
    socket.state.lock().sample = Some(now);
    Ok(found.first().and_then(|status| status.limited_by).unwrap_or(LimitedBy::Idle))
}

/// Whether the value of an option is a text with a zero at its end.
pub(crate) fn is_text(option: c_int) -> bool {
    matches!(option, TICKET | LIMITED_BY)
}

/// Options of TCP that programs set without need are taken, and do nothing: small writes never wait here.
pub(crate) fn of_tcp(option: c_int) -> Option<c_int> {
    match option {
        libc::TCP_NODELAY | libc::TCP_QUICKACK => Some(1),
        libc::TCP_CORK => Some(0),
        _ => None,
    }
}

/// Copies a value as far as there is room, and writes its length.
///
/// # Safety
/// `length` points to a number, or is null; `room` to that many bytes.
#[expect(unsafe_code, reason = "the room is the caller's")]
pub(crate) unsafe fn hand_over(
    value: &[u8],
    is_text: bool,
    room: *mut c_void,
    length: *mut socklen_t,
) -> Result<(), Errno> {
    if room.is_null() || length.is_null() {
        return Err(Errno(libc::EFAULT));
    }
    // SAFETY: promised by the caller.
    let has = unsafe { length.read_unaligned() } as usize;
    // A truncated text is an error.
    if is_text && has < value.len() {
        return Err(Errno(libc::ENOBUFS));
    }
    let most = has.min(value.len());
    // SAFETY: both buffers have at least this many bytes.
    unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), room.cast(), most) };
    // SAFETY: promised by the caller.
    unsafe { length.write_unaligned(most as socklen_t) };
    Ok(())
}
