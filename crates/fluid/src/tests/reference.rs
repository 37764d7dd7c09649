//! The allocators in the event engine: the reference of the fast engine, in which nothing is deferred.
//!
//! Simultaneous events are in this order: first arrivals of rates and grants, then leaves, joins and changes of demand,
//! then ticks; so a change at t counts for the interval that starts at t.

use std::cell::Cell;

use fairwave_scenario::report::KnownRates;
use fairwave_scenario::{Run, Scenario};
use fairwave_schemes::node::fair_start;
use fairwave_schemes::{Grant, Interval, RateAllocator, Row};
use fairwave_units::{Duration, Rate};

use crate::events::{EventRule, EventSimulator, MESSAGES, Network, TICKS};
use crate::grain;
use crate::meter::RateAverage;
use crate::plan::{FluidPlan, NONE};
use crate::{FluidError, Settings};

/// Runs a scenario with the event engine. The result is that of [`crate::simulate`], to the last bit.
pub(super) fn simulate_reference(scenario: &Scenario, mut settings: Settings<'_>) -> Result<Run, FluidError> {
    let plan = FluidPlan::new(scenario)?;
    let changes = Cell::new(0);
    let rule = Allocators {
        rules: (0..plan.resources.len()).map(|resource| plan.allocator(resource)).collect(),
        rows: (0..plan.rows.len()).map(|row| ReferenceRow::new(plan.row(row))).collect(),
        last: vec![None; plan.tickers.len()],
        start_rates: vec![0.0; scenario.sessions.len()],
        changes: &changes,
    };
    let mut run = EventSimulator::new(&plan, rule, &settings).run(&mut settings)?;
    // The fast engine has other events; it counts changes and ticks.
    run.summary.engine.events = changes.get();
    Ok(run)
}

/// The rules of the resources.
struct Allocators<'a> {
    rules: Vec<Option<Box<dyn RateAllocator>>>,
    rows: Vec<ReferenceRow>,
    /// The last tick of each ticker.
    last: Vec<Option<u64>>,
    start_rates: Vec<f64>,
    /// Starts, ends, changes of rates and demands, and ticks.
    changes: &'a Cell<u64>,
}

struct ReferenceRow {
    row: Row,
    meter: RateAverage,
    /// The last grant that the source has received; infinity if no rule runs here.
    heard: f64,
    target: f64,
    measured: f64,
}

#[derive(Clone, Copy, Debug)]
enum AllocatorEvent {
    /// A grant of a row arrives at its source.
    Hear(usize, f64),
    /// The end of a session arrives at a row.
    End(usize),
    /// A node or a link that runs a rule ticks.
    Tick(usize),
}

impl ReferenceRow {
    fn new(row: Row) -> Self {
        Self { row, meter: RateAverage::default(), heard: f64::INFINITY, target: 0.0, measured: 0.0 }
    }
}

type AllocatorNetwork<'n, 'a> = Network<'n, Allocators<'a>>;

impl<'a> Allocators<'a> {
    fn count(&self, changes: u64) {
        self.changes.set(self.changes.get() + changes);
    }

    /// The capacity that a rule shares at a row, and the total weight of the sessions there, including newcomers.
    fn weights_at(&self, network: &AllocatorNetwork<'_, 'a>, row: usize) -> Option<(Rate, f64)> {
        let here = &network.plan.resources[network.plan.rows[row].resource as usize];
        let present = here.rows.clone().filter(|row| is_present(network, *row));
        let weights = present.map(|row| self.rows[row].row.terms.weight).sum();
        here.allocatable.map(|capacity| (capacity, weights))
    }

    fn tick(&mut self, network: &mut AllocatorNetwork<'_, 'a>, t: usize) {
        let plan = network.plan;
        self.count(1);
        for resource in plan.tickers[t].resources {
            if resource != NONE {
                self.allocate(network, resource as usize, self.last[t]);
            }
        }
        self.last[t] = Some(network.now);
        let next = plan.tickers[t].next(network.now, plan.largest_rtt(t, |row| is_present(network, row)));
        network.schedule(next, AllocatorEvent::Tick(t));
    }

    fn allocate(&mut self, network: &mut AllocatorNetwork<'_, 'a>, resource: usize, last: Option<u64>) {
        let (plan, now) = (network.plan, network.now);
        let here = &plan.resources[resource];
        let (Some(capacity), Some(_)) = (here.allocatable, &self.rules[resource]) else { return };
        let present: Vec<usize> = here.rows.clone().filter(|row| is_present(network, *row)).collect();
        let mut rows = Vec::new();
        for row in &present {
            let (crossing, state) = (&plan.rows[*row], &mut self.rows[*row]);
            state.meter.close(network.arriving_bps[*row], now);
            // A rate counts as measured once the session was active for a whole interval.
            let k = crossing.session as usize;
            let measured = match last {
                Some(last) if network.sessions[k].start + crossing.forward_ns <= last => {
                    grain::counted(state.meter.mean(last))
                }
                _ => self.start_rates[k],
            };
            rows.push(Row { measured: Rate::nearest_bps(measured), ..state.row });
        }
        for row in here.rows.clone() {
            self.rows[row].meter = RateAverage::new(now);
        }
        let mut grants = vec![Grant::default(); rows.len()];
        let elapsed = Duration::from_nanos(last.map_or(0, |last| now - last));
        if let Some(allocator) = &mut self.rules[resource] {
            allocator.allocate(&Interval { capacity, elapsed }, &rows, &mut grants);
        }
        for ((row, measured), grant) in present.into_iter().zip(rows).zip(grants) {
            self.rows[row].target = grant.target.as_bps();
            self.rows[row].measured = measured.measured.as_bps();
            let crossing = &plan.rows[row];
            if here.place.is_source() {
                self.rows[row].heard = grant.expected.as_bps();
                network.set_rate(self, crossing.session as usize);
            } else {
                network.schedule(now + crossing.back_ns, AllocatorEvent::Hear(row, grant.expected.as_bps()));
            }
        }
    }

