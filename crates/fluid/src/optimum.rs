//! The max-min fair rates of the currently active sessions.

use fairwave_schemes::global::{Paths, Problem, max_min};

use crate::error::FluidError;
use crate::plan::FluidPlan;
use crate::track::Track;

/// Solves for the optimum whenever the active sessions or their demands change.
pub(crate) struct Optimum {
    capacities_bps: Vec<f64>,
    /// Paths, demands and weights of the last solution.
    offsets: Vec<usize>,
    resources: Vec<u32>,
    demands_bps: Vec<f64>,
    weights: Vec<f64>,
}

impl Optimum {
    pub(crate) fn new(plan: &FluidPlan<'_>) -> Self {
        let capacities_bps = plan
            .resources
            .iter()
            .map(|resource| {
                // A node direction counts with its GTP share if only GTP uses it.
                let usable = resource.allocatable.or(resource.capacity);
                usable.map_or(f64::INFINITY, fairwave_units::Rate::as_bps)
            })
            .collect();
        Self {
            capacities_bps,
            offsets: Vec::new(),
            resources: Vec::new(),
            demands_bps: Vec::new(),
            weights: Vec::new(),
        }
    }

    /// Solves for the active sessions and sets their tracks' rates. The iterator has the demand of every session in order
    /// (infinity if unlimited, `None` if it is not active) with its track.
    pub(crate) fn find<'t>(
        &mut self,
        plan: &FluidPlan<'_>,
        sessions: impl Iterator<Item = (Option<f64>, &'t mut Track)>,
    ) -> Result<(), FluidError> {
        let mut tracks = Vec::new();
        self.offsets.clear();
        self.resources.clear();
        self.demands_bps.clear();
        self.weights.clear();
        self.offsets.push(0);
        for (session, (demand, track)) in sessions.enumerate() {
            let Some(demand) = demand else { continue };
            tracks.push(track);
            self.resources.extend(plan.rows_of(session).iter().map(|row| plan.rows[*row as usize].resource));
            self.offsets.push(self.resources.len());
            self.demands_bps.push(demand);
            self.weights.push(plan.scenario.sessions[session].weight);
        }
        let problem = Problem {
            capacities_bps: &self.capacities_bps,
            paths: Paths::Lists { offsets: &self.offsets, resources: &self.resources },
            demands_bps: self.demands_bps.iter().any(|demand| demand.is_finite()).then_some(&self.demands_bps[..]),
            weights: self.weights.iter().any(|weight| *weight != 1.0).then_some(&self.weights[..]),
        };
        let solution = max_min(&problem)?;
        for (track, rate) in tracks.into_iter().zip(solution.rates_bps) {
            track.optimum_bps = rate;
        }
        Ok(())
    }
}
