//! Datagrams on their way out, as many as one call takes.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use fairwave_proto::codec::{SessionId, VoidReason};
use fairwave_proto::{ControlPacket, DATA_FRONT, DataPacket, MAX_FRAME_BYTES};

use super::socket::{Sent, Socket};
use crate::crypto::Sealer;
use crate::handler::Handler;

/// Datagrams to one address that wait for a call: of one session, or of several.
struct DatagramBatch {
    /// Each once, unless others were between.
    sessions: Vec<SessionId>,
    way: BatchWay,
    bytes: Box<[u8]>,
    used: usize,
    count: usize,
    /// Of all but the last.
    segment: usize,
}

/// Addresses of a batch of datagrams: the source, if it is set, and the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchWay {
    pub(crate) to: (Option<IpAddr>, SocketAddr),
    /// Whether routers may mark them (ECT(0)).
    pub(crate) takes_marks: bool,
}

/// Collects packets to the same address into batches of equal size, and sends them.
pub(crate) struct Outbox {
    /// Those to which another datagram may be added.
    open: Vec<DatagramBatch>,
    /// Whether there is a control packet in one of them.
    has_control: bool,
    /// Those that go next.
    ready: VecDeque<DatagramBatch>,
    spare: Vec<Box<[u8]>>,
    scratch: Vec<u8>,
    too_large: Vec<(SessionId, u32)>,
    pub(crate) calls: u64,
}

/// Max bytes of one call: below 64 KiB with all headers.
const MOST_BYTES: usize = 65_000;
/// That wait at a time.
const MAX_BATCHES: usize = 64;

impl Outbox {
    pub(crate) fn new() -> Self {
        Self {
            open: Vec::new(),
            has_control: false,
            ready: VecDeque::new(),
            spare: Vec::new(),
            scratch: Vec::new(),
            too_large: Vec::new(),
            calls: 0,
        }
    }

    /// Whether the system has no room for what waits.
    pub(crate) fn is_full(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Datagrams that turned out to be larger than the path takes.
    pub(crate) fn too_large(&mut self) -> std::vec::Drain<'_, (SessionId, u32)> {
        self.too_large.drain(..)
    }

    /// Seals a data packet, whose bytes `handler` lends, and puts it behind others to the same address. Control packets
    /// that wait go before.
    pub(crate) fn push_data(
        &mut self,
        socket: &mut Socket,
        session: SessionId,
        way: BatchWay,
        packet: &DataPacket,
        sealer: &mut Sealer,
        handler: &mut dyn Handler,
    ) -> Result<(), VoidReason> {
        if self.has_control {
            self.flush(socket);
        }
        let length = packet.datagram_bytes() as usize;
        let index = self.place(socket, way, length);
        seal_data(packet, sealer, handler, self.open[index].room(length))?;
        self.add(socket, index, session, length);
        Ok(())
    }

    /// Seals a control packet and puts it behind others to the same address. Many that set out together, such as those
    /// of idle sessions, go with one call.
    pub(crate) fn push_control(
        &mut self,
        socket: &mut Socket,
        session: SessionId,
        to: (Option<IpAddr>, SocketAddr),
        packet: &ControlPacket,
        sealer: &mut Sealer,
    ) {
        if packet.frames.len() > MAX_FRAME_BYTES {
            return self.send_probe(socket, session, to, packet, sealer);
        }
        let length = packet.datagram_bytes() as usize;
        let index = self.place(socket, BatchWay { to, takes_marks: false }, length);
        packet.seal(sealer, self.open[index].room(length)).expect(ROOM);
        self.has_control = true;
        self.add(socket, index, session, length);
    }

    /// Seals a control packet that asks whether the path takes its size, and sends it at once and by itself: the system
    /// does not cut datagrams of a size that the path does not take. One that cannot go is lost: it is sent again.
    fn send_probe(
        &mut self,
        socket: &mut Socket,
        session: SessionId,
        to: (Option<IpAddr>, SocketAddr),
        packet: &ControlPacket,
        sealer: &mut Sealer,
    ) {
        let length = packet.datagram_bytes() as usize;
        self.scratch.resize(length, 0);
        packet.seal(sealer, &mut self.scratch).expect(ROOM);
        if socket.send(to, &self.scratch, length) == Sent::TooLarge {
            self.too_large.push((session, length as u32));
        }
        self.calls += 1;
    }

    /// Sends all that waits: whether the system took it.
    pub(crate) fn flush(&mut self, socket: &mut Socket) -> bool {
        self.has_control = false;
        self.ready.extend(self.open.drain(..).filter(|batch| batch.used > 0));
        self.drain(socket)
    }

    fn drain(&mut self, socket: &mut Socket) -> bool {
        while let Some(batch) = self.ready.front_mut() {
            self.calls += 1;
            if !send(batch, socket, &mut self.too_large) {
                return false;
            }
            self.spare.extend(self.ready.pop_front().map(|batch| batch.bytes));
        }
        true
    }

