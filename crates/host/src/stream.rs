//! Streams as bytes in order: a simple interface for data in memory, or data read as it arrives.
//!
//! It copies more than a custom [`Handler`] would, and holds a stream's bytes until those in front of them have
//! arrived.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::task::Poll;

use atomic_waker::AtomicWaker;
use crossbeam_channel::{Receiver, Sender, TryRecvError, unbounded};
use fairwave_proto::Terms;
use fairwave_proto::codec::{CloseReason, VoidReason};
use thiserror::Error;

use crate::connect::{ConnectError, ConnectOptions};
use crate::endpoint::Endpoint;
use crate::handler::Handler;
use crate::session::Session;
use crate::ticket::Ticket;

/// Gives streams that are in memory: what is beyond the end of one is refused.
#[derive(Clone, Default)]
pub struct MemorySource {
    streams: BTreeMap<u32, Arc<[u8]>>,
}

/// Reads a range of a stream from its first byte to its last.
///
/// [`Read`] blocks, and [`StreamReader::chunk`] waits for any executor. Dropping it ends the session.
pub struct StreamReader {
    session: Session,
    news: Receiver<StreamNews>,
    waker: Arc<AtomicWaker>,
    stream: u32,
    range: Range<u64>,
    /// The next byte to hand out.
    at: u64,
    /// Up to here it was asked for.
    asked: u64,
    waiting: BTreeMap<u64, Vec<u8>>,
    /// The rest of the piece at `at`.
    piece: Vec<u8>,
    used: usize,
}

/// Why a stream cannot be read to its end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The source has no such bytes.
    #[error("the source has no data from byte {offset} on: {reason:?}")]
    Void {
        /// Their offset.
        offset: u64,
        /// Why.
        reason: VoidReason,
    },
    /// The session is over.
    #[error("the session ended: {0}")]
    Closed(CloseReason),
}

enum StreamNews {
    Data(u64, Vec<u8>),
    Void(Range<u64>, VoidReason),
    Closed(CloseReason),
}

/// Takes what comes to a reader.
struct StreamTaker {
    news: Sender<StreamNews>,
    waker: Arc<AtomicWaker>,
}

/// Bytes that are asked for ahead of what was read.
const AHEAD: u64 = 16 << 20;

impl MemorySource {
    /// With these streams.
    pub fn new(streams: impl IntoIterator<Item = (u32, Arc<[u8]>)>) -> Self {
        Self { streams: streams.into_iter().collect() }
    }
}

impl Handler for MemorySource {
    fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
        let length = self.streams.get(&stream).map_or(0, |bytes| bytes.len() as u64);
        let end = range.end.min(length).max(range.start);
        if range.start < end {
            session.serve(stream, range.start..end);
        }
        if end < range.end {
            session.refuse(stream, end..range.end, VoidReason::Shrank);
        }
    }

    fn lend(&mut self, stream: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        let bytes = self.streams.get(&stream).ok_or(VoidReason::Vanished)?;
        let (Ok(start), Ok(end)) = (usize::try_from(range.start), usize::try_from(range.end)) else {
            return Err(VoidReason::Shrank);
        };
        take(bytes.get(start..end).ok_or(VoidReason::Shrank)?);
        Ok(())
    }
}

impl Handler for StreamTaker {
    fn on_data(&mut self, _session: &Session, _stream: u32, offset: u64, bytes: &[u8]) {
        self.tell(StreamNews::Data(offset, bytes.to_vec()));
    }

    fn on_void(&mut self, _session: &Session, _stream: u32, range: Range<u64>, reason: VoidReason) {
        self.tell(StreamNews::Void(range, reason));
    }

    fn on_closed(&mut self, _session: &Session, reason: CloseReason, _by_peer: bool) {
        self.tell(StreamNews::Closed(reason));
    }
}

impl StreamTaker {
    fn tell(&self, news: StreamNews) {
        // A reader that is gone has no need of it.
        let _ = self.news.send(news);
        self.waker.wake();
    }
}

impl StreamReader {
    /// Opens a session and reads a range of one of its streams.
    pub fn open(
        endpoint: &Endpoint,
        ticket: &Ticket,
        greeting: &[u8],
        stream: u32,
        range: Range<u64>,
    ) -> Result<Self, ConnectError> {
        let (taker, reader) = Self::halves();
        Ok(reader(endpoint.connect(ticket, options(greeting), Box::new(taker))?, stream, range))
    }

