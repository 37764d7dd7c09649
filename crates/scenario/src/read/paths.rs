//! Paths of sessions: the shortest by delay, or the routers that the file names.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use fairwave_units::Duration;

use super::mistake::{Mistake, quoted};
use super::nodes::KnownNodes;
use super::reader::TableReader;
use crate::{Link, LinkEnd, limits, random};

/// The paths through a network.
pub(crate) struct Routes<'a> {
    ends: &'a KnownNodes,
    pub(crate) links: &'a [Link],
    /// The best link between two ends: minimum delay, then first in the file.
    hops: HashMap<(LinkEnd, LinkEnd), u32>,
    /// Links between routers, by the router at their start: (link, next router).
    onward: Vec<Vec<(u32, u32)>>,
    /// Links into the network, by node.
    entries: Vec<Vec<u32>>,
    /// Links out of the network, by node.
    exits: Vec<Vec<u32>>,
    /// Shortest paths from one router to all, computed on demand.
    trees: HashMap<u32, Vec<RouteEnd>>,
    /// Links on all paths found so far.
    crossings: usize,
    /// How traffic is spread over several shortest paths; `None` takes the first.
    ecmp: Option<Ecmp>,
    /// Links between routers, by the router at their end: (link, router at its start).
    inward: Vec<Vec<(u32, u32)>>,
    /// The ends of the first session that has several shortest paths.
    pub(crate) tied: Option<(u32, u32)>,
}

/// How traffic is spread over paths of equal cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ecmp {
    /// Each session has one path, by a hash of its name and this seed.
    Flow(u64),
    /// Each packet takes one at random.
    Packet,
}

/// Maximum number of paths of equal cost that are used: that of Linux (`fib_multipath`) is 64 in most routers.
const MAX_PATHS: usize = 64;

/// The end of the shortest path to a router.
#[derive(Clone, Copy)]
struct RouteEnd {
    cost: Cost,
    /// The last link, or `NOTHING` at the root and without a path.
    link: u32,
    /// Whether there is another last link with equal cost.
    is_tied: bool,
}

/// Delay, then number of links.
type Cost = (u64, u32);

/// No link.
const NOTHING: u32 = u32::MAX;
/// Cost of a missing path.
const NEVER: Cost = (u64::MAX, u32::MAX);

/// A path and its return path, with the total delay of both.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RoundTripRoute {
    pub(crate) there: Box<[u32]>,
    /// Other paths of equal cost, if each packet takes one.
    pub(crate) others: Box<[Box<[u32]>]>,
    pub(crate) back: Box<[u32]>,
    pub(crate) delay: Duration,
}

/// The reason for a missing path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NoWay {
    /// No path leads from the source to the sink.
    There,
    /// No link leads from the first to the second, on a path that the file names.
    Hop(LinkEnd, LinkEnd),
    /// No link leads from the first to the second, on the return path.
    Back(LinkEnd, LinkEnd),
    /// The total length of all paths is too large.
    TooMany,
}

impl<'a> Routes<'a> {
    pub(crate) fn new(ends: &'a KnownNodes, links: &'a [Link], ecmp: Option<Ecmp>) -> Self {
        let mut hops = HashMap::new();
        let mut onward = vec![Vec::new(); ends.routers.len()];
        let mut inward = vec![Vec::new(); ends.routers.len()];
        let nodes = if links.is_empty() { 0 } else { ends.nodes.len() };
        let (mut entries, mut exits) = (vec![Vec::new(); nodes], vec![Vec::new(); nodes]);
        for (index, link) in links.iter().enumerate() {
            let index = index as u32;
            let best = hops.entry((link.from, link.to)).or_insert(index);
            if link.delay < links[*best as usize].delay {
                *best = index;
            }
            match (link.from, link.to) {
                (LinkEnd::Router(from), LinkEnd::Router(to)) => {
                    onward[from as usize].push((index, to));
                    inward[to as usize].push((index, from));
                }
                (LinkEnd::Node(node), LinkEnd::Router(_)) => entries[node as usize].push(index),
                (LinkEnd::Router(_), LinkEnd::Node(node)) => exits[node as usize].push(index),
                // Between two nodes: only in `hops`.
                (LinkEnd::Node(_), LinkEnd::Node(_)) => {}
            }
        }
        let (trees, crossings, tied) = (HashMap::new(), 0, None);
        Self { ends, links, hops, onward, entries, exits, trees, crossings, ecmp, inward, tied }
    }

    /// Whether the network has no links, so that sessions cross none.
    pub(crate) fn is_lambda(&self) -> bool {
        self.links.is_empty()
    }

