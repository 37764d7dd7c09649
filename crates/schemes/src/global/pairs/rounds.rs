//! Rounds that fill all lowest resources at once.

use super::{BOUNDLESS, Demand, Edge, Share, finite};
use crate::global::double::Double;
use crate::global::problem::NONE;

/// The resources between rounds. One more than the problem has, boundless, stands at the ends that are [`NONE`].
///
/// Sessions come to resources at random: what different walks need lies in different arrays, so that each walk touches
/// as little memory as it can.
pub(super) struct Rounds {
    /// The levels. The sign bit is set where a resource is not the lowest.
    keys: Vec<f64>,
    /// What is left of the capacities; once a resource is filled, its level in twice the precision.
    remaining: Vec<Double>,
    /// Numbers of undetermined sessions.
    undetermined: Vec<u32>,
    /// The resources that are not filled and have undetermined sessions; at first, all.
    pub(super) open: Vec<u32>,
}

impl Rounds {
    /// Counts the sessions of each resource; nothing if a path is not valid.
    pub(super) fn new(capacities: &[f64], ends: impl Iterator<Item = [u32; 2]>) -> Option<Self> {
        let none = capacities.len() as u32;
        let mut undetermined = vec![0_u32; capacities.len() + 1];
        let mut is_valid = true;
        for [source, sink] in ends {
            is_valid &= (source < none || source == NONE) && (sink < none || sink == NONE);
            is_valid &= source != sink || source == NONE;
            undetermined[source.min(none) as usize] += 1;
            undetermined[sink.min(none) as usize] += 1;
        }
        if !is_valid {
            return None;
        }
        // Without the sign of -0.0, which would be taken for a mark.
        let bound = |capacity: &f64| capacity.abs().min(BOUNDLESS);
        let remaining = capacities.iter().chain([&BOUNDLESS]).map(|capacity| Double::from(bound(capacity))).collect();
        // Without sessions a key is infinite or not a number; nobody looks at it.
        let keys = (capacities.iter().chain([&BOUNDLESS]).zip(&undetermined))
            .map(|(capacity, &undetermined)| bound(capacity) / f64::from(undetermined))
            .collect();
        Some(Self { keys, remaining, undetermined, open: (0..=none).collect() })
    }

    /// How many resources there are, with the one that stands for none.
    pub(super) fn count(&self) -> usize {
        self.keys.len()
    }

    /// An open resource: its level and what is left.
    pub(super) fn node(&self, resource: u32) -> (f64, Share) {
        let r = resource as usize;
        (self.keys[r], Share { remaining: self.remaining[r], undetermined: self.undetermined[r] })
    }

    /// The levels of what is filled, infinity for the others.
    pub(super) fn into_levels(self) -> Vec<f64> {
        let mut levels = self.keys;
        for &resource in &self.open {
            levels[resource as usize] = f64::INFINITY;
        }
        for level in &mut levels {
            // The mark is still there where others determined all sessions; without any the key may not be a number.
            let is_filled = level.is_sign_positive() && !level.is_nan();
            *level = if is_filled { finite(*level) } else { f64::INFINITY };
        }
        levels
    }

