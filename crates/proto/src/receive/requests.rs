//! A sink's requests to its source.

use std::collections::BTreeMap;
use std::ops::Range;

use fairwave_units::{Bytes, Duration, Rate, Time};

use crate::receive::byte_ranges::ByteRanges;
use crate::receive::missing_numbers::MAX_GAPS;

/// The bytes that a sink wants and has not received, and which of them its source knows of.
///
/// Enough is kept asked for that a source never waits for its sink, and no more than the sink has room for: what may
/// come is bounded by what was asked for, and the rest is refused. Every byte counts once, so that duplicates do no
/// harm.
///
/// A request may get lost. One of which nothing has come for a while is asked for again; a source that knows it already
/// takes no notice. Lower streams go first, and within a stream what was asked for before, then the lowest offsets.
///
/// Memory follows the requests, of which at most `MAX_OPEN` are open, and the gaps in what they brought.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    streams: BTreeMap<u32, WantedStream>,
    /// In all streams.
    open: usize,
    asked_bytes: u64,
    /// When the latest of the requests was made of which something has come.
    served: Time,
    /// The ranges of the last data.
    parts: Vec<Range<u64>>,
    /// No open request has waited since an earlier time.
    waiting_since: Time,
}

/// A range of a stream that a source is to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The stream.
    pub stream: u32,
    /// Its bytes, at least one.
    pub range: Range<u64>,
}

/// A byte that is wanted and has not come is in one of three places.
#[derive(Clone, Debug, Default)]
struct WantedStream {
    /// Never asked for.
    fresh: ByteRanges,
    /// Asked for in vain.
    lapsed: ByteRanges,
    /// Asked for, by where the request started. Requests do not overlap.
    asks: BTreeMap<u64, RequestedRange>,
}

#[derive(Clone, Debug)]
struct RequestedRange {
    end: u64,
    missing: ByteRanges,
    made: Time,
    /// When it was seen that something came of one that was made later, and nothing of it.
    overtaken: Option<Time>,
    /// When it was made, or when something of it came.
    since: Time,
}

/// Why bytes are missing no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Removal {
    Arrived(Time),
    GivenUp,
}

/// Requests that may be open at a time; a source keeps as many.
pub(crate) const MAX_OPEN: usize = 256;
/// Smaller requests are made only for all that is left of a range.
pub(crate) const MIN_REQUEST: Bytes = Bytes::new(64 << 10);
/// A request for at most this many bytes is a signal to the source more than a request for data: it is sent even if the
/// window, which may have shrunk, has no room for it. All that may be open are 16 KiB.
const MAX_WORD: u64 = 64;
/// Min window of requests, so that a session gets under way.
pub(crate) const MIN_WINDOW: Bytes = Bytes::new(2_000_000);
/// Number of parts in which large windows are requested.
const PARTS: u64 = 64;

/// A request may have one gap per this many bytes; the smallest full packets carry more.
const MIN_PIECE: u64 = 1024;
/// Number of gaps that are allowed in any case.
const FREE_GAPS: usize = 8;

/// How many bytes to keep asked for: what comes in one and a half times a round trip and two control intervals at the
/// expected rate, and at least `least`; but never more than the sink has room for.
pub(crate) fn request_window(expected: Rate, rtt: Duration, interval: Duration, least: Bytes, room: Bytes) -> Bytes {
    let span_s = rtt.as_secs_f64() + 2.0 * interval.as_secs_f64();
    let window = (1.5 * expected.as_bps() / 8.0 * span_s) as u64;
    Bytes::new(window.max(least.get()).min(room.get()))
}