    /// A datagram of a session was put into the room of a batch, which goes if it takes no more.
    fn add(&mut self, socket: &mut Socket, index: usize, session: SessionId, length: usize) {
        let batch = &mut self.open[index];
        batch.add(session, length);
        if !batch.takes(batch.segment, most_segments(socket)) {
            self.ready.push_back(self.open.swap_remove(index));
            self.drain(socket);
        }
    }

    /// The open batch that takes a datagram of `length` bytes.
    fn place(&mut self, socket: &mut Socket, way: BatchWay, length: usize) -> usize {
        let most = most_segments(socket);
        if let Some(index) = self.open.iter().position(|batch| batch.way == way && batch.takes(length, most)) {
            return index;
        }
        if self.open.len() >= MAX_BATCHES {
            self.flush(socket);
        }
        let bytes = self.spare.pop().unwrap_or_else(|| vec![0; 1 << 16].into_boxed_slice());
        self.open.push(DatagramBatch { sessions: Vec::new(), way, bytes, used: 0, count: 0, segment: length });
        self.open.len() - 1
    }
}

impl BatchWay {
    fn send(self, socket: &mut Socket, contents: &[u8], segment: usize) -> Sent {
        if self.takes_marks {
            socket.send_capable(self.to, contents, segment)
        } else {
            socket.send(self.to, contents, segment)
        }
    }
}

impl DatagramBatch {
    /// Whether a datagram of `length` bytes can be added: all but the last are alike.
    fn takes(&self, length: usize, most: usize) -> bool {
        let is_whole = self.used == self.count * self.segment;
        self.count == 0 || is_whole && length <= self.segment && self.count < most && self.used + length <= MOST_BYTES
    }

    /// Room for the next datagram.
    fn room(&mut self, length: usize) -> &mut [u8] {
        &mut self.bytes[self.used..self.used + length]
    }

    /// Records a datagram of `length` bytes.
    fn add(&mut self, session: SessionId, length: usize) {
        if self.count == 0 {
            self.segment = length;
        }
        self.used += length;
        self.count += 1;
        if self.sessions.last() != Some(&session) {
            self.sessions.push(session);
        }
    }
}

/// Seals a data packet, whose bytes `handler` lends, into the room that it takes.
#[inline]
pub(super) fn seal_data(
    packet: &DataPacket,
    sealer: &mut Sealer,
    handler: &mut dyn Handler,
    datagram: &mut [u8],
) -> Result<(), VoidReason> {
    let data = packet.piece.length as usize;
    let (mut copied, mut is_sealed) = (0, false);
    let range = packet.piece.offset..packet.piece.offset + data as u64;
    handler.lend(packet.piece.stream, range, &mut |bytes| {
        if is_sealed {
            // A handler that lends all and goes on would overwrite what is sealed.
        } else if bytes.len() == data && copied == 0 {
            // As a rule: sealed from where it is.
            packet.seal(sealer, datagram, bytes).expect(ROOM);
            is_sealed = true;
        } else if let Some(room) =
            datagram.get_mut(DATA_FRONT + copied..(DATA_FRONT + copied + bytes.len()).min(DATA_FRONT + data))
        {
            room.copy_from_slice(&bytes[..room.len()]);
            copied += room.len();
        }
    })?;
    if !is_sealed {
        if copied < data {
            return Err(VoidReason::Shrank);
        }
        packet.seal_in_place(sealer, datagram).expect(ROOM);
    }
    Ok(())
}

fn most_segments(socket: &Socket) -> usize {
    socket.segments().min(64)
}

/// The buffer of a sealed datagram has the size that its packet states.
const ROOM: &str = "a datagram has room for all of its packet";

/// Sends a batch: whether the system had room.
fn send(batch: &mut DatagramBatch, socket: &mut Socket, too_large: &mut Vec<(SessionId, u32)>) -> bool {
    if batch.used == 0 {
        return true;
    }
    let contents = &batch.bytes[..batch.used];
    match batch.way.send(socket, contents, batch.segment) {
        Sent::Gone => true,
        Sent::Full => false,
        Sent::TooLarge => {
            too_large.extend(batch.sessions.iter().map(|session| (*session, batch.segment as u32)));
            true
        }
        Sent::Uncut => {
            for (index, datagram) in contents.chunks(batch.segment).enumerate() {
                match batch.way.send(socket, datagram, datagram.len()) {
                    Sent::Full => {
                        // The rest goes when there is room.
                        let done = index * batch.segment;
                        batch.bytes.copy_within(done..batch.used, 0);
                        batch.used -= done;
                        batch.count -= index;
                        return false;
                    }
                    Sent::TooLarge => {
                        too_large.extend(batch.sessions.iter().map(|session| (*session, datagram.len() as u32)));
                    }
                    Sent::Gone | Sent::Uncut => {}
                }
            }
            true
        }
    }
}

#[cfg(test)]
mod tests;
