//! How bytes move between a descriptor and its session, a call at a time.

use std::io::IoSlice;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::ioctl;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};

use crate::descriptor_state::DescriptorState;
use crate::incoming::Word;
use crate::outgoing::SMALL_CHUNK;
use crate::pipe::Shared;
use crate::streams::{BYTES, TAKEN};

/// The descriptor cannot go on.
#[derive(Debug)]
pub(crate) struct Broken;

/// The result of a read.
pub(crate) enum Read {
    /// So many bytes.
    Some(usize),
    /// Nothing now.
    Nothing,
    /// Nothing ever.
    End,
}

/// The result of a write.
pub(crate) enum Written {
    /// It accepted this many bytes.
    Some(usize),
    /// It takes none now.
    Full,
    /// There are no bytes.
    Nothing,
}

/// Buffers of one call.
const BUFFERS: usize = 8;
/// Bytes that a descriptor holds, so that polling shows them, while a program takes bytes directly.
const TOKEN_BYTES: usize = 16 << 10;

impl DescriptorState {
    /// Reads once what the descriptor gives. The session hears of it by [`DescriptorState::serve`].
    pub(crate) fn read(&mut self, shared: &Shared, scratch: &mut Vec<u8>) -> Result<Read, Broken> {
        let Some(descriptor) = &self.descriptor else { return Ok(Read::Nothing) };
        scratch.clear();
        match recv(descriptor, rustix::buffer::spare_capacity(scratch), RecvFlags::DONTWAIT) {
            Ok((0, _)) => {
                self.on_read_end(shared);
                Ok(Read::End)
            }
            Ok(_) => {
                let bytes = scratch.len();
                let served = keep(shared, scratch);
                self.note_served(shared, served);
                Ok(Read::Some(bytes))
            }
            Err(Errno::AGAIN) => Ok(Read::Nothing),
            Err(Errno::INTR) => Ok(Read::Some(0)),
            Err(_) => Err(Broken),
        }
    }

    /// Something is to be served, together with what was before.
    pub(crate) fn note_served(&mut self, shared: &Shared, more: Option<Range<u64>>) {
        let Some(more) = more else { return };
        self.serve = match self.serve.take() {
            Some(before) if before.end == more.start => Some(before.start..more.end),
            // The range between was requested just now, and is already served.
            before => {
                self.serve = before;
                self.serve(shared);
                Some(more)
            }
        };
    }

    /// The session serves what was read since: the network thread is woken once.
    pub(crate) fn serve(&mut self, shared: &Shared) {
        let Some(serve) = self.serve.take() else { return };
        if let Some(session) = shared.session() {
            session.serve(BYTES, serve);
        }
    }

    /// The descriptor gives no more.
    pub(crate) fn on_read_end(&mut self, shared: &Shared) {
        self.serve(shared);
        self.is_read_out = true;
        shared.room.ring();
        let refuse = shared.outgoing.lock().finish();
        if let Some((refuse, session)) = refuse.zip(shared.session()) {
            session.refuse(BYTES, refuse, fairwave_host::VoidReason::Shrank);
        }
    }

