//! The sessions of the fast engine: what their sources know, and the rate changes between their ends.
//!
//! A session is looked at when one of its nodes ticks. Then its source hears what it should have heard since, in order,
//! and changes its rate at those instants; the changes wait in a ring until each end reads them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::grain::{Grains, Volume, grains, of_bytes, volume};
use crate::meter::Meter;
use crate::plan::Plan;
use crate::report::{last_tenth, second_half};
use crate::ring::{Change, Pool, Ring};
use crate::track::Track;
use crate::trail::Trail;

/// Cells that a ring begins with, from source to sink and back.
const FORWARD_CELLS: u32 = 8;
const BACK_CELLS: u32 = 4;

const NONE: u32 = u32::MAX;

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Waiting,
    Active,
    Ended,
}

/// One session.
pub(crate) struct Flow {
    /// What the source grants; infinity if it is unlimited.
    pub(crate) own: f64,
    /// The least that the source has heard from sink and links.
    pub(crate) remote: f64,
    pub(crate) demand: f64,
    pub(crate) rate: f64,
    pub(crate) start: u64,
    /// When it ended; the largest time until then.
    pub(crate) end: u64,
    pub(crate) track: Track,
    /// The source's rate changes that some reader has not read.
    changes: Ring,
    /// The sink's grants on their way to the source.
    grants: Ring,
    /// What its sink has counted.
    pub(crate) delivered: Volume,
    /// The next instant at which a mean begins or ends.
    next_mark: u64,
    /// Entry in `sized`, if the size is finite.
    sized: u32,
    /// Entry in `hops` of its first link that runs a rule, if there is one.
    hops: u32,
    pub(crate) state: State,
}

/// A session at a resource, as its reader sees it.
pub(crate) struct Row {
    pub(crate) session: u32,
    /// Count of the next change to read.
    cursor: u32,
    /// The rate that arrives.
    rate: f64,
    /// Until when it was read.
    since: u64,
    pub(crate) forward_ns: u64,
    pub(crate) back_ns: u64,
    /// The last grant.
    pub(crate) expected: f64,
}

/// Grants of a link on their way to a source.
struct Hop {
    row: u32,
    grants: Ring,
    heard: f64,
}

/// What a session with links has heard.
struct Hops {
    links: Vec<Hop>,
    /// What the sink grants, as far as heard.
    sink: f64,
}

/// A session of finite size. Its end changes what the others may have, so it is looked at on time.
struct Sized {
    left: Volume,
    since: u64,
    /// When it is to be looked at next.
    wake: u64,
    completed: Option<u64>,
    /// Its rates at the sink, as far back as the means may begin.
    trail: Trail,
}

/// Two means of a session, as differences of what its sink had counted at their ends.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    window: Volume,
    last: Volume,
}

/// What a row read.
pub(crate) struct Reading {
    /// Mean rate over the interval.
    pub(crate) mean: f64,
    pub(crate) volume: Volume,
    /// The largest rate.
    pub(crate) most: Grains,
}

/// All sessions, with all that is on its way.
pub(crate) struct Flows<'a> {
    pub(crate) plan: &'a Plan<'a>,
    pub(crate) all: Vec<Flow>,
    pub(crate) rows: Vec<Row>,
    pool: Pool,
    pub(crate) start_rates: Vec<f64>,
    marks: Vec<Marks>,
    hops: Vec<Hops>,
    sized: Vec<Sized>,
    wakes: BinaryHeap<Reverse<(u64, u32)>>,
    /// The window that was asked for.
    window: Option<(u64, u64)>,
    pub(crate) events: u64,
    /// The active sessions or their demands have changed.
    pub(crate) is_changed: bool,
    /// Rates of unread changes, in time; kept for its memory.
    pub(crate) scratch: Vec<(u64, Grains)>,
}

impl Flow {
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.state == State::Active
    }

    /// Whether the session has a row in a resource `forward_ns` behind its source.
    #[inline]
    pub(crate) fn is_at(&self, now: u64, forward_ns: u64) -> bool {
        self.start <= now && now < self.end.saturating_add(forward_ns)
    }
}

