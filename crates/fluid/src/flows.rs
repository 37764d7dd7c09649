//! The sessions of the fast engine: the state of their sources, and the rate changes in transit.
//!
//! A session is evaluated when one of its nodes ticks. Then its source processes the grants that have reached it since,
//! in order, and changes its rate at those instants; the changes wait in a ring until each end reads them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::grain::{Grains, Volume};
use crate::plan::{Crossing, FluidPlan, NONE};
use crate::ring::{Change, Ring, RingPool};
use crate::track::Track;

mod readers;
mod sized;

use sized::Sized;

/// Initial cells of a ring from source to sink.
const FORWARD_CELLS: u32 = 4;
/// Initial cells of a ring from sink to source.
const BACK_CELLS: u32 = 4;

/// Life cycle of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowState {
    Waiting,
    Active,
    Ended,
}

/// One session: two cache lines, which hold everything that a tick needs of a session except the changes themselves.
#[repr(align(64))]
pub(crate) struct FluidFlow {
    /// The source's own grant; infinity if it is unlimited.
    pub(crate) own: f64,
    /// The smallest grant that the source has received from sink and links.
    pub(crate) remote: f64,
    pub(crate) demand: f64,
    pub(crate) rate: f64,
    pub(crate) start: u64,
    /// Time of its end; the maximum until then.
    pub(crate) end: u64,
    pub(crate) track: Track,
    /// The source's rate changes that not all readers have read.
    changes: Ring,
    /// The sink's grants on their way to the source.
    grants: Ring,
    /// Counts of the next change for the source's end node and for the sink.
    cursors: [u32; 2],
    /// Entry in `sized`, if the size is finite.
    sized: u32,
    /// Entry in `hops` of its first link that runs a rule, if there is one.
    hops: u32,
    pub(crate) state: FlowState,
    /// Whether only two finite end nodes read its changes.
    has_two_readers: bool,
}

/// A session at a resource, as seen by its reader.
pub(crate) struct FluidRow {
    pub(crate) session: u32,
    reader: RowReader,
    /// The rate that arrives.
    rate: f64,
    /// Time up to which it was read.
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

/// Grants that a session with links has received.
struct Hops {
    links: Vec<Hop>,
    /// The sink's last received grant.
    sink: f64,
}

/// The reader of a row; in four bytes, since there are many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RowReader(u32);

/// The reader of a row as an enum.
enum Role {
    Source,
    /// With its entry in `link_cursors`.
    Link(usize),
    /// With its entry in `counts`.
    Sink(usize),
}

/// A sink's count of one session.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    delivered: Volume,
    /// The next instant at which a mean starts or ends.
    next_mark: u64,
}

/// Two means of a session, as differences of its sink's counts at their ends.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    window: Volume,
    last: Volume,
}

/// All sessions, with everything in transit.
pub(crate) struct Flows<'a> {
    pub(crate) plan: &'a FluidPlan<'a>,
    pub(crate) all: Vec<FluidFlow>,
    pub(crate) rows: Vec<FluidRow>,
    pool: RingPool,
    pub(crate) start_rates: Vec<f64>,
    marks: Vec<Marks>,
    /// Counts of the rows at sinks, in their order.
    counts: Vec<Count>,
    /// Counts of the next change to read, of the rows at links in their order.
    link_cursors: Vec<u32>,
    hops: Vec<Hops>,
    sized: Vec<Sized>,
    wakes: BinaryHeap<Reverse<(u64, u32)>>,
    /// The window of the means.
    window: (u64, u64),
    /// Sessions that have not ended.
    pub(crate) open: usize,
    /// Time at which the last byte of the sessions that have ended arrives at its sink.
    pub(crate) last_arrival: u64,
    pub(crate) events: u64,
    /// Whether the active sessions or their demands have changed.
    pub(crate) is_changed: bool,
    /// Rates of unread changes, over time; kept for its allocation.
    pub(crate) scratch: Vec<(u64, Grains)>,
}

impl RowReader {
    const SOURCE: Self = Self(u32::MAX);
    const LINK: u32 = 1 << 31;

