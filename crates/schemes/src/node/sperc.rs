//! s-PERC: a control packet of each session circulates over the capacities of its path, and every capacity keeps four
//! numbers, none per session (Jose, Ibanez, Alizadeh & McKeown, SIGMETRICS 2019). The rates are max-min fair after a
//! bounded number of rounds.
//!
//! [`Meter`] is the state of one capacity, [`ControlPacket`] what circulates, [`Meter::visit`] the rule. It is the
//! authors' robust variant with ignore bits (`sperc_ignore_sim.py` and `sperc_robust_sim.py` of
//! lavanyaj/numerical-simulations): sums are counted again in every round, so that a lost packet or a dead session
//! leaves nothing behind.
//!
//! Ours: weights (a level is a rate per weight), demands, levels that are never negative, and a tolerance relative to
//! the level. The authors' simulators do without these and use a tolerance of 1e-7.

use fairwave_units::Duration;

use super::gtp::{Gtp, Reading};
use super::node_entries::{PHASE, entry};
use crate::scheme::NodeRule;
use crate::scheme::entry::Scheme;
use crate::scheme::option::{OptionSpec, TypedOption, share, time, time_or};

/// Registry entry. Drivers run [`Meter`]s; its `make` is plain GTP, which is not used to allocate.
pub(super) const SCHEME: Scheme = Scheme {
    needs: "the rule at every capacity on the path, and control packets that visit them",
    ..entry(
        "s-perc",
        "a control packet of each session circulates; links keep a sum and a count, and no state of sessions",
        "Jose et al. 2019",
        &OPTIONS,
        NodeRule {
            circulates: true,
            runs_on_hosts: false,
            ..NodeRule::new(|options| Box::new(Gtp::new(Reading::Adopted, options)))
        },
    )
};

const OPTIONS: [OptionSpec; 4] = [ROUND.spec(), PHASE.spec(), CONTROL_LOSS.spec(), CONTROL_LATE.spec()];

/// Round of a capacity; `None` is the largest round-trip time of its sessions, or what a repeated packet takes.
const ROUND: TypedOption<Option<Duration>> = time_or(
    "interval",
    [Duration::from_micros(10), Duration::from_secs(60)],
    &["rtt"],
    "rtt",
    "round of a capacity, at least the largest RTT; \"rtt\" is that RTT, or four of it if packets are lost",
);
/// Share of lost control packets.
pub const CONTROL_LOSS: TypedOption<f64> =
    share("loss", 0.9, "0", "share of the control packets that are lost on each way");
/// Maximum extra delay of a control packet.
pub const CONTROL_LATE: TypedOption<Duration> = time(
    "late",
    [Duration::ZERO, Duration::from_secs(10)],
    "0 ms",
    "maximum extra delay of a control packet on each way",
);

/// Share by which levels must differ to count as different: equal levels would change places forever.
const TOLERANCE: f64 = 1e-7;

/// Limit of a session, in the view of one capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limited {
    /// This capacity: state B of the paper.
    #[default]
    Here,
    /// Another capacity, or its demand: state E.
    Elsewhere,
}

/// The fields of a control packet for one capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hop {
    /// Limit of the session there.
    pub limited: Limited,
    /// Its allocation there, per weight, in bit/s.
    pub allocation_bps: f64,
    /// The level of the capacity if it limited the session, in bit/s; infinite before the first visit.
    pub level_bps: f64,
    /// Whether other capacities must ignore the level: it may be too low.
    pub is_ignored: bool,
    /// The round in which it was last counted; 0 is never.
    round: u64,
}

impl Default for Hop {
    fn default() -> Self {
        let limited = Limited::default();
        Self { limited, allocation_bps: 0.0, level_bps: f64::INFINITY, is_ignored: false, round: 0 }
    }
}

/// The control packet of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlPacket {
    /// Weight relative to other sessions.
    pub weight: f64,
    /// Demand in bit/s; may be infinite.
    pub demand_bps: f64,
    /// The fields of the capacities on its path.
    pub hops: Vec<Hop>,
}