impl Requests {
    /// The sink wants a range, also one that it had and that turned out to be wrong.
    pub fn want(&mut self, stream: u32, range: Range<u64>) {
        let stream = self.streams.entry(stream).or_default();
        let mut fresh = ByteRanges::from(range.clone());
        for known in stream.lapsed.iter().chain(stream.asks.values().flat_map(|ask| ask.missing.iter())) {
            fresh.remove(&known);
        }
        for range in fresh.iter() {
            // A request that has brought some of it already is over: requests do not overlap.
            stream.asks.retain(|&start, ask| {
                let is_apart = ask.end <= range.start || range.end <= start;
                if !is_apart {
                    self.open -= 1;
                    self.asked_bytes -= ask.missing.bytes();
                    ask.missing.iter().for_each(|range| _ = stream.lapsed.insert(range));
                }
                is_apart
            });
            stream.fresh.insert(range);
        }
    }

    /// The sink does not want a range any more: how many of its bytes were missing.
    pub fn give_up(&mut self, stream: u32, range: &Range<u64>) -> u64 {
        let Some(entry) = self.streams.get_mut(&stream) else { return 0 };
        let bytes = entry.fresh.remove(range);
        bytes + self.take(Removal::GivenUp, stream, range)
    }

    /// Bytes of a stream arrived: returns how many of them were requested and come for the first time. If a source
    /// leaves gaps that no packets have, they are refused, as if lost in transit.
    pub fn on_data(&mut self, now: Time, stream: u32, range: &Range<u64>) -> u64 {
        self.take(Removal::Arrived(now), stream, range)
    }

    /// Requests of which nothing has come for as long as `patience` are to be made again.
    pub fn lapse(&mut self, now: Time, patience: Duration) {
        if now.since(self.waiting_since) < patience {
            return;
        }
        let mut waiting_since = now;
        self.lapse_where(|_, ask| {
            let is_over = now.since(ask.since) >= patience;
            if !is_over {
                waiting_since = waiting_since.min(ask.since);
            }
            is_over
        });
        self.waiting_since = waiting_since;
    }

    /// Requests of which nothing has ever come are to be made again where something came of one that was made later,
    /// and `patience`, which is a shorter time, is over since that was seen: a source takes them in turn, so they got
    /// lost. One that was only late is behind those that overtook it, and its turn comes as soon as they are served.
    pub fn lapse_overtaken(&mut self, now: Time, patience: Duration) {
        let served = self.served;
        self.lapse_where(|start, ask| {
            let is_overtaken = ask.made < served && ask.is_untouched(start);
            is_overtaken && now.since(*ask.overtaken.get_or_insert(now)) >= patience
        });
    }

    fn lapse_where(&mut self, mut is_over: impl FnMut(u64, &mut RequestedRange) -> bool) {
        for stream in self.streams.values_mut() {
            let WantedStream { asks, lapsed, .. } = stream;
            asks.retain(|&start, ask| {
                let is_waiting = !is_over(start, ask);
                if !is_waiting {
                    self.open -= 1;
                    self.asked_bytes -= ask.missing.bytes();
                    ask.missing.iter().for_each(|range| _ = lapsed.insert(range));
                }
                is_waiting
            });
        }
    }

    /// The next request to make, if less than `window` is asked for, or if it is for `MAX_WORD` bytes at most.
    pub fn next(&mut self, now: Time, window: Bytes) -> Option<Request> {
        if self.open >= MAX_OPEN {
            return None;
        }
        let (&name, stream) = self.streams.iter_mut().find(|(_, stream)| stream.waits())?;
        let waiting = if stream.lapsed.is_empty() { &mut stream.fresh } else { &mut stream.lapsed };
        let left = waiting.first().map_or(0, |range| range.end - range.start);
        let room = window.get().saturating_sub(self.asked_bytes);
        let room = if left <= MAX_WORD { room.max(left) } else { room };
        if room == 0 {
            return None;
        }
        let least = MIN_REQUEST.get();
        let most = room.min(least.max(window.get() / PARTS));
        // Without room for a whole one, better a whole one later; unless the sink never has that much.
        if left > most && most < least.min(window.get()) {
            return None;
        }
        let range = waiting.take_first(if left <= most { left } else { most - most % least.min(most) })?;
        let missing = ByteRanges::from(range.clone());
        self.open += 1;
        self.asked_bytes += missing.bytes();
        stream
            .asks
            .insert(range.start, RequestedRange { end: range.end, missing, made: now, since: now, overtaken: None });
        Some(Request { stream: name, range })
    }

