//! Streams that go from one host to another.

use std::ops::Range;

use fairwave_proto::codec::SessionId;
use fairwave_proto::{ByteRanges, Terms};
use fairwave_units::{Rate, Time};

/// Size of a stream without end.
pub(crate) const ENDLESS: u64 = 1 << 40;

/// Streams from a source to a sink, and the sessions that carry them, one after the other.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "properties that do not depend on each other")]
pub(crate) struct Flow {
    pub(crate) source: usize,
    pub(crate) sink: usize,
    /// The sink opens the session, rather than the source.
    pub(crate) is_fetched: bool,
    /// Data go both ways; what comes to the source is not counted here.
    pub(crate) is_mutual: bool,
    /// Bytes of each stream.
    pub(crate) sizes: Vec<u64>,
    pub(crate) options: Terms,
    /// Largest rate of the source's application.
    pub(crate) desired: Option<Rate>,
    /// The source refuses all requests.
    pub(crate) is_refused: bool,
    /// The source refuses requests of what is behind this.
    pub(crate) has: u64,
    /// When its sink closes it.
    pub(crate) ends: Time,
    /// All of it must arrive, and each byte is checked.
    pub(crate) is_honest: bool,
    /// A session that is lost is opened again.
    pub(crate) is_retried: bool,
    /// Parts of each stream that the sink has; they outlive its sessions.
    pub(crate) got: Vec<ByteRanges>,
    /// Bytes that came for the first time, by milliseconds.
    pub(crate) fresh: Vec<u64>,
    pub(crate) completed: Option<Time>,
    pub(crate) attempts: u32,
    pub(crate) session: Option<SessionId>,
    pub(crate) next_attempt: Option<Time>,
}

impl Flow {
    /// A flow without end that starts at once, opened by its sink.
    pub(crate) fn endless(source: usize, sink: usize) -> Self {
        Self {
            source,
            sink,
            is_fetched: true,
            is_mutual: false,
            sizes: vec![ENDLESS],
            options: Terms::default(),
            desired: None,
            is_refused: false,
            has: ENDLESS,
            ends: Time::MAX,
            is_honest: false,
            is_retried: false,
            got: vec![ByteRanges::default()],
            fresh: Vec::new(),
            completed: None,
            attempts: 0,
            session: None,
            next_attempt: Some(Time::ZERO),
        }
    }

    /// Streams of these sizes that arrive whatever it takes.
    pub(crate) fn new(initiator: usize, responder: usize, is_fetched: bool, begins: Time, sizes: Vec<u64>) -> Self {
        let (source, sink) = if is_fetched { (responder, initiator) } else { (initiator, responder) };
        Self {
            is_fetched,
            got: vec![ByteRanges::default(); sizes.len()],
            sizes,
            is_honest: true,
            is_retried: true,
            ..Self::endless(source, sink).from(begins)
        }
    }

    #[must_use]
    pub(crate) fn from(self, begins: Time) -> Self {
        Self { next_attempt: Some(begins), ..self }
    }

    pub(crate) fn initiator(&self) -> usize {
        if self.is_fetched { self.sink } else { self.source }
    }

    pub(crate) fn responder(&self) -> usize {
        if self.is_fetched { self.source } else { self.sink }
    }

    pub(crate) fn got_bytes(&self) -> u64 {
        self.got.iter().map(ByteRanges::bytes).sum()
    }

    /// Mean goodput, in Mb/s.
    pub(crate) fn mbps(&self, from_ms: usize, to_ms: usize) -> f64 {
        let bytes: u64 = self.fresh.iter().skip(from_ms).take(to_ms - from_ms).sum();
        bytes as f64 * 8.0 / 1e3 / (to_ms - from_ms) as f64
    }

    pub(super) fn is_complete(&self) -> bool {
        self.got.iter().zip(&self.sizes).all(|(got, size)| got.bytes() == *size)
    }

    /// Ranges that the sink still wants, by stream.
    pub(super) fn wanted(&self) -> Vec<(u32, Range<u64>)> {
        let wanted = self.got.iter().zip(&self.sizes).enumerate().map(|(stream, (got, size))| {
            let mut rest = if *size > 0 { ByteRanges::from(0..*size) } else { ByteRanges::default() };
            got.iter().for_each(|range| _ = rest.remove(&range));
            rest.iter().map(|range| (stream as u32, range)).collect::<Vec<_>>()
        });
        wanted.flatten().collect()
    }
}