    fn link(cursor: usize) -> Self {
        Self(cursor as u32 | Self::LINK)
    }

    fn sink(count: usize) -> Self {
        Self(count as u32)
    }

    #[inline]
    fn role(self) -> Role {
        if self.0 & Self::LINK == 0 {
            Role::Sink(self.0 as usize)
        } else if self == Self::SOURCE {
            Role::Source
        } else {
            Role::Link((self.0 & !Self::LINK) as usize)
        }
    }
}

impl FluidFlow {
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.state == FlowState::Active
    }

    /// Whether the session has a row in a resource `forward_ns` from its source.
    #[inline]
    pub(crate) fn is_at(&self, now: u64, forward_ns: u64) -> bool {
        self.start <= now && now < self.end.saturating_add(forward_ns)
    }
}

impl<'a> Flows<'a> {
    pub(crate) fn new(plan: &'a FluidPlan<'a>, window: (u64, u64)) -> Self {
        let count = plan.scenario.sessions.len();
        let mut flows = Vec::with_capacity(count);
        let (mut hops, mut sized) = (Vec::new(), Vec::new());
        // The rings of a session are adjacent, and so are those of a source's sessions.
        let mut pool = RingPool::with_capacity(count * (FORWARD_CELLS + BACK_CELLS) as usize);
        for (k, session) in plan.scenario.sessions.iter().enumerate() {
            let ruled_links = || {
                plan.rows_of(k).iter().filter(|row| {
                    let resource = &plan.resources[plan.rows[**row as usize].resource as usize];
                    resource.allocatable.is_some() && !resource.place.is_node()
                })
            };
            let has_links = ruled_links().next().is_some();
            let [first, last] = [plan.rows_of(k)[0], plan.sink_row(k) as u32];
            let at = |row: u32| &plan.resources[plan.rows[row as usize].resource as usize];
            let is_pair = plan.rows_of(k).len() == 2 && at(first).place.is_source();
            flows.push(FluidFlow {
                own: f64::INFINITY,
                remote: f64::INFINITY,
                demand: f64::INFINITY,
                rate: 0.0,
                start: plan.active(k).map_or(u64::MAX, |(start, _)| start),
                end: u64::MAX,
                track: Track::default(),
                changes: pool.ring(FORWARD_CELLS),
                grants: pool.ring(BACK_CELLS),
                cursors: [0; 2],
                sized: session.size.map_or(NONE, |_| sized.len() as u32),
                hops: if has_links { hops.len() as u32 } else { NONE },
                state: FlowState::Waiting,
                has_two_readers: is_pair && at(last).capacity.is_some(),
            });
            if has_links {
                let hop = |row: &u32| Hop { row: *row, grants: Ring::default(), heard: f64::INFINITY };
                hops.push(Hops { links: ruled_links().map(hop).collect(), sink: f64::INFINITY });
            }
            if let Some(size) = session.size {
                sized.push(Sized::new(size));
            }
        }
        let (mut counts, mut link_cursors) = (Vec::with_capacity(count), Vec::new());
        let row = |crossing: &Crossing| {
            let place = plan.resources[crossing.resource as usize].place;
            let reader = if place.is_source() {
                RowReader::SOURCE
            } else if place.is_sink() {
                counts.push(Count::default());
                RowReader::sink(counts.len() - 1)
            } else {
                link_cursors.push(0);
                RowReader::link(link_cursors.len() - 1)
            };
            FluidRow {
                session: crossing.session,
                reader,
                rate: 0.0,
                since: 0,
                forward_ns: crossing.forward_ns,
                back_ns: crossing.back_ns,
                expected: 0.0,
            }
        };
        let rows = plan.rows.iter().map(row).collect();
        Self {
            plan,
            all: flows,
            rows,
            pool,
            start_rates: vec![0.0; count],
            marks: vec![Marks::default(); count],
            counts,
            link_cursors,
            hops,
            sized,
            wakes: BinaryHeap::new(),
            window,
            open: (0..count).filter(|k| plan.active(*k).is_some()).count(),
            last_arrival: 0,
            events: 0,
            is_changed: false,
            scratch: Vec::new(),
        }
    }