    /// Bytes that are asked for and have not come.
    pub fn asked(&self) -> Bytes {
        Bytes::new(self.asked_bytes)
    }

    /// Bytes of a stream that are wanted and have not come.
    pub fn missing(&self, stream: u32) -> Bytes {
        let bytes = self.streams.get(&stream).map_or(0, |stream| {
            let asked: u64 = stream.asks.values().map(|ask| ask.missing.bytes()).sum();
            stream.fresh.bytes() + stream.lapsed.bytes() + asked
        });
        Bytes::new(bytes)
    }

    /// Whether any byte of a range is wanted and has not come.
    pub fn is_missing(&self, stream: u32, range: &Range<u64>) -> bool {
        self.streams.get(&stream).is_some_and(|stream| {
            let mut asks = stream.asks.values();
            stream.fresh.overlaps(range) || stream.lapsed.overlaps(range) || asks.any(|ask| ask.missing.overlaps(range))
        })
    }

    /// Whether something is wanted that is not asked for.
    pub(crate) fn waits(&self) -> bool {
        self.streams.values().any(WantedStream::waits)
    }

    /// Whether all that was wanted has come.
    pub fn is_complete(&self) -> bool {
        self.open == 0 && self.streams.values().all(|stream| !stream.waits())
    }

    /// The parts of the last data that were asked for and came for the first time, in no order.
    pub fn parts(&self) -> &[Range<u64>] {
        &self.parts
    }

    /// Takes a range out of what was asked for: how many of its bytes were there.
    fn take(&mut self, why: Removal, name: u32, range: &Range<u64>) -> u64 {
        let parts = &mut self.parts;
        parts.clear();
        let Some(stream) = self.streams.get_mut(&name) else { return 0 };
        let is_refused = |ranges: &ByteRanges, most: usize| {
            why != Removal::GivenUp && ranges.len() >= most && ranges.would_split(range)
        };
        let lapsed = if is_refused(&stream.lapsed, MAX_GAPS) {
            0
        } else {
            stream.lapsed.remove_each(range, |part| parts.push(part))
        };
        // The only request that starts below the range and may reach into it is the last such one.
        let first = stream.asks.range(..=range.start).next_back().map_or(range.start, |(&start, _)| start);
        let (mut asked, mut done) = (0, Vec::new());
        for (&start, ask) in stream.asks.range_mut(first..range.end.max(first)) {
            let most = usize::try_from((ask.end - start) / MIN_PIECE).unwrap_or(MAX_GAPS);
            if is_refused(&ask.missing, most.clamp(FREE_GAPS, MAX_GAPS)) {
                continue;
            }
            let bytes = ask.missing.remove_each(range, |part| parts.push(part));
            asked += bytes;
            if bytes > 0
                && let Removal::Arrived(now) = why
            {
                ask.since = now;
                self.served = self.served.max(ask.made);
            }
            if ask.missing.is_empty() {
                done.push(start);
            }
        }
        self.open -= done.len();
        self.asked_bytes -= asked;
        for start in done {
            stream.asks.remove(&start);
        }
        if stream.asks.is_empty() && !stream.waits() {
            self.streams.remove(&name);
        }
        lapsed + asked
    }
}

impl RequestedRange {
    /// Whether nothing of it has come, where it started at `start`.
    fn is_untouched(&self, start: u64) -> bool {
        self.missing.bytes() == self.end - start
    }
}

impl WantedStream {
    /// Whether there is anything to ask for.
    fn waits(&self) -> bool {
        !self.fresh.is_empty() || !self.lapsed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, VecDeque};

    use proptest::prelude::*;

    use super::*;
    use crate::RequestQueue;