    /// Fills until all is done or a round determines less than a quarter of the sessions; gives back the undetermined
    /// ones.
    pub(super) fn run<D: Demand>(&mut self, edges: impl ExactSizeIterator<Item = Edge<D>> + Clone) -> Vec<Edge<D>> {
        let none = self.keys.len() as u32 - 1;
        let edges = edges.map(|Edge { ends, demand }| Edge { ends: ends.map(|end| end.min(none)), demand });
        let mut before = edges.len();
        for edge in edges.clone() {
            self.mark(edge);
        }
        self.fill_lowest();
        let mut undetermined = self.keep_of(edges);
        self.reopen();
        while (before - undetermined.len()) * 4 > before {
            before = undetermined.len();
            for edge in &undetermined {
                self.mark(*edge);
            }
            self.fill_lowest();
            self.keep_in(&mut undetermined);
            self.reopen();
        }
        undetermined
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

    /// Fills the open resources that are lowest.
    fn fill_lowest(&mut self) {
        for &resource in &self.open {
            let r = resource as usize;
            let key = self.keys[r];
            if key.is_sign_positive() && self.undetermined[r] > 0 {
                let share = Share { remaining: self.remaining[r], undetermined: self.undetermined[r] };
                let level = share.exact_level(key);
                self.keys[r] = level.value();
                self.remaining[r] = level;
            }
        }
    }

    /// Determines the sessions that can be, and collects the others.
    fn keep_of<D: Demand>(&mut self, edges: impl Iterator<Item = Edge<D>>) -> Vec<Edge<D>> {
        let mut undetermined = Vec::new();
        let mut block = [Edge::default(); 256];
        let mut length = 0;
        for edge in edges {
            // Written in any case, and overwritten by the next if it does not stay.
            block[length] = edge;
            length += usize::from(self.keep(edge));
            if length == block.len() {
                undetermined.extend_from_slice(&block);
                length = 0;
            }
        }
        undetermined.extend_from_slice(&block[..length]);
        undetermined
    }

    /// Determines the sessions that can be, and removes them.
    fn keep_in<D: Demand>(&mut self, edges: &mut Vec<Edge<D>>) {
        let mut length = 0;
        for place in 0..edges.len() {
            let edge = edges[place];
            edges[length] = edge;
            length += usize::from(self.keep(edge));
        }
        edges.truncate(length);
    }

    /// Determines a session if one of its ends was filled or its demand is below both levels. Says whether it stays.
    ///
    /// Without branches: which way it goes is a matter of chance, and known only when the nodes have come from memory.
    #[inline]
    fn keep<D: Demand>(&mut self, Edge { ends: [source, sink], demand }: Edge<D>) -> bool {
        let (at_source, at_sink) = (self.keys[source as usize], self.keys[sink as usize]);
        let is_source_filled = at_source.is_sign_positive();
        let is_sink_filled = at_sink.is_sign_positive();
        let is_any_filled = is_source_filled | is_sink_filled;
        let is_one_filled = is_source_filled ^ is_sink_filled;
        let (filled, other) = if is_source_filled { (source, sink) } else { (sink, source) };
        let rate = self.remaining[filled as usize];
        if D::FINITE {
            let is_met = !is_any_filled & (demand.bps() <= at_source.abs().min(at_sink.abs()));
            let rate = Double::select(is_any_filled, rate, Double::from(demand.bps()));
            self.take_if(is_one_filled | is_met, other, rate);
            self.take_if(is_met, filled, rate);
            !(is_any_filled | is_met)
        } else {
            self.take_if(is_one_filled, other, rate);
            !is_any_filled
        }
    }

    /// Takes a session out of a resource that was determined elsewhere, if it was.
    #[inline]
    fn take_if(&mut self, is_determined: bool, resource: u32, rate: Double) {
        let r = resource as usize;
        self.remaining[r].subtract(Double::select(is_determined, rate, Double::ZERO));
        self.undetermined[r] -= u32::from(is_determined);
    }

    /// Takes the marks from what was not lowest, and forgets what is not open any more.
    fn reopen(&mut self) {
        let mut length = 0;
        for place in 0..self.open.len() {
            let resource = self.open[place];
            let r = resource as usize;
            let key = self.keys[r];
            let share = Share { remaining: self.remaining[r], undetermined: self.undetermined[r] };
            let is_open = key.is_sign_negative() && share.undetermined > 0;
            // Chance again, so that it is worked out in any case and then selected.
            let level = share.level(key.abs());
            self.keys[r] = if is_open { level } else { key };
            self.open[length] = resource;
            length += usize::from(is_open);
        }
        self.open.truncate(length);
    }
}