impl<'a> Flows<'a> {
    pub(crate) fn new(plan: &'a Plan<'a>, window: Option<(u64, u64)>) -> Self {
        let count = plan.scenario.sessions.len();
        let mut flows = Vec::with_capacity(count);
        let (mut hops, mut sized) = (Vec::new(), Vec::new());
        // The rings of a session are neighbours, and those of a source's sessions too.
        let mut pool = Pool::with_capacity(count * (FORWARD_CELLS + BACK_CELLS) as usize);
        for (k, session) in plan.scenario.sessions.iter().enumerate() {
            let ruled_links = || {
                plan.rows_of(k).iter().filter(|row| {
                    let resource = &plan.resources[plan.rows[**row as usize].resource as usize];
                    resource.allocatable.is_some() && !resource.place.is_node()
                })
            };
            let has_links = ruled_links().next().is_some();
            flows.push(Flow {
                own: f64::INFINITY,
                remote: f64::INFINITY,
                demand: f64::INFINITY,
                rate: 0.0,
                start: plan.active(k).map_or(u64::MAX, |(start, _)| start),
                end: u64::MAX,
                track: Track::default(),
                changes: pool.ring(FORWARD_CELLS),
                grants: pool.ring(BACK_CELLS),
                delivered: 0,
                next_mark: 0,
                sized: session.size.map_or(NONE, |_| sized.len() as u32),
                hops: if has_links { hops.len() as u32 } else { NONE },
                state: State::Waiting,
            });
            if has_links {
                let hop = |row: &u32| Hop { row: *row, grants: Ring::default(), heard: f64::INFINITY };
                hops.push(Hops { links: ruled_links().map(hop).collect(), sink: f64::INFINITY });
            }
            if let Some(size) = session.size {
                let left = of_bytes(size.get());
                sized.push(Sized { left, since: 0, wake: u64::MAX, completed: None, trail: Trail::default() });
            }
        }
        let row = |crossing: &crate::plan::Crossing| Row {
            session: crossing.session,
            cursor: 0,
            rate: 0.0,
            since: 0,
            forward_ns: crossing.forward_ns,
            back_ns: crossing.back_ns,
            expected: 0.0,
        };
        Self {
            plan,
            all: flows,
            rows: plan.rows.iter().map(row).collect(),
            pool,
            start_rates: vec![0.0; count],
            marks: vec![Marks::default(); count],
            hops,
            sized,
            wakes: BinaryHeap::new(),
            window,
            events: 0,
            is_changed: false,
            scratch: Vec::new(),
        }
    }

    /// Starts a session at a rate.
    pub(crate) fn start(&mut self, k: usize, now: u64, start_rate: f64) {
        let plan = self.plan;
        let flow = &mut self.all[k];
        flow.state = State::Active;
        flow.demand = plan.demand(k, now);
        flow.track = Track::new(now);
        self.start_rates[k] = start_rate;
        for row in plan.rows_of(k) {
            let resource = &plan.resources[plan.rows[*row as usize].resource as usize];
            self.rows[*row as usize].expected = start_rate;
            let heard = if resource.allocatable.is_some() { start_rate } else { f64::INFINITY };
            if resource.place.is_source() {
                flow.own = heard;
            } else {
                flow.remote = flow.remote.min(heard);
            }
            if flow.hops != NONE {
                let hops = &mut self.hops[flow.hops as usize];
                match hops.links.iter_mut().find(|hop| hop.row == *row) {
                    Some(hop) => hop.heard = heard,
                    None if *row as usize == plan.sink_row(k) => hops.sink = heard,
                    None => {}
                }
            }
        }
        if flow.sized != NONE {
            self.sized[flow.sized as usize].since = now;
        }
        self.events += 1;
        self.is_changed = true;
        self.settle(k, now);
        self.rearm(k, now);
    }

    /// A session wants another rate.
    pub(crate) fn want(&mut self, k: usize, now: u64, demand: f64) {
        self.advance(k, now);
        if self.all[k].is_active() {
            self.all[k].demand = demand;
            self.events += 1;
            self.is_changed = true;
            self.settle(k, now);
            self.rearm(k, now);
        }
    }

    /// A session stops.
    pub(crate) fn stop(&mut self, k: usize, now: u64) {
        self.advance(k, now);
        if self.all[k].is_active() {
            self.leave(k, now);
        }
    }

    /// The source grants its session a rate.
    #[inline]
    pub(crate) fn grant_own(&mut self, k: usize, now: u64, bps: f64) {
        self.all[k].own = bps;
        if self.all[k].is_active() {
            self.settle(k, now);
            self.rearm(k, now);
        }
    }