    const MB: u64 = 1_000_000;
    const WINDOW: Bytes = Bytes::new(2 * MB);
    const PATIENCE: Duration = Duration::from_millis(100);

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn all(requests: &mut Requests, now: Time, window: Bytes) -> Vec<Request> {
        std::iter::from_fn(|| requests.next(now, window)).collect()
    }

    #[test]
    fn request_window__covers_a_round_trip_and_two_intervals() {
        let [rtt, interval] = [100, 20].map(Duration::from_millis);
        let window = |rate, room| request_window(rate, rtt, interval, MIN_WINDOW, Bytes::new(room)).get();
        // 1.5 x 125 MB/s x (0.1 s + 0.04 s) = 26.25 MB.
        assert_eq!(window(Rate::gbps(1.0), 100 * MB), 26_250_000);
        assert_eq!(window(Rate::gbps(1.0), 5 * MB), 5 * MB);
        assert_eq!(window(Rate::mbps(1.0), 100 * MB), 2 * MB);
    }

    #[test]
    fn lapse_overtaken__what_a_later_request_overtook_is_asked_for_again() {
        let mut requests = Requests::default();
        requests.want(1, 0..10 * MB);
        let first = all(&mut requests, ms(0), Bytes::new(4 * 65_536));
        assert_eq!(first.len(), 4);
        let later = all(&mut requests, ms(10), Bytes::new(6 * 65_536));
        // The second one gets lost; of the first, third, and of one that was made later, something comes.
        for request in [&first[0], &first[2], &later[0]] {
            requests.on_data(ms(50), 1, &(request.range.start..request.range.start + 1000));
        }
        // However long they have waited until then: what was only late comes next.
        for (at, is_over) in [(50, false), (149, false), (150, true)] {
            requests.lapse_overtaken(ms(at), PATIENCE);
            let mut copy = requests.clone();
            assert_eq!(copy.next(ms(at), Bytes::new(6 * 65_536)).is_some(), is_over, "after {at} ms");
        }
        // The second and the fourth, of which nothing came; the last one was overtaken by none.
        let again = all(&mut requests, ms(150), Bytes::new(6 * 65_536));
        assert_eq!(
            again.iter().map(|request| request.range.clone()).collect::<Vec<_>>(),
            [first[1].range.clone(), first[3].range.clone()]
        );
        requests.lapse_overtaken(ms(300), PATIENCE);
        assert_eq!(requests.next(ms(300), Bytes::new(6 * 65_536)), None);
    }

    #[test]
    fn next__keeps_a_window_asked_for() {
        let mut requests = Requests::default();
        requests.want(1, 0..10 * MB);
        // 2 MB / 64 is below 64 KiB = 65 536 B; 2 MB are 30 of those and 33 920 B, which wait.
        let first = all(&mut requests, ms(0), WINDOW);
        assert_eq!((first.len(), requests.asked().get()), (30, 30 * 65_536));
        assert_eq!(first[1], Request { stream: 1, range: 65_536..131_072 });
        // 40 000 B came: with the rest that is 73 920 B, one more.
        assert_eq!(requests.on_data(ms(1), 1, &(0..40_000)), 40_000);
        assert_eq!(all(&mut requests, ms(1), WINDOW), [Request { stream: 1, range: 30 * 65_536..31 * 65_536 }]);
        // 26.25 MB in 64 parts: 410 156 B, of which 6 x 65 536 are taken.
        let more = requests.next(ms(1), Bytes::new(26_250_000)).unwrap();
        assert_eq!(more.range.end - more.range.start, 6 * 65_536);
        // A sink with less room than one whole request has asks for what it has room for.
        let mut small = Requests::default();
        small.want(1, 0..MB);
        assert_eq!(all(&mut small, ms(0), Bytes::new(1000)), [Request { stream: 1, range: 0..1000 }]);
    }

    #[test]
    fn next__the_end_of_a_range_may_be_small() {
        let mut requests = Requests::default();
        requests.want(2, 0..70_000);
        requests.want(1, 500..600);
        let ranges: Vec<_> = all(&mut requests, ms(0), WINDOW).into_iter().map(|r| (r.stream, r.range)).collect();
        assert_eq!(ranges, [(1, 500..600), (2, 0..65_536), (2, 65_536..70_000)]);
    }

