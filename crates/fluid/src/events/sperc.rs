//! Rules whose control packets visit the capacities (s-PERC): rounds of the capacities, and departures, visits and
//! repeats of the packets.

mod circulating;

use fairwave_scenario::report::KnownRates;
use fairwave_schemes::node::sperc::Meter;

use super::event::{MESSAGES, TICKS};
use super::network::{EventRule, Network};
use crate::plan::FluidPlan;
use circulating::{Circulating, Fate};

/// Round trips in a round if packets may be lost. A source repeats a packet after two, and it takes one more; a session
/// that is not seen in a round is forgotten.
const ROUND_TRIPS_WITH_REPEATS: u64 = 4;
/// Round trips after which a source repeats a control packet, as the authors have it.
const REPEAT_AFTER: u64 = 2;

/// The meters of the capacities, and the control packets.
pub(crate) struct Circulation {
    /// Of each resource of the plan; `None` without a rule.
    meters: Vec<Option<Meter>>,
    sessions: Vec<Circulating>,
}

/// Events of the rule.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CirculationEvent {
    /// The control packet of a session reaches a step of its way, if it has this number.
    Visit(usize, u64, usize),
    /// The control packet of a session with this number did not come back.
    Repeat(usize, u64),
    /// A round of the capacities of a ticker is over.
    Round(usize),
}

impl Circulation {
    pub(crate) fn new(plan: &FluidPlan<'_>) -> Self {
        let meter = |rate: fairwave_units::Rate| Meter::new(rate.as_bps());
        let meters = plan.resources.iter().map(|resource| resource.allocatable.map(meter)).collect();
        let sessions = (0..plan.scenario.sessions.len()).map(|k| Circulating::new(plan, k)).collect();
        Self { meters, sessions }
    }

    fn round_ns(&self, network: &Network<'_, Self>, ticker: usize) -> u64 {
        let (plan, now) = (network.plan, network.now);
        let here = &plan.tickers[ticker];
        let longest = plan.largest_rtt(ticker, |row| {
            let session = &network.sessions[plan.rows[row].session as usize];
            session.start <= now && session.is_active
        });
        if !here.follows_rtt() {
            return here.interval_ns(longest);
        }
        let late_ns = self.sessions.iter().map(|session| session.late_ns).max().unwrap_or(0);
        let loses = self.sessions.iter().any(|session| session.loses);
        ((longest + 2 * late_ns) * if loses { ROUND_TRIPS_WITH_REPEATS } else { 1 }).max(1)
    }

    fn end_round(&mut self, network: &mut Network<'_, Self>, ticker: usize) {
        for resource in network.plan.tickers[ticker].resources {
            if let Some(Some(meter)) = self.meters.get_mut(resource as usize) {
                meter.end_round();
            }
        }
        let next = network.now.saturating_add(self.round_ns(network, ticker));
        network.schedule(next, CirculationEvent::Round(ticker));
    }

    /// A source sends the control packet of a session, with what it holds.
    fn depart(&mut self, network: &mut Network<'_, Self>, k: usize) {
        let (now, session, here) = (network.now, &network.sessions[k], &mut self.sessions[k]);
        if here.rows.is_empty() {
            // Only its demand limits it.
            return here.rate_bps = f64::INFINITY;
        }
        here.number += 1;
        here.leaves = !session.is_active;
        here.flying.clone_from(&here.held);
        here.flying.demand_bps = session.demand_bps;
        here.draw();
        network.messages += 1;
        if here.loses {
            let at = now + REPEAT_AFTER * here.longest_ns(network.plan.scenario.sessions[k].rtt);
            network.schedule(at, CirculationEvent::Repeat(k, here.number));
        }
        self.go_on(network, k, 0, 0);
    }

    /// Schedules the arrival of a control packet at a step, `from_ns` after its departure.
    fn go_on(&self, network: &mut Network<'_, Self>, k: usize, step: usize, from_ns: u64) {
        let here = &self.sessions[k];
        let late_ns = match here.fate {
            Fate { at_step, late_ns } if at_step == step % here.rows.len() => late_ns,
            _ => Some(0),
        };
        let Some(late_ns) = late_ns else { return };
        let after = here.offset(network.plan, k, step) - from_ns;
        network.schedule(network.now + after + late_ns, CirculationEvent::Visit(k, here.number, step));
    }

    /// A control packet is at a step of its way.
    fn visit(&mut self, network: &mut Network<'_, Self>, k: usize, number: u64, step: usize) {
        let plan = network.plan;
        let here = &mut self.sessions[k];
        if here.number != number {
            return;
        }
        let count = here.rows.len();
        if step + 1 == 2 * count {
            std::mem::swap(&mut here.held, &mut here.flying);
            here.rate_bps = here.held.rate_bps();
            network.set_rate(self, k);
            return self.depart(network, k);
        }
        let place = if step < count { step } else { 2 * count - 2 - step };
        if let Some(Some(meter)) = self.meters.get_mut(plan.rows[here.rows[place] as usize].resource as usize) {
            if here.leaves { meter.leave(&mut here.flying, place) } else { meter.visit(&mut here.flying, place) }
        }
        let from_ns = here.offset(plan, k, step);
        if step + 1 == count {
            if here.leaves {
                // Its last packet has been everywhere.
                return here.number += 1;
            }
            here.draw();
            network.messages += 1;
        }
        self.go_on(network, k, step + 1, from_ns);
    }
}

impl EventRule for Circulation {
    type Event = CirculationEvent;

    fn place(event: &CirculationEvent) -> (u8, usize) {
        let phase = match event {
            CirculationEvent::Visit(..) => MESSAGES + 2,
            CirculationEvent::Repeat(..) => MESSAGES + 3,
            CirculationEvent::Round(_) => TICKS + 2,
        };
        (phase, 0)
    }

    /// Schedules the first end of a round of each capacity, in its second round.
    fn begin(&mut self, network: &mut Network<'_, Self>) {
        for (ticker, here) in network.plan.tickers.iter().enumerate() {
            let round = self.round_ns(network, ticker);
            let phase = here.first(round) % round;
            network.schedule(round + phase, CirculationEvent::Round(ticker));
        }
    }

    fn permitted_bps(&mut self, _: &Network<'_, Self>, k: usize) -> f64 {
        self.sessions[k].rate_bps
    }

    fn on_start(&mut self, network: &mut Network<'_, Self>, k: usize) {
        self.depart(network, k);
    }

    fn on_event(&mut self, network: &mut Network<'_, Self>, event: CirculationEvent) {
        match event {
            CirculationEvent::Visit(k, number, step) => self.visit(network, k, number, step),
            // The source sends another packet, unless the session is over.
            CirculationEvent::Repeat(k, number) => {
                if self.sessions[k].number == number && !self.sessions[k].leaves {
                    self.depart(network, k);
                }
            }
            CirculationEvent::Round(ticker) => self.end_round(network, ticker),
        }
    }

    fn known_rates(&self, _: &Network<'_, Self>, _: usize) -> KnownRates {
        KnownRates::NONE
    }
}