    /// A sink or link sends a grant to the source of a row's session.
    #[inline]
    pub(crate) fn grant_remote(&mut self, row: usize, now: u64, bps: f64) {
        let row_state = &mut self.rows[row];
        // What does not change needs no telling.
        if bps == row_state.expected {
            return;
        }
        row_state.expected = bps;
        let k = row_state.session as usize;
        let change = Change { at: now + row_state.back_ns, bps };
        let flow = &mut self.all[k];
        if !flow.is_active() {
            return;
        }
        let ring = if flow.hops == NONE {
            &mut flow.grants
        } else {
            let hops = &mut self.hops[flow.hops as usize];
            match hops.links.iter_mut().find(|hop| hop.row as usize == row) {
                Some(hop) => &mut hop.grants,
                None => &mut flow.grants,
            }
        };
        self.pool.push(ring, change, BACK_CELLS);
        self.rearm(k, now);
    }

    /// Lets a source hear all that reaches it up to and including `to`.
    #[inline]
    pub(crate) fn advance(&mut self, k: usize, to: u64) {
        if self.all[k].hops != NONE {
            return self.advance_with_links(k, to);
        }
        loop {
            let flow = &mut self.all[k];
            if flow.grants.is_empty() {
                break;
            }
            let grant = self.pool.get(&flow.grants, flow.grants.head());
            if grant.at > to {
                break;
            }
            flow.grants.pop();
            flow.remote = grant.bps;
            if flow.is_active() {
                self.settle(k, grant.at);
            }
        }
        self.complete(k, to);
    }

    /// The same for a session with links that run rules: the earliest grant first, of several at once that of the first
    /// row.
    fn advance_with_links(&mut self, k: usize, to: u64) {
        let sink_row = self.plan.sink_row(k) as u32;
        loop {
            let flow = &mut self.all[k];
            let hops = &mut self.hops[flow.hops as usize];
            let links = hops.links.iter().enumerate().map(|(place, hop)| (&hop.grants, hop.row, Some(place)));
            let sink = [(&flow.grants, sink_row, None)];
            let next = links
                .chain(sink)
                .filter(|(ring, ..)| !ring.is_empty())
                .map(|(ring, row, place)| (self.pool.get(ring, ring.head()), row, place))
                .min_by_key(|(grant, row, _)| (grant.at, *row));
            let Some((grant, _, place)) = next.filter(|(grant, ..)| grant.at <= to) else { break };
            if let Some(place) = place {
                hops.links[place].grants.pop();
                hops.links[place].heard = grant.bps;
            } else {
                flow.grants.pop();
                hops.sink = grant.bps;
            }
            flow.remote = hops.links.iter().map(|hop| hop.heard).fold(hops.sink, f64::min);
            if flow.is_active() {
                self.settle(k, grant.at);
            }
        }
        self.complete(k, to);
    }

    /// The source takes the least of what it was granted and what it wants.
    #[inline]
    fn settle(&mut self, k: usize, at: u64) {
        let flow = &mut self.all[k];
        let rate = flow.own.min(flow.remote).min(flow.demand);
        if rate != flow.rate {
            self.change_rate(k, at, rate);
        }
    }

    #[inline]
    fn change_rate(&mut self, k: usize, at: u64, rate: f64) {
        let flow = &mut self.all[k];
        flow.track.close(flow.rate, at);
        if flow.sized != NONE {
            let sized = &mut self.sized[flow.sized as usize];
            sized.left -= volume(grains(flow.rate), at - sized.since);
            sized.since = at;
            let forward = self.plan.rows[self.plan.sink_row(k)].forward_ns;
            sized.trail.push(at + forward, grains(rate));
            sized.trail.forget_before(second_half(flow.start, at).0);
        }
        flow.rate = rate;
        self.events += 1;
        match self.pool.newest(&flow.changes) {
            // Nobody has read it yet: readers stop short of the present.
            Some(newest) if newest.at == at => newest.bps = rate,
            _ => {
                if flow.changes.is_full() {
                    self.make_room(k, at);
                }
                self.pool.push(&mut self.all[k].changes, Change { at, bps: rate }, FORWARD_CELLS);
            }
        }
    }

