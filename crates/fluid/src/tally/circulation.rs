//! Control packets that visit every capacity on the path of their session and come back (s-PERC).

use fairwave_scenario::random::{self, RandomStream};
use fairwave_schemes::node::sperc::{CONTROL_LATE, CONTROL_LOSS, ControlPacket, Meter};
use fairwave_units::Duration;

use super::TallySimulator;
use super::event::TallyEventKind;
use super::node::Mail;
use crate::plan::FluidPlan;

/// Round trips in a round if packets may be lost. A source repeats a packet after two, and it takes one more; a session
/// that is not seen in a round is forgotten.
const ROUND_TRIPS_WITH_REPEATS: u64 = 4;
/// Round trips after which a source repeats a control packet, as the authors have it.
const REPEAT_AFTER: u64 = 2;

/// The meters of the capacities, and the control packets.
pub(super) struct Circulation {
    /// Of each resource of the plan; `None` without a rule.
    meters: Vec<Option<Meter>>,
    sessions: Vec<Circulating>,
}

/// The control packet of a session.
struct Circulating {
    /// The rows with a meter, in the order of the path.
    rows: Vec<u32>,
    /// The packet as it last came back.
    held: ControlPacket,
    /// The packet on its way, its number, and its fate on this way.
    flying: ControlPacket,
    number: u64,
    fate: Fate,
    /// Whether it is the last one.
    leaves: bool,
    rate_bps: f64,
    mail: Mail,
    random: RandomStream,
    loses: bool,
    late_ns: u64,
}

/// Fate of a packet on one way, at one of its steps.
#[derive(Clone, Copy, Default)]
struct Fate {
    at_step: usize,
    /// Extra delay; `None` if it is lost.
    late_ns: Option<u64>,
}

impl Circulation {
    pub(super) fn new(plan: &FluidPlan<'_>) -> Self {
        let meter = |rate: fairwave_units::Rate| Meter::new(rate.as_bps());
        let meters = plan.resources.iter().map(|resource| resource.allocatable.map(meter)).collect();
        let sessions = (0..plan.scenario.sessions.len()).map(|k| Circulating::new(plan, k)).collect();
        Self { meters, sessions }
    }

    /// The rate at which a session may send.
    pub(super) fn rate_bps(&self, k: usize) -> f64 {
        self.sessions[k].rate_bps
    }
}

impl Circulating {
    fn new(plan: &FluidPlan<'_>, k: usize) -> Self {
        let session = &plan.scenario.sessions[k];
        let has_meter = |row: &&u32| plan.resources[plan.rows[**row as usize].resource as usize].allocatable.is_some();
        let rows: Vec<u32> = plan.rows_of(k).iter().filter(has_meter).copied().collect();
        let packet = ControlPacket::new(rows.len(), session.weight, f64::INFINITY);
        let options = &plan.scenario.scheme_of(session).options;
        let (loss, late) = (CONTROL_LOSS.of(options), CONTROL_LATE.of(options));
        let stream = |what: &str| random::stream(plan.scenario.seed, &format!("{what} of session {}", session.name));
        Self {
            rows,
            held: packet.clone(),
            flying: packet,
            number: 0,
            fate: Fate::default(),
            leaves: false,
            rate_bps: 0.0,
            mail: Mail::new(loss, late, stream("control packets")),
            random: stream("steps"),
            loses: loss > 0.0,
            late_ns: late.as_nanos(),
        }
    }

    /// Draws the fate of one way, which has as many steps as there are meters.
    fn draw(&mut self) {
        let late_ns = self.mail.fate();
        let is_usual = late_ns == Some(0);
        let at_step = if is_usual { 0 } else { self.random.below(self.rows.len() as u64) as usize };
        self.fate = Fate { at_step, late_ns };
    }

    /// Time from the departure to a step: a meter on the way there, a meter on the way back, or the return.
    fn offset(&self, plan: &FluidPlan<'_>, k: usize, step: usize) -> u64 {
        let count = self.rows.len();
        if step < count {
            return plan.rows[self.rows[step] as usize].forward_ns;
        }
        let end = &plan.rows[plan.sink_row(k)];
        let left = if step + 1 == 2 * count { 0 } else { plan.rows[self.rows[2 * count - 2 - step] as usize].back_ns };
        // A loop without delay would never let time pass.
        (end.forward_ns + end.back_ns).max(1) - left
    }

    /// Longest time that a packet takes.
    fn longest_ns(&self, rtt: Duration) -> u64 {
        rtt.as_nanos() + 2 * self.late_ns
    }
}

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