    /// The name of a node or router.
    pub(crate) fn name(&self, end: LinkEnd) -> &'a str {
        match end {
            LinkEnd::Node(node) => &self.ends.nodes[node as usize].name,
            LinkEnd::Router(router) => &self.ends.routers[router as usize].name,
        }
    }

    /// The path between two nodes, over the named routers or the shortest, and the return path over the same routers in
    /// reverse.
    /// `name` is hashed to choose among several.
    pub(crate) fn find(
        &mut self,
        from: u32,
        to: u32,
        routers: Option<&[u32]>,
        name: &str,
    ) -> Result<RoundTripRoute, NoWay> {
        let mut all = match routers {
            Some(routers) => vec![routers.iter().map(|router| LinkEnd::Router(*router)).collect()],
            None => self.shortest(from, to).ok_or(NoWay::There)?,
        };
        let ends = |stops: Vec<LinkEnd>| -> Vec<LinkEnd> {
            [LinkEnd::Node(from)].into_iter().chain(stops).chain([LinkEnd::Node(to)]).collect()
        };
        let chosen = match self.ecmp {
            Some(Ecmp::Flow(seed)) => random::stream(seed, &format!("ecmp {name}")).below(all.len() as u64) as usize,
            Some(Ecmp::Packet) | None => 0,
        };
        let stops = ends(all.swap_remove(chosen));
        let mut others = Vec::new();
        if self.ecmp == Some(Ecmp::Packet) {
            for stops in all {
                let there = self.walk(ends(stops).into_iter()).map_err(|(a, b)| NoWay::Hop(a, b))?;
                self.crossings += there.len();
                others.push(there.into());
            }
        }
        let there = self.walk(stops.iter().copied()).map_err(|(a, b)| NoWay::Hop(a, b))?;
        let back = self.walk(stops.iter().rev().copied()).map_err(|(a, b)| NoWay::Back(a, b))?;
        self.crossings += there.len() + back.len();
        if self.crossings > limits::CROSSINGS {
            return Err(NoWay::TooMany);
        }
        let delay = there
            .iter()
            .chain(&back)
            .fold(0_u64, |sum, link| sum.saturating_add(self.links[*link as usize].delay.as_nanos()));
        let delay = Duration::from_nanos(delay);
        Ok(RoundTripRoute { there: there.into(), others: others.into(), back: back.into(), delay })
    }

    /// The links between consecutive stops; or the pair without one.
    fn walk(&self, stops: impl Iterator<Item = LinkEnd>) -> Result<Vec<u32>, (LinkEnd, LinkEnd)> {
        let mut links = Vec::new();
        let mut stops = stops.peekable();
        while let (Some(at), Some(next)) = (stops.next(), stops.peek()) {
            if self.is_attached(at, *next) || self.is_attached(*next, at) {
                continue;
            }
            links.push(*self.hops.get(&(at, *next)).ok_or((at, *next))?);
        }
        Ok(links)
    }

    fn is_attached(&self, node: LinkEnd, router: LinkEnd) -> bool {
        match (node, router) {
            (LinkEnd::Node(node), LinkEnd::Router(router)) => self.ends.nodes[node as usize].router == Some(router),
            _ => false,
        }
    }

    /// The routers on the shortest path; of equal delays the fewest links, then the first in the file. With ECMP those
    /// of all paths of equal cost, except others between the same two routers.
    fn shortest(&mut self, from: u32, to: u32) -> Option<Vec<Vec<LinkEnd>>> {
        let mut best: Option<(Cost, u32, u32)> = None; // cost, first and last router
        for (first, enter) in self.access(from, true) {
            self.grow(first);
            for (last, leave) in self.access(to, false) {
                let way = add(add(self.trees[&first][last as usize].cost, enter), leave);
                if way < best.map_or(NEVER, |(cost, ..)| cost) {
                    best = Some((way, first, last));
                }
            }
        }
        let direct = self.hops.get(&(LinkEnd::Node(from), LinkEnd::Node(to)));
        if let Some(direct) = direct
            && (self.links[*direct as usize].delay.as_nanos(), 1) <= best.map_or(NEVER, |(cost, ..)| cost)
        {
            return Some(vec![Vec::new()]);
        }
        let (_, first, last) = best?;
        if self.ecmp.is_some() {
            let mut all = Vec::new();
            self.equal(first, last, &mut vec![last], &mut all);
            return Some(all);
        }
        let mut is_tied = false;
        let mut routers = vec![LinkEnd::Router(last)];
        let mut at = last;
        while at != first {
            let leg = self.trees[&first][at as usize];
            is_tied |= leg.is_tied;
            let link = &self.links[leg.link as usize];
            routers.push(link.from);
            match link.from {
                LinkEnd::Router(router) => at = router,
                LinkEnd::Node(_) => break,
            }
        }
        if is_tied {
            self.tied.get_or_insert((from, to));
        }
        routers.reverse();
        Some(vec![routers])
    }

    /// Adds all shortest paths from the root `first` to `at`, of which `after` are the routers from there on, last
    /// first; at most [`MAX_PATHS`].
    fn equal(&self, first: u32, at: u32, after: &mut Vec<u32>, all: &mut Vec<Vec<LinkEnd>>) {
        if at == first {
            all.push(after.iter().rev().map(|router| LinkEnd::Router(*router)).collect());
            return;
        }
        let tree = &self.trees[&first];
        let mut seen = Vec::new();
        for (link, before) in &self.inward[at as usize] {
            let cost = add(tree[*before as usize].cost, (self.links[*link as usize].delay.as_nanos(), 1));
            if cost == tree[at as usize].cost && cost != NEVER && all.len() < MAX_PATHS && !seen.contains(before) {
                seen.push(*before);
                after.push(*before);
                self.equal(first, *before, after, all);
                after.pop();
            }
        }
    }

    /// The routers next to a node with the cost between them, in the direction into (or out of) the network.
    fn access(&self, node: u32, is_entry: bool) -> Vec<(u32, Cost)> {
        let links = if is_entry { &self.entries[node as usize] } else { &self.exits[node as usize] };
        let attached = self.ends.nodes[node as usize].router.map(|router| (router, (0, 0)));
        let linked = links.iter().filter_map(|link| {
            let link = &self.links[*link as usize];
            match if is_entry { link.to } else { link.from } {
                LinkEnd::Router(router) => Some((router, (link.delay.as_nanos(), 1))),
                LinkEnd::Node(_) => None,
            }
        });
        attached.into_iter().chain(linked).collect()
    }

    /// Dijkstra's paths from one router to all.
    fn grow(&mut self, root: u32) {
        /// Maximum number of tree entries that are kept.
        const KEPT: usize = 1 << 23;
        if self.trees.contains_key(&root) {
            return;
        }
        if (self.trees.len() + 1) * self.onward.len() > KEPT {
            self.trees.clear();
        }
        let mut legs = vec![RouteEnd { cost: NEVER, link: NOTHING, is_tied: false }; self.onward.len()];
        legs[root as usize].cost = (0, 0);
        let mut open = BinaryHeap::from([Reverse(((0, 0), root))]);
        while let Some(Reverse((cost, at))) = open.pop() {
            if cost > legs[at as usize].cost {
                continue;
            }
            for (link, next) in &self.onward[at as usize] {
                let further = add(cost, (self.links[*link as usize].delay.as_nanos(), 1));
                let leg = &mut legs[*next as usize];
                if further < leg.cost {
                    *leg = RouteEnd { cost: further, link: *link, is_tied: false };
                    open.push(Reverse((further, *next)));
                } else if further == leg.cost && leg.link != NOTHING && leg.link != *link {
                    leg.is_tied = true;
                }
            }
        }
        self.trees.insert(root, legs);
    }
}