    /// Forgets the changes that every reader has read.
    #[cold]
    fn make_room(&mut self, k: usize, now: u64) {
        let plan = self.plan;
        let sink = plan.sink_row(k);
        if plan.resources[plan.rows[sink].resource as usize].capacity.is_none() {
            // An unlimited sink never ticks.
            let others = self.scratch.len();
            self.read(sink, now, true);
            self.scratch.truncate(others);
        }
        let head = self.all[k].changes.head();
        let unread = plan.rows_of(k).iter().map(|row| self.rows[*row as usize].cursor.wrapping_sub(head)).min();
        self.all[k].changes.forget_before(head.wrapping_add(unread.unwrap_or(0)));
    }

    /// Ends a session whose last byte was sent by `to`.
    #[inline]
    fn complete(&mut self, k: usize, to: u64) {
        let flow = &self.all[k];
        if flow.sized != NONE && flow.is_active() && self.completion(k) <= to {
            let arrival = to + self.plan.rows[self.plan.sink_row(k)].forward_ns;
            self.sized[flow.sized as usize].completed = (arrival <= self.plan.end).then_some(arrival);
            self.leave(k, to);
        }
    }

    /// When a session of finite size will have sent everything at its present rate.
    fn completion(&self, k: usize) -> u64 {
        let flow = &self.all[k];
        let sized = &self.sized[flow.sized as usize];
        let rate = Volume::from(grains(flow.rate));
        let span = match sized.left.max(0) {
            0 => 0,
            _ if rate == 0 => return u64::MAX,
            left => (left + rate - 1) / rate,
        };
        u64::try_from(Volume::from(sized.since) + span).unwrap_or(u64::MAX)
    }

    fn leave(&mut self, k: usize, now: u64) {
        let flow = &mut self.all[k];
        flow.state = State::Ended;
        flow.end = now;
        self.events += 1;
        self.is_changed = true;
        self.change_rate(k, now, 0.0);
    }

    /// Says when a session of finite size is to be looked at again.
    #[inline]
    fn rearm(&mut self, k: usize, now: u64) {
        let flow = &self.all[k];
        if flow.sized != NONE {
            self.rearm_sized(k, now);
        }
    }

    fn rearm_sized(&mut self, k: usize, now: u64) {
        let flow = &self.all[k];
        let mut wake = u64::MAX;
        if flow.is_active() {
            wake = self.completion(k).max(now);
            let hops = if flow.hops == NONE { &[][..] } else { &self.hops[flow.hops as usize].links[..] };
            for ring in hops.iter().map(|hop| &hop.grants).chain([&flow.grants]).filter(|ring| !ring.is_empty()) {
                wake = wake.min(self.pool.get(ring, ring.head()).at);
            }
        }
        let sized = &mut self.sized[flow.sized as usize];
        if wake != sized.wake {
            sized.wake = wake;
            if wake < self.plan.end {
                self.wakes.push(Reverse((wake, k as u32)));
            }
        }
    }

    /// When a session of finite size must be looked at next.
    #[inline]
    pub(crate) fn next_wake(&mut self) -> u64 {
        while let Some(Reverse((at, k))) = self.wakes.peek() {
            let flow = &self.all[*k as usize];
            if self.sized[flow.sized as usize].wake == *at {
                return *at;
            }
            self.wakes.pop();
        }
        u64::MAX
    }

    /// Looks at the session that is due.
    pub(crate) fn wake(&mut self) {
        if let Some(Reverse((at, k))) = self.wakes.pop() {
            self.advance(k as usize, at);
            self.sized[self.all[k as usize].sized as usize].wake = u64::MAX;
            self.rearm(k as usize, at);
        }
    }

    /// Some bits of a row's session, for the sake of having read them.
    #[inline]
    pub(crate) fn touch(&self, row: usize) -> u64 {
        let flow = &self.all[self.rows[row].session as usize];
        flow.own.to_bits() ^ flow.start ^ flow.delivered as u64 ^ u64::from(flow.sized)
    }

    /// Some bits of the changes and grants that a row's session has on their way.
    #[inline]
    pub(crate) fn touch_rings(&self, row: usize) -> u64 {
        let flow = &self.all[self.rows[row].session as usize];
        let cells = [
            (&flow.changes, self.rows[row].cursor),
            (&flow.changes, flow.changes.tail()),
            (&flow.grants, flow.grants.head()),
        ];
        cells.iter().fold(0, |touched, (ring, count)| touched ^ self.pool.get(ring, *count).at)
    }

