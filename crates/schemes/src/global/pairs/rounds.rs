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
    /// What the levels of filled resources have beyond the precision of an f64.
    tails: Vec<f64>,
    /// What is left.
    shares: Vec<Share>,
    /// The resources that are not filled and have undetermined sessions.
    pub(super) open: Vec<u32>,
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
        let shares: Vec<Share> = (capacities.iter().chain([&f64::INFINITY]))
            .zip(counts)
            .map(|(capacity, undetermined)| Share {
                remaining: Double::from(capacity.abs().min(BOUNDLESS)),
                undetermined,
            })
            .collect();
        // The sign of a capacity of -0.0 would be taken for a mark. Without sessions a key is infinite or not a number; nobody looks at it.
        let keys = shares.iter().map(|share| share.remaining.value() / f64::from(share.undetermined)).collect();
        let tails = vec![0.0; shares.len()];
        Some(Self { keys, tails, shares, open: Vec::new() })
    }

    /// How many resources there are, with the one that stands for none.
    pub(super) fn count(&self) -> usize {
        self.shares.len()
    }

    /// An open resource: its level and what is left.
    pub(super) fn node(&self, resource: u32) -> (f64, Share) {
        (self.keys[resource as usize], self.shares[resource as usize])
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
        let none = self.shares.len() as u32 - 1;
        let edges = edges.map(|Edge { ends, demand }| Edge { ends: ends.map(|end| end.min(none)), demand });
        let mut before = edges.len();
        for edge in edges.clone() {
            self.mark(edge);
        }
        (0..=none).for_each(|resource| self.fill(resource));
        let mut undetermined = self.keep_of(edges);
        self.open = (0..=none).filter(|&resource| self.reopen(resource)).collect();
        while (before - undetermined.len()) * 4 > before {
            before = undetermined.len();
            for edge in &undetermined {
                self.mark(*edge);
            }
            let mut open = std::mem::take(&mut self.open);
            for &resource in &open {
                self.fill(resource);
            }
            self.keep_in(&mut undetermined);
            open.retain(|&resource| self.reopen(resource));
            self.open = open;
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

    /// Fills a resource if it is lowest.
    #[inline]
    fn fill(&mut self, resource: u32) {
        let key = &mut self.keys[resource as usize];
        let share = &self.shares[resource as usize];
        if key.is_sign_positive() && share.undetermined > 0 {
            let (level, tail) = share.exact_level(*key).parts();
            *key = level;
            self.tails[resource as usize] = tail;
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
        // What is filled, and the other end; if both are, the other end is not looked at any more.
        let (filled, other) = if is_source_filled { (source, sink) } else { (sink, source) };
        let rate = Double::from_parts(self.keys[filled as usize], self.tails[filled as usize]);
        if D::FINITE {
            let is_met = !is_any_filled & (demand.bps() <= at_source.abs().min(at_sink.abs()));
            let rate = Double::select(is_any_filled, rate, Double::from(demand.bps()));
            self.shares[other as usize].take_if(is_any_filled | is_met, rate);
            self.shares[filled as usize].take_if(is_met, rate);
            !(is_any_filled | is_met)
        } else {
            self.shares[other as usize].take_if(is_any_filled, rate);
            !is_any_filled
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