    /// Only the source knows its session's demand.
    fn want(&mut self, network: &AllocatorNetwork<'_, 'a>, k: usize) {
        let row = network.plan.rows_of(k)[0] as usize;
        if network.plan.resources[network.plan.rows[row].resource as usize].place.is_source() {
            let demand = network.sessions[k].demand_bps;
            self.rows[row].row.terms.desired = demand.is_finite().then(|| Rate::nearest_bps(demand));
        }
    }
}

impl EventRule for Allocators<'_> {
    type Event = AllocatorEvent;

    fn place(event: &AllocatorEvent) -> (u8, usize) {
        match event {
            AllocatorEvent::Hear(row, _) => (MESSAGES, *row),
            AllocatorEvent::End(row) => (MESSAGES + 1, *row),
            AllocatorEvent::Tick(t) => (TICKS, *t),
        }
    }

    fn begin(&mut self, network: &mut Network<'_, Self>) {
        for (t, ticker) in network.plan.tickers.iter().enumerate() {
            let rows = &network.plan.rows;
            let starts_at_once = |row: usize| network.sessions[rows[row].session as usize].start == 0;
            let first = ticker.first(network.plan.largest_rtt(t, starts_at_once));
            network.schedule(first, AllocatorEvent::Tick(t));
        }
    }

    fn permitted_bps(&mut self, network: &Network<'_, Self>, k: usize) -> f64 {
        let heard = network.plan.rows_of(k).iter().map(|row| self.rows[*row as usize].heard);
        let permitted_bps = heard.fold(f64::INFINITY, f64::min);
        let session = &network.sessions[k];
        if session.is_active && permitted_bps.min(session.demand_bps) != session.rate_bps {
            self.count(1);
        }
        permitted_bps
    }

    fn on_start(&mut self, network: &mut Network<'_, Self>, k: usize) {
        let (plan, session) = (network.plan, &network.plan.scenario.sessions[k]);
        let start_rate = if plan.starts_fair(k) {
            let ends = plan.rows_of(k).iter().filter_map(|row| self.weights_at(network, *row as usize));
            fair_start(session.weight, ends).unwrap_or(Rate::ZERO).as_bps()
        } else {
            session.initial_rate.as_bps()
        };
        self.start_rates[k] = start_rate;
        for row in plan.rows_of(k) {
            let ruled = plan.resources[plan.rows[*row as usize].resource as usize].allocatable.is_some();
            let state = &mut self.rows[*row as usize];
            state.heard = if ruled { start_rate } else { f64::INFINITY };
            (state.target, state.measured) = (start_rate, start_rate);
        }
        self.want(network, k);
        self.count(1);
    }

    fn on_demand(&mut self, network: &mut Network<'_, Self>, k: usize) {
        self.want(network, k);
        self.count(1);
    }

    fn on_leave(&mut self, network: &mut Network<'_, Self>, k: usize) {
        // The end, and the rate that falls to zero.
        self.count(2);
        // The fast engine advances a queue at the end of a session that was at rate zero as well.
        for row in network.plan.rows_of(k) {
            let at = network.now + network.plan.rows[*row as usize].forward_ns;
            network.schedule(at, AllocatorEvent::End(*row as usize));
        }
    }

    fn before_arrival(&mut self, network: &Network<'_, Self>, row: usize) {
        self.rows[row].meter.close(network.arriving_bps[row], network.now);
    }

    fn on_event(&mut self, network: &mut Network<'_, Self>, event: AllocatorEvent) {
        match event {
            AllocatorEvent::Hear(row, bps) => {
                self.rows[row].heard = bps;
                network.set_rate(self, network.plan.rows[row].session as usize);
            }
            AllocatorEvent::End(row) => network.arrive(self, row, network.arriving_bps[row]),
            AllocatorEvent::Tick(t) => self.tick(network, t),
        }
    }

    fn known_rates(&self, network: &Network<'_, Self>, k: usize) -> KnownRates {
        let plan = network.plan;
        let mut known = KnownRates::NONE;
        for row in plan.rows_of(k) {
            let here = &plan.resources[plan.rows[*row as usize].resource as usize];
            if here.allocatable.is_none() {
                continue;
            }
            let state = &self.rows[*row as usize];
            if here.place.is_source() {
                known.source_expected = state.heard;
            } else {
                known.sink_expected = known.sink_expected.min(state.heard);
            }
            known.target = known.target.min(state.target);
            known.measured = state.measured;
        }
        known
    }
}

fn is_present(network: &AllocatorNetwork<'_, '_>, row: usize) -> bool {
    let crossing = &network.plan.rows[row];
    let session = &network.sessions[crossing.session as usize];
    session.start <= network.now && network.now < session.end.saturating_add(crossing.forward_ns)
}
