//! The journey of the control packets: rounds of the capacities, and departures, visits and repeats (s-PERC).

use super::TallySimulator;
use super::circulation::{Circulation, Fate};
use super::event::TallyEventKind;

/// Round trips in a round if packets may be lost. A source repeats a packet after two, and it takes one more; a session
/// that is not seen in a round is forgotten.
const ROUND_TRIPS_WITH_REPEATS: u64 = 4;
/// Round trips after which a source repeats a control packet, as the authors have it.
const REPEAT_AFTER: u64 = 2;

impl TallySimulator<'_> {
    /// Schedules the first end of a round of each capacity, in its second round.
    pub(super) fn schedule_rounds(&mut self) {
        if self.circulation.is_none() {
            return;
        }
        for (ticker, here) in self.plan.tickers.iter().enumerate() {
            let round = self.round_ns(ticker);
            let phase = here.first(round) % round;
            self.push(round + phase, TallyEventKind::Round(ticker));
        }
    }

    fn round_ns(&self, ticker: usize) -> u64 {
        let (plan, now) = (self.plan, self.now);
        let here = &plan.tickers[ticker];
        let longest = plan.largest_rtt(ticker, |row| {
            let flow = &self.flows[plan.rows[row].session as usize];
            flow.start <= now && flow.is_active
        });
        if !here.follows_rtt() {
            return here.interval_ns(longest);
        }
        let sessions = self.circulation.iter().flat_map(|circulation| &circulation.sessions);
        let (mut late_ns, mut loses) = (0, false);
        for session in sessions {
            late_ns = late_ns.max(session.late_ns);
            loses |= session.loses;
        }
        ((longest + 2 * late_ns) * if loses { ROUND_TRIPS_WITH_REPEATS } else { 1 }).max(1)
    }

    pub(super) fn end_round(&mut self, ticker: usize) {
        let plan = self.plan;
        if let Some(circulation) = &mut self.circulation {
            for resource in plan.tickers[ticker].resources {
                if let Some(Some(meter)) = circulation.meters.get_mut(resource as usize) {
                    meter.end_round();
                }
            }
        }
        let next = self.now.saturating_add(self.round_ns(ticker));
        self.push(next, TallyEventKind::Round(ticker));
    }

    /// A source sends the control packet of a session, with what it holds.
    pub(super) fn depart(&mut self, k: usize) {
        let (plan, now, flow) = (self.plan, self.now, &self.flows[k]);
        let Some(circulation) = &mut self.circulation else { return };
        let here = &mut circulation.sessions[k];
        if here.rows.is_empty() {
            // Only its demand limits it.
            return here.rate_bps = f64::INFINITY;
        }
        here.number += 1;
        here.leaves = !flow.is_active;
        here.flying.clone_from(&here.held);
        here.flying.demand_bps = flow.demand_bps;
        here.draw();
        let repeat = here.loses.then(|| now + REPEAT_AFTER * here.longest_ns(plan.scenario.sessions[k].rtt));
        let number = here.number;
        self.totals.messages += 1;
        if let Some(at) = repeat {
            self.push(at, TallyEventKind::Repeat(k, number));
        }
        self.go_on(k, 0, 0);
    }

    /// Schedules the arrival of a control packet at a step, `from_ns` after its departure.
    fn go_on(&mut self, k: usize, step: usize, from_ns: u64) {
        let plan = self.plan;
        let Some(circulation) = &self.circulation else { return };
        let here = &circulation.sessions[k];
        let count = here.rows.len();
        let late_ns = match here.fate {
            Fate { at_step, late_ns } if at_step == step % count => late_ns,
            _ => Some(0),
        };
        let Some(late_ns) = late_ns else { return };
        let (number, after) = (here.number, here.offset(plan, k, step) - from_ns);
        self.push(self.now + after + late_ns, TallyEventKind::Visit(k, number, step));
    }

    /// A control packet is at a step of its way.
    pub(super) fn visit(&mut self, k: usize, number: u64, step: usize) {
        let plan = self.plan;
        let Some(circulation) = &mut self.circulation else { return };
        let Circulation { meters, sessions } = circulation;
        let here = &mut sessions[k];
        if here.number != number {
            return;
        }
        let count = here.rows.len();
        if step + 1 == 2 * count {
            std::mem::swap(&mut here.held, &mut here.flying);
            here.rate_bps = here.held.rate_bps();
            self.set_rate(k);
            return self.depart(k);
        }
        let place = if step < count { step } else { 2 * count - 2 - step };
        if let Some(Some(meter)) = meters.get_mut(plan.rows[here.rows[place] as usize].resource as usize) {
            if here.leaves { meter.leave(&mut here.flying, place) } else { meter.visit(&mut here.flying, place) }
        }
        let from_ns = here.offset(plan, k, step);
        if step + 1 == count {
            if here.leaves {
                // Its last packet has been everywhere.
                return here.number += 1;
            }
            here.draw();
            self.totals.messages += 1;
        }
        self.go_on(k, step + 1, from_ns);
    }

    /// A control packet did not come back in time: the source sends another, unless the session is over.
    pub(super) fn repeat(&mut self, k: usize, number: u64) {
        let is_due = |circulation: &Circulation| {
            let here = &circulation.sessions[k];
            here.number == number && !here.leaves
        };
        if self.circulation.as_ref().is_some_and(is_due) {
            self.depart(k);
        }
    }
}