fn add(a: Cost, b: Cost) -> Cost {
    if a == NEVER { NEVER } else { (a.0.saturating_add(b.0).min(u64::MAX - 1), a.1.saturating_add(b.1)) }
}

/// The reason why a session has no path, with a hint.
pub(crate) fn no_way(reader: &TableReader<'_>, paths: &Routes<'_>, no_way: &NoWay, from: u32, to: u32) -> Mistake {
    let name = |end| quoted(paths.name(end));
    let (source, sink) = (name(LinkEnd::Node(from)), name(LinkEnd::Node(to)));
    match *no_way {
        NoWay::There => reader.wrong(
            format!("no links connect {source} to {sink}"),
            "attach both nodes with router = ..., or by [[link]], and join their routers",
        ),
        NoWay::Hop(a, b) => reader.wrong(
            format!("its path has no link from {} to {}", name(a), name(b)),
            format!("add a [[link]] from {} to {}", name(a), name(b)),
        ),
        NoWay::Back(a, b) => reader.wrong(
            format!("the way back has no link from {} to {}", name(a), name(b)),
            "acknowledgements take the same routers backwards: add that [[link]], or duplex = true",
        ),
        NoWay::TooMany => reader.wrong(
            format!("the sessions up to this one cross more than {} links in total", limits::CROSSINGS),
            "use fewer sessions, or shorter paths",
        ),
    }
}