    #[test]
    fn next__a_word_does_not_wait_for_room() {
        let mut requests = Requests::default();
        requests.want(1, 0..10 * MB);
        all(&mut requests, ms(0), Bytes::new(4 * MB));
        // The window has become half of that, and nothing more comes of what is asked for.
        requests.want(0, 7..8);
        assert_eq!(all(&mut requests, ms(1), WINDOW), [Request { stream: 0, range: 7..8 }]);
        requests.want(0, 100..100 + MAX_WORD + 1);
        assert_eq!(all(&mut requests, ms(1), WINDOW), []);
    }

    #[test]
    fn next__bounds_the_open_requests() {
        let mut requests = Requests::default();
        for at in 0..300 {
            requests.want(1, at * 10..at * 10 + 5);
        }
        assert_eq!(all(&mut requests, ms(0), WINDOW).len(), MAX_OPEN);
        assert_eq!(requests.on_data(ms(1), 1, &(0..25)), 15);
        assert_eq!(all(&mut requests, ms(1), WINDOW).len(), 3);
    }

    #[test]
    fn lapse__asks_again_for_what_has_not_come() {
        let mut requests = Requests::default();
        requests.want(1, 0..100_000);
        all(&mut requests, ms(0), WINDOW);
        assert_eq!(requests.on_data(ms(60), 1, &(10_000..20_000)), 10_000);
        // The second request started at 65 536; of the first, something came at 60 ms.
        requests.lapse(ms(100), PATIENCE);
        assert_eq!(all(&mut requests, ms(100), WINDOW), [Request { stream: 1, range: 65_536..100_000 }]);
        requests.lapse(ms(160), PATIENCE);
        assert_eq!((requests.asked().get(), requests.missing(1).get()), (34_464, 90_000));
        // Late data is accepted, and not requested again.
        assert_eq!(requests.on_data(ms(161), 1, &(0..5000)), 5000);
        let ranges: Vec<_> = all(&mut requests, ms(161), WINDOW).into_iter().map(|r| r.range).collect();
        assert_eq!(ranges, [5000..10_000, 20_000..65_536]);
        assert_eq!(requests.on_data(ms(162), 1, &(0..100_000)), 85_000);
        assert!(requests.is_complete());
    }

    #[test]
    fn on_data__refuses_what_was_not_asked_for_and_counts_once() {
        let mut requests = Requests::default();
        requests.want(1, 0..10 * MB);
        requests.next(ms(0), WINDOW);
        assert_eq!(requests.on_data(ms(1), 1, &(60_000..70_000)), 5536);
        assert_eq!(requests.on_data(ms(1), 1, &(60_000..70_000)), 0);
        assert_eq!(requests.on_data(ms(1), 7, &(0..10)), 0);
        assert!(!requests.is_missing(1, &(60_000..65_536)));
        assert!(requests.is_missing(1, &(60_000..65_537)));
        // Wanted twice is wanted once; had and wanted again is fetched again.
        requests.want(1, 0..65_536);
        assert_eq!(requests.missing(1).get(), 10 * MB);
        assert_eq!(requests.on_data(ms(1), 1, &(0..200)), 200);
        requests.want(1, 100..200);
        requests.want(1, 65_000..70_000);
        assert_eq!(requests.missing(1).get(), 10 * MB - 100);
        assert_eq!(requests.asked().get(), 0); // the request that had brought them is over
        assert_eq!(requests.on_data(ms(1), 1, &(0..MB)), 59_800); // 200..60 000 lapsed
        // Of what is given up, nothing is missing.
        assert_eq!(requests.give_up(1, &(0..10 * MB)), 10 * MB - 100 - 59_800);
        assert!(requests.is_complete());
        assert_eq!((requests.asked().get(), requests.next(ms(1), WINDOW)), (0, None));
    }

