//! Rounds that fill all lowest resources at once.

use super::{BOUNDLESS, Demand, Edge, Share};
use crate::global::double::Double;
use crate::global::problem::NONE;

/// The resources between rounds. One more than the problem has, boundless, stands at the ends that are [`NONE`].
pub(super) struct Rounds {
    /// Levels of the open resources; the sign bit marks those that are not lowest.
    keys: Vec<f64>,
    pub(super) shares: Vec<Share>,
    /// Open resources: not filled, and with undetermined sessions.
    pub(super) open: Vec<u32>,
    /// What is known of the outcome.
    pub(super) levels: Vec<f64>,
}

impl Rounds {
    /// Counts the sessions of each resource; nothing if a path is not valid.
    pub(super) fn new(capacities: &[f64], ends: impl Iterator<Item = [u32; 2]>) -> Option<Self> {
        let none = capacities.len() as u32;
        let mut counts = vec![0_u32; capacities.len() + 1];
        let mut is_valid = true;
        for [source, sink] in ends {
            is_valid &= (source < none || source == NONE) && (sink < none || sink == NONE);
            is_valid &= source != sink || source == NONE;
            counts[source.min(none) as usize] += 1;
            counts[sink.min(none) as usize] += 1;
        }
        if !is_valid {
            return None;
        }
        let shares: Vec<Share> = capacities
            .iter()
            .chain([&f64::INFINITY])
            .zip(counts)
            .map(|(capacity, undetermined)| Share { remaining: Double::from(capacity.min(BOUNDLESS)), undetermined })
            .collect();
        // Without sessions the key is infinite or not a number; nobody looks at it.
        let keys = shares.iter().map(|share| share.remaining.value() / f64::from(share.undetermined)).collect();
        Some(Self { keys, shares, open: Vec::new(), levels: vec![f64::INFINITY; capacities.len() + 1] })
    }

    /// Fills until all is done or a round determines less than a quarter of the sessions; gives back the undetermined
    /// ones.
    pub(super) fn run<D: Demand>(&mut self, edges: impl ExactSizeIterator<Item = Edge<D>> + Clone) -> Vec<Edge<D>> {
        let none = self.shares.len() as u32 - 1;
        let edges = edges.map(|Edge { ends, demand }| Edge { ends: ends.map(|end| end.min(none)), demand });
        let mut before = edges.len();
        for edge in edges.clone() {
            self.mark(edge);
        }
        (0..=none).for_each(|resource| self.fill(resource));
        let mut undetermined: Vec<Edge<D>> = edges.filter(|edge| self.keep(*edge)).collect();
        self.open = (0..=none).filter(|&resource| self.reopen(resource)).collect();
        while !undetermined.is_empty() && before - undetermined.len() >= before / 4 {
            before = undetermined.len();
            for edge in &undetermined {
                self.mark(*edge);
            }
            let mut open = std::mem::take(&mut self.open);
            for &resource in &open {
                self.fill(resource);
            }
            undetermined.retain(|edge| self.keep(*edge));
            open.retain(|&resource| self.reopen(resource));
            self.open = open;
        }
        undetermined
    }

    /// The level of an open resource.
    pub(super) fn key(&self, resource: u32) -> f64 {
        self.keys[resource as usize].abs()
    }

    /// Marks the ends that a session shows not to be lowest.
    #[inline]
    fn mark<D: Demand>(&mut self, Edge { ends: [source, sink], demand }: Edge<D>) {
        let (at_source, at_sink) = (self.keys[source as usize], self.keys[sink as usize]);
        let (source_level, sink_level) = (at_source.abs(), at_sink.abs());
        let mut lowest = source_level.min(sink_level);
        if D::FINITE {
            lowest = lowest.min(demand.bps());
        }
        self.keys[source as usize] = if lowest < source_level { -source_level } else { at_source };
        self.keys[sink as usize] = if lowest < sink_level { -sink_level } else { at_sink };
    }

    /// Fills a resource if it is lowest.
    #[inline]
    fn fill(&mut self, resource: u32) {
        let key = self.keys[resource as usize];
        let share = &mut self.shares[resource as usize];
        if key.is_sign_positive() && share.undetermined > 0 {
            share.remaining = share.exact_level(key);
            self.levels[resource as usize] = share.remaining.value();
        }
    }

    /// Determines a session if one of its ends was filled or its demand is below both levels. Says whether it stays.
    #[inline]
    fn keep<D: Demand>(&mut self, Edge { ends: [source, sink], demand }: Edge<D>) -> bool {
        let (at_source, at_sink) = (self.keys[source as usize], self.keys[sink as usize]);
        match (at_source.is_sign_positive(), at_sink.is_sign_positive()) {
            (true, true) => false,
            (true, false) => {
                let rate = self.shares[source as usize].remaining;
                self.shares[sink as usize].take(rate);
                false
            }
            (false, true) => {
                let rate = self.shares[sink as usize].remaining;
                self.shares[source as usize].take(rate);
                false
            }
            (false, false) if D::FINITE && demand.bps() <= at_source.abs().min(at_sink.abs()) => {
                let rate = Double::from(demand.bps());
                self.shares[source as usize].take(rate);
                self.shares[sink as usize].take(rate);
                false
            }
            (false, false) => true,
        }
    }

    /// Takes the mark from a resource that was not lowest. Says whether it is open.
    #[inline]
    fn reopen(&mut self, resource: u32) -> bool {
        let key = &mut self.keys[resource as usize];
        let share = &self.shares[resource as usize];
        let is_open = key.is_sign_negative() && share.undetermined > 0;
        if is_open {
            *key = share.level(key.abs());
        }
        is_open
    }
}