    /// Starts a session at a rate.
    pub(crate) fn start(&mut self, k: usize, now: u64, start_rate: f64) {
        let plan = self.plan;
        let flow = &mut self.all[k];
        flow.state = FlowState::Active;
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
            self.sized[flow.sized as usize].begin(now);
        }
        self.events += 1;
        self.is_changed = true;
        self.settle(k, now);
        self.rearm(k, now);
    }

    /// Changes the demand of a session.
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
        // An unchanged grant is not sent.
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

    /// A source processes all grants that reach it up to and including `to`.
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

    /// [`Self::advance`] for a session with links that run rules: the earliest grant first, of simultaneous ones that
    /// of the first row.
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

    /// The source sends at the minimum of its grants and its demand.
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
            let forward = self.plan.rows[self.plan.sink_row(k)].forward_ns;
            self.sized[flow.sized as usize].change(flow.rate, at, rate, forward);
        }
        flow.rate = rate;
        self.events += 1;
        match self.pool.newest(&flow.changes) {
            // Not read yet: readers stop before the present.
            Some(newest) if newest.at == at => newest.bps = rate,
            _ => {
                if flow.changes.is_full() {
                    self.make_room(k, at);
                }
                self.pool.push(&mut self.all[k].changes, Change { at, bps: rate }, FORWARD_CELLS);
            }
        }
    }

    /// Drops the changes that every reader has read.
    #[cold]
    fn make_room(&mut self, k: usize, now: u64) {
        if !self.all[k].has_two_readers {
            return self.make_room_for_many(k, now);
        }
        let flow = &mut self.all[k];
        let head = flow.changes.head();
        let [source, sink] = flow.cursors.map(|cursor| cursor.wrapping_sub(head));
        flow.changes.forget_before(head.wrapping_add(source.min(sink)));
    }

    fn make_room_for_many(&mut self, k: usize, now: u64) {
        let plan = self.plan;
        let sink = plan.sink_row(k);
        if plan.resources[plan.rows[sink].resource as usize].capacity.is_none() {
            // An unlimited sink never ticks.
            let others = self.scratch.len();
            self.read(sink, now);
            self.scratch.truncate(others);
        }
        let head = self.all[k].changes.head();
        let unread = plan.rows_of(k).iter().map(|row| self.cursor(*row as usize).wrapping_sub(head)).min();
        self.all[k].changes.forget_before(head.wrapping_add(unread.unwrap_or(0)));
    }

    fn leave(&mut self, k: usize, now: u64) {
        let flow = &mut self.all[k];
        flow.state = FlowState::Ended;
        flow.end = now;
        self.open -= 1;
        self.last_arrival = self.last_arrival.max(self.plan.last_arrival(k, now));
        self.events += 1;
        self.is_changed = true;
        self.change_rate(k, now, 0.0);
    }
}

impl Flows<'_> {
    /// Ends a session whose last byte was sent by `to`.
    #[inline]
    fn complete(&mut self, k: usize, to: u64) {
        let flow = &self.all[k];
        if flow.sized != NONE && flow.is_active() && self.sized[flow.sized as usize].completion(flow.rate) <= to {
            let arrival = to + self.plan.rows[self.plan.sink_row(k)].forward_ns;
            self.sized[flow.sized as usize].completed = (arrival <= self.plan.end).then_some(arrival);
            self.leave(k, to);
        }
    }

    /// Schedules the next evaluation of a session of finite size.
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
            wake = self.sized[flow.sized as usize].completion(flow.rate).max(now);
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

    /// Time of the next evaluation of a session of finite size.
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

    /// Evaluates the session that is due.
    pub(crate) fn wake(&mut self) {
        if let Some(Reverse((at, k))) = self.wakes.pop() {
            self.advance(k as usize, at);
            self.sized[self.all[k as usize].sized as usize].wake = u64::MAX;
            self.rearm(k as usize, at);
        }
    }

    /// Time at which the last byte of a session of finite size arrived.
    pub(crate) fn completed(&self, k: usize) -> Option<u64> {
        self.sized.get(self.all[k].sized as usize)?.completed
    }
}