    /// Whether nothing more can be read at a row, now or ever.
    #[inline]
    pub(crate) fn is_done(&self, row: usize) -> bool {
        let state = &self.rows[row];
        let flow = &self.all[state.session as usize];
        flow.state != State::Active && state.rate == 0.0 && state.cursor == flow.changes.tail()
    }

    /// Reads what has arrived at a row before `now`, and leaves the changes of its rate, in grains, in the scratch. At a
    /// sink it counts what is delivered.
    #[inline]
    pub(crate) fn read(&mut self, row: usize, now: u64, is_sink: bool) -> Reading {
        let state = &mut self.rows[row];
        let flow = &mut self.all[state.session as usize];
        if is_sink && now >= flow.next_mark {
            self.mark(row, now);
            return self.read(row, now, true);
        }
        let from = state.since;
        let mut rate_grains = grains(state.rate);
        state.since = now;
        let mut reading = Reading { mean: state.rate, volume: 0, most: rate_grains };
        let tail = flow.changes.tail();
        let mut since = from;
        if state.cursor != tail {
            let mut meter = Meter::new(from);
            while state.cursor != tail {
                let change = self.pool.get(&flow.changes, state.cursor);
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
                state.cursor = state.cursor.wrapping_add(1);
            }
            meter.close(state.rate, now);
            reading.mean = meter.mean(from);
        }
        reading.volume += volume(rate_grains, now - since);
        if is_sink {
            flow.delivered += reading.volume;
        }
        reading
    }

    /// What arrives at a row between its last reading and `to`, without reading it.
    fn unread(&self, row: usize, to: u64) -> Volume {
        let state = &self.rows[row];
        let flow = &self.all[state.session as usize];
        let (mut since, mut rate, mut sum) = (state.since, grains(state.rate), 0);
        let mut count = state.cursor;
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

    /// All that a session has delivered up to `to`.
    pub(crate) fn delivered_by(&self, k: usize, to: u64) -> Volume {
        self.all[k].delivered + self.unread(self.plan.sink_row(k), to)
    }

    /// The changes of a row's rate between its last reading and `to`, in grains, without reading them.
    pub(crate) fn peek(&self, row: usize, to: u64, take: &mut Vec<(u64, Grains)>) {
        let state = &self.rows[row];
        let flow = &self.all[state.session as usize];
        let mut rate = grains(state.rate);
        let mut count = state.cursor;
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

    /// Ends of the means of a session: of the window, and of the last tenth. Those of a session of finite size come from
    /// its trail, unless a window was asked for.
    fn spans(&self, k: usize) -> [Option<(u64, u64)>; 2] {
        let Some((start, end)) = self.plan.active(k) else { return [None, None] };
        if self.all[k].sized == NONE {
            [Some(self.window.unwrap_or(second_half(start, end))), Some(last_tenth(start, end))]
        } else {
            [self.window, None]
        }
    }

    /// Notes what was counted at the ends of the means that lie between a sink's last reading and `now`.
    #[cold]
    fn mark(&mut self, row: usize, now: u64) {
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
        self.all[k].next_mark = next;
    }

    /// What a session delivered in its window and in its last tenth, with the lengths of both, once all was read.
    pub(crate) fn means(&self, k: usize) -> [(Volume, u64); 2] {
        let Some((start, _)) = self.plan.active(k) else { return [(0, 0); 2] };
        let end = self.all[k].end.min(self.plan.end);
        let window = self.window.unwrap_or(second_half(start, end));
        let last = last_tenth(start, end);
        let [window_span, last_span] = [window.1 - window.0, last.1 - last.0];
        let marks = &self.marks[k];
        if self.all[k].sized == NONE {
            return [(marks.window, window_span), (marks.last, last_span)];
        }
        let trail = &self.sized[self.all[k].sized as usize].trail;
        let in_window = if self.window.is_some() { marks.window } else { trail.volume(window.0, window.1) };
        [(in_window, window_span), (trail.volume(last.0, last.1), last_span)]
    }

    /// When the last byte of a session of finite size arrived.
    pub(crate) fn completed(&self, k: usize) -> Option<u64> {
        self.sized.get(self.all[k].sized as usize)?.completed
    }
}