    /// Opens one like `open`, for any executor.
    pub async fn open_async(
        endpoint: &Endpoint,
        ticket: &Ticket,
        greeting: &[u8],
        stream: u32,
        range: Range<u64>,
    ) -> Result<Self, ConnectError> {
        let (taker, reader) = Self::halves();
        Ok(reader(endpoint.connect_async(ticket, options(greeting), Box::new(taker)).await?, stream, range))
    }

    fn halves() -> (StreamTaker, impl FnOnce(Session, u32, Range<u64>) -> Self) {
        let (tell, news) = unbounded();
        let waker = Arc::new(AtomicWaker::new());
        let taker = StreamTaker { news: tell, waker: Arc::clone(&waker) };
        let reader = move |session, stream, range: Range<u64>| {
            let at = range.start;
            let (waiting, piece) = (BTreeMap::new(), Vec::new());
            let mut reader = Self { session, news, waker, stream, range, at, asked: at, waiting, piece, used: 0 };
            reader.ask();
            reader
        };
        (taker, reader)
    }

    /// The session that it reads from.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The next bytes, as many as are available at once; `None` at the end.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, ReadError> {
        loop {
            if let Some(chunk) = self.take_piece() {
                return Ok(Some(chunk));
            }
            if self.at >= self.range.end {
                return Ok(None);
            }
            let (news, waker) = (&self.news, &self.waker);
            let heard = poll_fn(|context| {
                waker.register(context.waker());
                match news.try_recv() {
                    Ok(heard) => Poll::Ready(heard),
                    Err(TryRecvError::Empty) => Poll::Pending,
                    Err(TryRecvError::Disconnected) => Poll::Ready(StreamNews::Closed(CloseReason::Stopped)),
                }
            });
            let heard = heard.await;
            self.hear(heard)?;
        }
    }

    /// Takes the available part of the piece at the front.
    fn take_piece(&mut self) -> Option<Vec<u8>> {
        if self.piece.is_empty() {
            return None;
        }
        let chunk = self.piece.split_off(self.used);
        (self.piece, self.used) = (Vec::new(), 0);
        self.advance(chunk.len());
        Some(chunk)
    }

    fn hear(&mut self, news: StreamNews) -> Result<(), ReadError> {
        match news {
            StreamNews::Data(offset, bytes) => {
                self.waiting.insert(offset, bytes);
            }
            StreamNews::Void(range, reason) => return Err(ReadError::Void { offset: range.start, reason }),
            StreamNews::Closed(reason) => return Err(ReadError::Closed(reason)),
        }
        self.pull();
        Ok(())
    }

    /// Takes the piece that is next, if it is there.
    fn pull(&mut self) {
        if self.piece.is_empty()
            && let Some(piece) = self.waiting.remove(&self.at)
        {
            (self.piece, self.used) = (piece, 0);
        }
    }

    /// Bytes were handed out.
    fn advance(&mut self, bytes: usize) {
        self.at += bytes as u64;
        self.pull();
        self.ask();
    }

    fn ask(&mut self) {
        let end = self.range.end.min(self.at.saturating_add(AHEAD));
        // Many bytes at a time, and the last ones.
        if end.saturating_sub(self.asked) >= AHEAD / 4 || end == self.range.end && self.asked < end {
            self.session.want(self.stream, self.asked..end);
            self.asked = end;
        }
    }
}

impl Read for StreamReader {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if room.is_empty() {
            return Ok(0);
        }
        while self.piece.is_empty() && self.at < self.range.end {
            let news = self.news.recv().unwrap_or(StreamNews::Closed(CloseReason::Stopped));
            self.hear(news).map_err(io::Error::other)?;
        }
        let left = &self.piece[self.used..];
        let bytes = left.len().min(room.len());
        room[..bytes].copy_from_slice(&left[..bytes]);
        self.used += bytes;
        if self.used == self.piece.len() {
            (self.piece, self.used) = (Vec::new(), 0);
        }
        self.advance(bytes);
        Ok(bytes)
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        self.session.close(CloseReason::Done);
    }
}

fn options(greeting: &[u8]) -> ConnectOptions {
    ConnectOptions { sends: false, receives: true, greeting: greeting.to_vec(), options: Terms::default() }
}