    #[test]
    fn want__again_ends_the_request_that_had_brought_it() {
        let mut requests = Requests::default();
        requests.want(1, 0..65_536);
        all(&mut requests, ms(0), WINDOW);
        assert_eq!(requests.on_data(ms(1), 1, &(0..40_000)), 40_000);
        requests.want(1, 0..100);
        let ranges: Vec<_> = all(&mut requests, ms(2), WINDOW).into_iter().map(|r| r.range).collect();
        assert_eq!(ranges, [40_000..65_536, 0..100]);
        assert_eq!(requests.asked().get(), 25_636);
        assert_eq!(requests.on_data(ms(3), 1, &(0..65_536)), 25_636);
        assert!(requests.is_complete());
    }

    #[test]
    fn on_data__bounds_the_gaps() {
        let mut requests = Requests::default();
        requests.want(1, 0..65_536);
        all(&mut requests, ms(0), WINDOW);
        // 65 536 / 1024 = 64 ranges may be missing: after 63 single bytes there are.
        for at in 0..100_u64 {
            assert_eq!(requests.on_data(ms(1), 1, &(2 * at + 1..2 * at + 2)), u64::from(at < 63));
        }
        assert_eq!(requests.on_data(ms(1), 1, &(0..65_536)), 65_536 - 63);
    }

    proptest! {
        /// A sink and a source between which requests and pieces get lost: all arrives, no more is under way than the
        /// window, and without losses every byte is sent once.
        #[test]
        fn requests__bring_all_that_is_wanted(
            fates in proptest::collection::vec(0_u8..10, 0..200),
            wanted in proptest::collection::vec((0_u32..3, 0_u64..900_000, 1_u64..400_000), 1..8),
            window in 30_000_u64..500_000,
        ) {
            let is_lossless = fates.iter().all(|&fate| fate > 2);
            let mut fates = fates.into_iter().chain(std::iter::repeat(9));
            let (mut sink, mut source) = (Requests::default(), RequestQueue::default());
            let mut expected = BTreeMap::<u32, ByteRanges>::new();
            for (stream, start, length) in wanted {
                sink.want(stream, start..start + length);
                expected.entry(stream).or_default().insert(start..start + length);
            }
            let total: u64 = expected.values().map(ByteRanges::bytes).sum();
            let (mut got, mut sent) = (0, 0);
            let mut under_way = VecDeque::new();
            let mut seen = BTreeSet::new();
            for tick in 0..20_000 {
                let now = ms(tick);
                sink.lapse(now, PATIENCE);
                while let Some(request) = sink.next(now, Bytes::new(window)) {
                    prop_assert!(sink.asked().get() <= window + MAX_WORD * MAX_OPEN as u64);
                    if fates.next().unwrap_or(9) > 2 {
                        prop_assert!(source.on_request(request.stream, request.range));
                    }
                }
                for _ in 0..5 {
                    under_way.extend(source.next_piece(10_000));
                }
                while under_way.len() > 3 {
                    let Some(piece) = under_way.pop_front() else { break };
                    sent += u64::from(piece.length);
                    if fates.next().unwrap_or(9) > 2 {
                        let range = piece.offset..piece.offset + u64::from(piece.length);
                        got += sink.on_data(now, piece.stream, &range);
                        seen.insert((piece.stream, piece.offset));
                    } else {
                        source.on_lost(piece);
                    }
                }
                if under_way.len() <= 3 && source.is_empty() {
                    for piece in under_way.drain(..) {
                        sent += u64::from(piece.length);
                        got += sink.on_data(now, piece.stream, &(piece.offset..piece.offset + u64::from(piece.length)));
                    }
                }
                if sink.is_complete() {
                    break;
                }
            }
            prop_assert_eq!(got, total);
            prop_assert!(sink.is_complete() && sink.asked() == Bytes::ZERO);
            if is_lossless {
                prop_assert_eq!(sent, total);
            }
        }
    }
}
