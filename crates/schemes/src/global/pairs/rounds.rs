//! Rounds that fill all lowest resources at once.

use super::parts::{BOUNDLESS, Edge, OptionalDemand, PairShare, finite};
use crate::global::double::Double;
use crate::global::problem::NONE;

/// The resources between rounds. There is one more than in the problem, unlimited, for the ends that are [`NONE`].
///
/// Sessions access resources at random: separate arrays hold the data of separate passes, so that each pass touches as
/// little memory as possible.
pub(super) struct Rounds {
    /// The levels. The sign bit marks a resource that is not lowest.
    keys: Vec<f64>,
    /// Remaining capacities; once a resource is filled, its level in twice the precision.
    remaining: Vec<Double>,
    /// Numbers of undetermined sessions.
    undetermined: Vec<u32>,
    /// The resources that are not filled and have undetermined sessions; initially all.
    pub(super) open: Vec<u32>,
}

impl Rounds {
    /// Counts the sessions of each resource; `None` if a path is not valid.
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
        // Clears the sign of -0.0, which would count as a mark.
        let bound = |capacity: &f64| capacity.abs().min(BOUNDLESS);
        let remaining = capacities.iter().chain([&BOUNDLESS]).map(|capacity| Double::from(bound(capacity))).collect();
        // Without sessions a key is infinite or NaN, and is not read.
        let keys = (capacities.iter().chain([&BOUNDLESS]).zip(&undetermined))
            .map(|(capacity, &undetermined)| bound(capacity) / f64::from(undetermined))
            .collect();
        Some(Self { keys, remaining, undetermined, open: (0..=none).collect() })
    }

    /// Number of resources, including the one for [`NONE`].
    pub(super) fn count(&self) -> usize {
        self.keys.len()
    }

    /// Level and remaining capacity of an open resource.
    pub(super) fn node(&self, resource: u32) -> (f64, PairShare) {
        let r = resource as usize;
        (self.keys[r], PairShare { remaining: self.remaining[r], undetermined: self.undetermined[r] })
    }

    /// The levels of the filled resources, infinity for the others.
    pub(super) fn into_levels(self) -> Vec<f64> {
        let mut levels = self.keys;
        for &resource in &self.open {
            levels[resource as usize] = f64::INFINITY;
        }
        for level in &mut levels {
            // The mark remains if others determined all sessions; without any the key may be NaN.
            let is_filled = level.is_sign_positive() && !level.is_nan();
            *level = if is_filled { finite(*level) } else { f64::INFINITY };
        }
        levels
    }

    /// Fills until all is done or a round determines less than a quarter of the sessions; returns the undetermined
    /// ones.
    pub(super) fn run<D: OptionalDemand>(
        &mut self,
        edges: impl ExactSizeIterator<Item = Edge<D>> + Clone,
    ) -> Vec<Edge<D>> {
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
    fn mark<D: OptionalDemand>(&mut self, Edge { ends: [source, sink], demand }: Edge<D>) {
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
                let share = PairShare { remaining: self.remaining[r], undetermined: self.undetermined[r] };
                let level = share.exact_level(key);
                self.keys[r] = level.value();
                self.remaining[r] = level;
            }
        }
    }

    /// Determines the sessions that are ready, and collects the others.
    fn keep_of<D: OptionalDemand>(&mut self, mut edges: impl Iterator<Item = Edge<D>>) -> Vec<Edge<D>> {
        let mut undetermined = Vec::new();
        let mut block = [Edge::default(); BLOCK];
        loop {
            let mut length = 0;
            for (place, edge) in block.iter_mut().zip(edges.by_ref()) {
                *place = edge;
                length += 1;
            }
            if length == 0 {
                return undetermined;
            }
            let length = self.keep_in_block(&mut block[..length]);
            undetermined.extend_from_slice(&block[..length]);
        }
    }

    /// Determines the sessions that are ready, and removes them.
    fn keep_in<D: OptionalDemand>(&mut self, edges: &mut Vec<Edge<D>>) {
        let mut length = 0;
        for begin in (0..edges.len()).step_by(BLOCK) {
            let end = edges.len().min(begin + BLOCK);
            let kept = self.keep_in_block(&mut edges[begin..end]);
            edges.copy_within(begin..begin + kept, length);
            length += kept;
        }
        edges.truncate(length);
    }

    /// Determines the sessions that are ready, and moves the others to the front. Returns the number of the others.
    fn keep_in_block<D: OptionalDemand>(&mut self, edges: &mut [Edge<D>]) -> usize {
        if self.keys.len() > CACHED {
            self.touch(edges);
        }
        let mut length = 0;
        for place in 0..edges.len() {
            let edge = edges[place];
            // Written in any case, and overwritten by the next one if the session does not stay.
            edges[length] = edge;
            length += usize::from(self.keep(edge));
        }
        length
    }

    /// Prefetches the memory that [`Self::keep`] needs. This loop body is short, unlike that one, so that more sessions
    /// wait for memory at the same time.
    fn touch<D>(&self, edges: &[Edge<D>]) {
        let mut seen = 0;
        for resource in edges.iter().flat_map(|edge| edge.ends) {
            let r = resource as usize;
            seen |= self.keys[r].to_bits() | self.remaining[r].value().to_bits() | u64::from(self.undetermined[r]);
        }
        std::hint::black_box(seen);
    }

    /// Determines a session if one of its ends was filled or its demand is below both levels. Returns whether it stays
    /// undetermined.
    ///
    /// Branch-free: the outcome is unpredictable, and known only when the nodes have arrived from memory.
    #[inline]
    fn keep<D: OptionalDemand>(&mut self, Edge { ends: [source, sink], demand }: Edge<D>) -> bool {
        let (at_source, at_sink) = (self.keys[source as usize], self.keys[sink as usize]);
        let is_source_filled = at_source.is_sign_positive();
        let is_sink_filled = at_sink.is_sign_positive();
        let is_any_filled = is_source_filled | is_sink_filled;
        let is_one_filled = is_source_filled ^ is_sink_filled;
        let (filled, other) = if is_source_filled { (source, sink) } else { (sink, source) };
        let rate = self.remaining[filled as usize];
        if D::FINITE {
            let is_met = !is_any_filled & (demand.bps() <= at_source.abs().min(at_sink.abs()));
            // Finite, so that its product with zero is zero.
            let demand = Double::from(demand.bps().min(BOUNDLESS)).all_or_none(is_met);
            self.take(other, is_one_filled | is_met, rate.all_or_none(is_one_filled).or(demand));
            self.take(filled, is_met, demand);
            !(is_any_filled | is_met)
        } else {
            self.take(other, is_one_filled, rate.all_or_none(is_one_filled));
            !is_any_filled
        }
    }

    /// Removes one session, if `is_taken`, from a resource.
    #[inline]
    fn take(&mut self, resource: u32, is_taken: bool, rate: Double) {
        let r = resource as usize;
        self.remaining[r].subtract(rate);
        self.undetermined[r] -= u32::from(is_taken);
    }

    /// Clears the marks of the resources that were not lowest, and drops those that are not open any more.
    fn reopen(&mut self) {
        let mut length = 0;
        for place in 0..self.open.len() {
            let resource = self.open[place];
            let r = resource as usize;
            let key = self.keys[r];
            let share = PairShare { remaining: self.remaining[r], undetermined: self.undetermined[r] };
            let is_open = key.is_sign_negative() && share.undetermined > 0;
            // Unpredictable as well, so it is computed in any case and then selected.
            let level = share.level(key.abs());
            self.keys[r] = if is_open { level } else { key };
            self.open[length] = resource;
            length += usize::from(is_open);
        }
        self.open.truncate(length);
    }
}

/// Sessions that are prefetched before they are processed: few enough for the first-level cache.
const BLOCK: usize = 128;

/// Up to this number of resources the second-level cache holds them all.
const CACHED: usize = 1 << 17;
