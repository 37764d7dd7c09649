//! The readers of a session's rate: its end nodes and links, each up to its last tick; and its sink's counts.

use crate::grain::{Grains, Volume, grains, volume};
use crate::meter::RateAverage;
use crate::plan::NONE;
use crate::report::last_tenth;

use super::{FlowState, Flows, FluidFlow, Role};

/// Result of reading a row.
pub(crate) struct RowReading {
    /// Mean rate over the interval.
    pub(crate) mean: f64,
    pub(crate) volume: Volume,
    /// The maximum rate.
    pub(crate) most: Grains,
}

impl Flows<'_> {
    /// Reads some bits of a row, to fetch it.
    #[inline]
    pub(crate) fn touch_row(&self, row: usize) -> u64 {
        let state = &self.rows[row];
        u64::from(state.session) ^ state.since
    }

    /// Reads some bits of a row's session and of its sink's counts, to fetch them.
    #[inline]
    pub(crate) fn touch(&self, row: usize) -> u64 {
        let state = &self.rows[row];
        let flow = &self.all[state.session as usize];
        let next_mark = match state.reader.role() {
            Role::Sink(count) => self.counts[count].next_mark,
            _ => 0,
        };
        next_mark ^ flow.own.to_bits() ^ flow.remote.to_bits() ^ flow.start ^ u64::from(flow.sized)
    }

    /// Reads some bits of a session's changes and grants in transit, to fetch them.
    #[inline]
    pub(crate) fn touch_rings(&self, row: usize) -> u64 {
        let flow = &self.all[self.rows[row].session as usize];
        let cells = [
            (&flow.changes, self.cursor(row)),
            (&flow.changes, flow.changes.tail()),
            (&flow.grants, flow.grants.head()),
        ];
        cells.iter().fold(0, |touched, (ring, count)| touched ^ self.pool.get(ring, *count).at)
    }

    /// Whether a row has nothing left to read, now or ever.
    #[inline]
    pub(crate) fn is_done(&self, row: usize) -> bool {
        let state = &self.rows[row];
        let flow = &self.all[state.session as usize];
        flow.state != FlowState::Active && state.rate == 0.0 && self.cursor(row) == flow.changes.tail()
    }

    /// Count of the next change to read at a row.
    #[inline]
    pub(super) fn cursor(&self, row: usize) -> u32 {
        let state = &self.rows[row];
        let [source, sink] = self.all[state.session as usize].cursors;
        match state.reader.role() {
            Role::Source => source,
            Role::Sink(_) => sink,
            Role::Link(place) => self.link_cursors[place],
        }
    }

    /// Reads the arrivals at a row before `now`, and leaves the changes of its rate, in grains, in the scratch. At a
    /// sink it counts them as delivered.
    #[inline]
    pub(crate) fn read(&mut self, row: usize, now: u64) -> RowReading {
        let role = self.rows[row].reader.role();
        if let Role::Sink(count) = role
            && now >= self.counts[count].next_mark
        {
            self.counts[count].next_mark = self.mark(row, now);
        }
        let state = &mut self.rows[row];
        let FluidFlow { changes, cursors: [source, sink], .. } = &mut self.all[state.session as usize];
        let cursor = match role {
            Role::Source => source,
            Role::Sink(_) => sink,
            Role::Link(place) => &mut self.link_cursors[place],
        };
        let from = state.since;
        let mut rate_grains = grains(state.rate);
        state.since = now;
        let mut reading = RowReading { mean: state.rate, volume: 0, most: rate_grains };
        let tail = changes.tail();
        let mut since = from;
        if *cursor != tail {
            let mut meter = RateAverage::new(from);
            while *cursor != tail {
                let change = self.pool.get(changes, *cursor);
                let at = change.at + state.forward_ns;
                if at >= now {
                    break;
                }
                meter.close(state.rate, at);
                reading.volume += volume(rate_grains, at - since);
                since = at;
                let next = grains(change.bps);
                self.scratch.push((at, next - rate_grains));
                rate_grains = next;
                reading.most = reading.most.max(next);
                state.rate = change.bps;
                *cursor = cursor.wrapping_add(1);
            }
            meter.close(state.rate, now);
            reading.mean = meter.mean(from);
        }
        reading.volume += volume(rate_grains, now - since);
        if let Role::Sink(count) = role {
            self.counts[count].delivered += reading.volume;
        }
        reading
    }

    /// The volume that arrives at a row between its last reading and `to`, without reading it.
    fn unread(&self, row: usize, to: u64) -> Volume {
        let state = &self.rows[row];
        let flow = &self.all[state.session as usize];
        let (mut since, mut rate, mut sum) = (state.since, grains(state.rate), 0);
        let mut count = self.cursor(row);
        while count != flow.changes.tail() {
            let change = self.pool.get(&flow.changes, count);
            let at = change.at + state.forward_ns;
            if at >= to {
                break;
            }
            sum += volume(rate, at - since);
            since = at;
            rate = grains(change.bps);
            count = count.wrapping_add(1);
        }
        sum + volume(rate, to.saturating_sub(since))
    }

    /// Volume that a session has delivered up to `to`.
    pub(crate) fn delivered_by(&self, k: usize, to: u64) -> Volume {
        self.delivered(k) + self.unread(self.plan.sink_row(k), to)
    }

    /// Volume that a session has delivered up to the last reading of its sink.
    pub(crate) fn delivered(&self, k: usize) -> Volume {
        match self.rows[self.plan.sink_row(k)].reader.role() {
            Role::Sink(count) => self.counts[count].delivered,
            _ => 0,
        }
    }

    /// The changes of a row's rate between its last reading and `to`, in grains, without reading them.
    pub(crate) fn peek(&self, row: usize, to: u64, take: &mut Vec<(u64, Grains)>) {
        let state = &self.rows[row];
        let flow = &self.all[state.session as usize];
        let mut rate = grains(state.rate);
        let mut count = self.cursor(row);
        while count != flow.changes.tail() {
            let change = self.pool.get(&flow.changes, count);
            let at = change.at + state.forward_ns;
            if at >= to {
                break;
            }
            let next = grains(change.bps);
            take.push((at, next - rate));
            rate = next;
            count = count.wrapping_add(1);
        }
    }

    /// The spans of a session's means: the window, and the last tenth. That of a session of finite size comes from its
    /// trail.
    fn spans(&self, k: usize) -> [Option<(u64, u64)>; 2] {
        let Some((start, end)) = self.plan.active(k) else { return [None, None] };
        [Some(self.window), (self.all[k].sized == NONE).then(|| last_tenth(start, end))]
    }

    /// Records the counts at the ends of means between a sink's last reading and `now`, and returns the next end.
    #[cold]
    fn mark(&mut self, row: usize, now: u64) -> u64 {
        let k = self.rows[row].session as usize;
        let since = self.rows[row].since;
        let spans = self.spans(k);
        let mut next = u64::MAX;
        for (which, span) in spans.into_iter().enumerate() {
            let Some((from, to)) = span else { continue };
            for (edge, sign) in [(from, -1), (to, 1)] {
                if edge > now {
                    next = next.min(edge);
                } else if edge > since {
                    let counted = sign * self.delivered_by(k, edge);
                    let marks = &mut self.marks[k];
                    *(if which == 0 { &mut marks.window } else { &mut marks.last }) += counted;
                }
            }
        }
        next
    }

    /// Volumes that a session delivered in the window and in its last tenth, with the length of the latter, once all
    /// was read.
    pub(crate) fn means(&self, k: usize) -> (Volume, (Volume, u64)) {
        let Some((start, _)) = self.plan.active(k) else { return (0, (0, 0)) };
        let (from, to) = last_tenth(start, self.all[k].end.min(self.plan.end));
        let marks = &self.marks[k];
        let last = match self.sized.get(self.all[k].sized as usize) {
            Some(sized) => sized.volume(from, to),
            None => marks.last,
        };
        (marks.window, (last, to - from))
    }
}