    /// Writes once what has come, as much as the descriptor takes.
    pub(crate) fn write(&mut self, shared: &Shared) -> Result<Written, Broken> {
        let Some(descriptor) = &self.descriptor else { return Ok(Written::Nothing) };
        if self.writing.is_empty() {
            shared.incoming.lock().take_ready(&mut self.writing);
        }
        if self.writing.is_empty() {
            return Ok(Written::Nothing);
        }
        let mut most = usize::MAX;
        if self.is_direct && !self.is_deaf {
            if is_unread(descriptor) {
                return Ok(Written::Nothing);
            }
            // Somebody has read it without the library: that one is to have all there.
            self.is_direct = !self.has_token;
            self.has_token = self.is_direct;
            most = if self.is_direct { TOKEN_BYTES } else { usize::MAX };
        }
        let sent = if self.is_deaf {
            Ok(self.writing.iter().map(Vec::len).sum::<usize>() - self.at)
        } else {
            let mut slices = [IoSlice::new(&[]); BUFFERS];
            let mut skip = self.at;
            for (slice, buffer) in slices.iter_mut().zip(&self.writing) {
                let bytes = &buffer[std::mem::take(&mut skip)..];
                *slice = IoSlice::new(&bytes[..bytes.len().min(most)]);
            }
            let count = if most < usize::MAX { 1 } else { self.writing.len().min(BUFFERS) };
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            sendmsg(descriptor, &slices[..count], &mut SendAncillaryBuffer::default(), flags)
        };
        match sent {
            Ok(sent) => {
                self.pass(&shared.way.spares, sent);
                report(shared, sent);
                Ok(Written::Some(sent))
            }
            Err(Errno::AGAIN) => Ok(Written::Full),
            Err(Errno::INTR) => Ok(Written::Some(0)),
            // A reader that has stopped but may write gets no notice from TCP either.
            Err(Errno::PIPE) if !is_hung_up(descriptor) => {
                self.is_deaf = true;
                Ok(Written::Some(0))
            }
            Err(_) => Err(Broken),
        }
    }
}

/// Keeps what was read: what of it is to be served.
fn keep(shared: &Shared, read: &mut Vec<u8>) -> Option<Range<u64>> {
    if read.len() < SMALL_CHUNK {
        return shared.outgoing.lock().push(read);
    }
    let spare = shared.way.spares.take(1);
    shared.outgoing.lock().push_chunk(std::mem::replace(read, spare))
}

/// So many bytes were taken: the source hears of it now and then.
pub(crate) fn report(shared: &Shared, bytes: usize) {
    let word = shared.incoming.lock().on_taken(bytes as u64);
    say(shared, word);
}

/// Reports to the source what was taken, in place of the previous report.
pub(crate) fn say(shared: &Shared, word: Option<Word>) {
    let Some((word, session)) = word.and_then(|word| Some((word, shared.session()?))) else { return };
    session.give_up(TAKEN, 0..word.taken);
    session.want(TAKEN, word.taken..word.taken.saturating_add(1));
    if let Some(want) = &word.want {
        session.want(BYTES, want.clone());
    }
}

/// Whether something that was written into a descriptor, a Unix socket, is not read.
#[expect(unsafe_code, reason = "SIOCOUTQ is an ioctl without a wrapper")]
fn is_unread(descriptor: &OwnedFd) -> bool {
    // SAFETY: the system writes one int for it (unix(7), tcp(7)).
    let asked = unsafe { ioctl::ioctl(descriptor, ioctl::Getter::<TIOCOUTQ, i32>::new()) };
    // If the query fails it is treated as empty: then a call reports that it is full.
    asked.is_ok_and(|bytes| bytes >= MIN_UNREAD)
}

/// The system counts memory, and the smallest message takes more than this. While a reader frees the last one, a byte
/// of it still counts when the waiter is woken (Linux, `sock_wfree`): if that counted as unread, there would be no
/// further wake.
const MIN_UNREAD: i32 = 256;

/// SIOCOUTQ is another name of it.
const TIOCOUTQ: ioctl::Opcode = 0x5411;

/// Whether nobody has the other end of a descriptor.
fn is_hung_up(descriptor: &OwnedFd) -> bool {
    let mut descriptors = [PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::empty())];
    let polled = poll(&mut descriptors, Some(&Timespec::default()));
    polled.is_ok() && descriptors[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, send, socketpair};

    use super::*;

    #[test]
    fn is_unread__until_the_last_byte_is_read() {
        let pair = || socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        let (ours, program) = pair();
        assert!(!is_unread(&ours));
        for bytes in [1, TOKEN_BYTES] {
            send(&ours, &vec![1; bytes], SendFlags::empty()).unwrap();
            assert!(is_unread(&ours), "{bytes}");
            let mut left = bytes;
            while left > 0 {
                assert!(is_unread(&ours), "{left} of {bytes}");
                left -= recv(&program, &mut [0; 3000][..left.min(3000)], RecvFlags::empty()).unwrap().1;
            }
            assert!(!is_unread(&ours), "{bytes}");
        }
    }
}
