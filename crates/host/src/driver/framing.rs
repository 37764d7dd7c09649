//! Datagrams in a byte stream: each a length (2 bytes, big-endian) and that many bytes, as IKE and ESP are carried over
//! TCP (RFC 9329 s3).

use std::ops::Range;

/// Bytes in front of a datagram.
pub(super) const LENGTH_BYTES: usize = 2;

/// The bytes are not a valid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoFrame;

/// The range of the datagram that starts at `at`, if it is complete; an empty one, or one longer than `most`, is an
/// error.
pub(super) fn frame_at(bytes: &[u8], at: usize, most: usize) -> Result<Option<Range<usize>>, NoFrame> {
    let Some((length, rest)) = bytes.get(at..).and_then(|bytes| bytes.split_first_chunk::<LENGTH_BYTES>()) else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes(*length));
    if length == 0 || length > most {
        return Err(NoFrame);
    }
    let begin = at + LENGTH_BYTES;
    Ok((rest.len() >= length).then(|| begin..begin + length))
}

/// Datagrams that wait for room in a byte stream, in order.
#[derive(Debug, Default)]
pub(super) struct FrameQueue {
    bytes: Vec<u8>,
    sent: usize,
}

impl FrameQueue {
    /// Room for a datagram behind the others; `None` if the total would exceed `most` bytes, or it is longer than any.
    pub(super) fn push(&mut self, length: usize, most: usize) -> Option<&mut [u8]> {
        let said = u16::try_from(length).ok()?;
        if self.len() + LENGTH_BYTES + length > most {
            return None;
        }
        if self.sent > 0 && (self.sent == self.bytes.len() || self.sent >= MOVED_AT) {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
        self.bytes.extend_from_slice(&said.to_be_bytes());
        let begin = self.bytes.len();
        self.bytes.resize(begin + length, 0);
        self.bytes.get_mut(begin..)
    }

    /// Removes the last datagram, of `length` bytes, which is not sent after all.
    pub(super) fn take_back(&mut self, length: usize) {
        let rest = self.bytes.len().saturating_sub(LENGTH_BYTES + length);
        self.bytes.truncate(rest.max(self.sent));
    }

    /// The next bytes to send.
    pub(super) fn unsent(&self) -> &[u8] {
        self.bytes.get(self.sent..).unwrap_or_default()
    }

    /// So much of it has gone.
    pub(super) fn on_sent(&mut self, bytes: usize) {
        self.sent = (self.sent + bytes).min(self.bytes.len());
    }

    /// Bytes that wait.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }
}

/// Sent bytes are cleared away from this size on.
const MOVED_AT: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 9000;

    #[test]
    fn frame_at__waits_for_all_of_it_and_takes_no_nonsense() {
        let bytes = [0, 3, 7, 8, 9, 0, 1];
        assert_eq!(frame_at(&bytes, 0, MOST), Ok(Some(2..5)));
        assert_eq!((frame_at(&bytes, 5, MOST), frame_at(&bytes, 7, MOST)), (Ok(None), Ok(None)));
        assert_eq!((frame_at(&bytes[..4], 0, MOST), frame_at(&bytes, 99, MOST)), (Ok(None), Ok(None)));
        assert_eq!((frame_at(&[0, 0, 1], 0, MOST), frame_at(&bytes, 0, 2)), (Err(NoFrame), Err(NoFrame)));
        // First bytes of other protocols.
        for text in ["GET / HTTP/1.1", "SSH-2.0-", "\u{16}\u{3}\u{1}"] {
            assert_eq!(frame_at(text.as_bytes(), 0, MOST).is_err(), text != "\u{16}\u{3}\u{1}", "{text}");
        }
    }

    /// For any input, a frame is within the bytes, of an allowed length, and reading a stream ends.
    #[test]
    fn frame_at__of_anything() {
        bolero::check!().with_type::<(Vec<u8>, u8)>().for_each(|(stream, at)| {
            let mut at = usize::from(*at);
            while let Ok(Some(range)) = frame_at(stream, at, MOST) {
                assert!(range.start == at + 2 && (1..=MOST).contains(&range.len()) && range.end <= stream.len());
                at = range.end;
            }
        });
    }

    #[test]
    fn push__has_an_end() {
        let mut queue = FrameQueue::default();
        assert!(queue.push(98, 200).is_some() && queue.push(98, 200).is_some());
        assert!(queue.push(1, 200).is_none());
        queue.on_sent(50);
        assert!(queue.push(48, 200).is_some() && queue.push(1, 200).is_none());
        assert!(queue.push(70_000, 1 << 20).is_none());
    }

    /// However it is cut on its way, what is pushed and not taken back comes out, in order.
    #[test]
    fn queue__comes_out_as_it_went_in() {
        bolero::check!().with_type::<Vec<(u16, u16, u8)>>().for_each(|steps| {
            let mut queue = FrameQueue::default();
            let (mut pushed, mut stream) = (Vec::new(), Vec::new());
            for (length, goes, value) in steps {
                let length = 1 + usize::from(*length) % MOST;
                if let Some(room) = queue.push(length, 1 << 16) {
                    room.fill(*value);
                    if value % 5 == 0 { queue.take_back(length) } else { pushed.push(vec![*value; length]) }
                }
                let goes = usize::from(*goes).min(queue.unsent().len());
                stream.extend_from_slice(&queue.unsent()[..goes]);
                queue.on_sent(goes);
            }
            stream.extend_from_slice(queue.unsent());
            let (mut at, mut found) = (0, Vec::new());
            while let Some(range) = frame_at(&stream, at, MOST).unwrap() {
                at = range.end;
                found.push(stream[range].to_vec());
            }
            assert_eq!((at, found), (stream.len(), pushed));
        });
    }
}