impl ControlPacket {
    /// The first packet of a session.
    pub fn new(hops: usize, weight: f64, demand_bps: f64) -> Self {
        Self { weight, demand_bps, hops: vec![Hop::default(); hops] }
    }

    /// The rate at which the session may send: its least allocation.
    pub fn rate_bps(&self) -> f64 {
        let least = self.hops.iter().map(|hop| hop.allocation_bps * self.weight);
        least.fold(self.demand_bps, f64::min)
    }
}

/// Sums over sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    /// Allocations of the sessions limited elsewhere, in bit/s: SumE.
    elsewhere_bps: f64,
    /// Weights of the sessions limited here: NumB.
    here: f64,
}

impl Sums {
    fn add(&mut self, hop: &Hop, weight: f64) {
        match hop.limited {
            Limited::Here => self.here += weight,
            Limited::Elsewhere => self.elsewhere_bps += weight * hop.allocation_bps,
        }
    }
}

/// The state of one capacity.
#[derive(Clone, Debug)]
pub struct Meter {
    capacity_bps: f64,
    sums: Sums,
    /// Sums over the sessions seen in this round.
    seen: Sums,
    /// Largest allocation of a session limited elsewhere, in this round and the one before: MaxE.
    most_bps: f64,
    /// The same for this round.
    next_most_bps: f64,
    round: u64,
}

impl Meter {
    /// A capacity without sessions.
    pub fn new(capacity_bps: f64) -> Self {
        let sums = Sums::default();
        Self { capacity_bps, sums, seen: sums, most_bps: 0.0, next_most_bps: 0.0, round: 1 }
    }

    /// A control packet visits the capacity, whose fields are those at `place`.
    pub fn visit(&mut self, packet: &mut ControlPacket, place: usize) {
        let (weight, old) = (packet.weight, packet.hops[place]);
        if self.counts(&old) {
            self.sums.add(&old, -weight);
        }
        if old.round == self.round {
            self.seen.add(&old, -weight);
        }
        // The level as if the session were limited here. Sums of lost packets may be too small by one session.
        let level_bps = ((self.capacity_bps - self.sums.elsewhere_bps) / (self.sums.here.max(0.0) + weight)).max(0.0);
        let others = packet.hops.iter().enumerate().filter(|(other, hop)| *other != place && !hop.is_ignored);
        let elsewhere_bps = others.map(|(_, hop)| hop.level_bps).fold(packet.demand_bps / weight, f64::min);
        let is_elsewhere = elsewhere_bps < level_bps * (1.0 - TOLERANCE);
        let (limited, allocation_bps) =
            if is_elsewhere { (Limited::Elsewhere, elsewhere_bps) } else { (Limited::Here, level_bps) };
        // Some session believed to be limited elsewhere has more than this level: it is too low to be trusted. The
        // maximum is that from before the visit.
        let is_ignored = self.most_bps > level_bps * (1.0 + TOLERANCE);
        if is_elsewhere {
            self.most_bps = self.most_bps.max(allocation_bps);
            self.next_most_bps = self.next_most_bps.max(allocation_bps);
        }
        let hop = Hop { limited, allocation_bps, level_bps, is_ignored, round: self.round };
        self.sums.add(&hop, weight);
        self.seen.add(&hop, weight);
        packet.hops[place] = hop;
    }

    /// The last packet of a session visits the capacity.
    pub fn leave(&mut self, packet: &mut ControlPacket, place: usize) {
        let hop = std::mem::take(&mut packet.hops[place]);
        if self.counts(&hop) {
            self.sums.add(&hop, -packet.weight);
        }
        if hop.round == self.round {
            self.seen.add(&hop, -packet.weight);
        }
    }

    /// A round is over: only sessions that were seen in it count from now on.
    pub fn end_round(&mut self) {
        self.sums = std::mem::take(&mut self.seen);
        self.most_bps = std::mem::take(&mut self.next_most_bps);
        self.round += 1;
    }

    /// Whether the sums have the session: it was seen in this round or the one before.
    fn counts(&self, hop: &Hop) -> bool {
        hop.round > 0 && hop.round + 1 >= self.round
    }
}

#[cfg(test)]
mod tests;
