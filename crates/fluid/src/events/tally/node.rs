//! The two halves of a node, or of a link that runs the rule, with their driver.

use fairwave_scenario::node_rule::TickSchedule;
use fairwave_scenario::random;
use fairwave_scenario::{Node, SchemeChoice};
use fairwave_schemes::node::tally::{DECLARED, LATE, LOSS, REACT, SinkNode, SourceNode, TallyOptions};
use fairwave_units::{Duration, Rate};

use crate::error::{FluidError, MAX_BPS};
use crate::events::mail::Mail;
use crate::plan::{FluidPlan, NONE, ResourceKind};

/// An end node, or a link between end nodes.
pub(super) struct TallyNode {
    /// The half of its sending capacity, if sessions have their source here.
    pub(super) source: Option<SourceNode>,
    /// The half of its receiving capacity, if that has a limit and sessions end here; of a link, of its capacity.
    pub(super) sink: Option<SinkNode>,
    /// The sessions with their source here.
    pub(super) sessions: Vec<u32>,
    /// The rows of the sink's half.
    pub(super) rows: std::ops::Range<usize>,
    pub(super) schedule: TickSchedule,
    /// Delay of an additional tick after news, in nanoseconds; and whether one is scheduled.
    pub(super) react: Option<u64>,
    pub(super) reacts: bool,
    /// Loss and delay of the messages that it sends.
    pub(super) mail: Mail,
}

/// The nodes and the links that run the rule; and the node that has the far half of each resource of the plan.
pub(super) fn nodes(plan: &FluidPlan<'_>) -> Result<(Vec<TallyNode>, Vec<u32>), FluidError> {
    let scenario = plan.scenario;
    let mut sessions_of = vec![Vec::new(); scenario.nodes.len()];
    for (k, session) in scenario.sessions.iter().enumerate() {
        sessions_of[session.from as usize].push(k as u32);
    }
    let mut sinks_of = vec![NONE; scenario.nodes.len()];
    let mut links = Vec::new();
    for (resource, here) in plan.resources.iter().enumerate().filter(|(_, here)| here.allocatable.is_some()) {
        match here.place {
            ResourceKind::In(node) => sinks_of[node as usize] = resource as u32,
            ResourceKind::Link(link) => links.push((link, resource as u32)),
            ResourceKind::Out(_) => {}
        }
    }
    let mut nodes = Vec::new();
    let mut keepers = vec![NONE; plan.resources.len()];
    for ((node, sessions), sink) in scenario.nodes.iter().zip(sessions_of).zip(sinks_of) {
        let first = sessions.first().copied().or_else(|| first_at(plan, sink));
        let Some(first) = first else { continue };
        if sink != NONE {
            keepers[sink as usize] = nodes.len() as u32;
        }
        nodes.push(TallyNode::new(plan, Some(node), &node.name, first, sessions, sink)?);
    }
    for (link, resource) in links {
        let Some(first) = first_at(plan, resource) else { continue };
        keepers[resource as usize] = nodes.len() as u32;
        let name = format!("link {}", scenario.links[link as usize].name);
        nodes.push(TallyNode::new(plan, None, &name, first, Vec::new(), resource)?);
    }
    Ok((nodes, keepers))
}

/// The first session that crosses a resource.
fn first_at(plan: &FluidPlan<'_>, resource: u32) -> Option<u32> {
    let rows = plan.resources.get(resource as usize)?.rows.clone();
    plan.rows[rows].first().map(|row| row.session)
}

impl TallyNode {
    fn new(
        plan: &FluidPlan<'_>,
        node: Option<&Node>,
        name: &str,
        first: u32,
        sessions: Vec<u32>,
        sink: u32,
    ) -> Result<Self, FluidError> {
        let scenario = plan.scenario;
        let choice = scenario.scheme_of(&scenario.sessions[first as usize]);
        let schedule = TickSchedule::of(scenario, node, name, choice);
        let rows = plan.resources.get(sink as usize).map_or(0..0, |resource| resource.rows.clone());
        let crossing = rows.clone().map(|row| plan.rows[row].session).chain(sessions.iter().copied());
        let largest = crossing.map(|k| scenario.sessions[k as usize].rtt).max().unwrap_or_default();
        let options = TallyOptions { interval: schedule.interval(largest), ..constants(choice) };
        let what = || format!("the control interval of {name}");
        below(options.interval, &options, 16, "a sixteenth", what)?;
        // A node without a limit shares the maximum of the model.
        let send = node.map(|node| node.send.unwrap_or(Rate::nearest_bps(MAX_BPS)));
        let source = send.filter(|_| !sessions.is_empty()).map(|rate| SourceNode::new(rate, options));
        let receive = plan.resources.get(sink as usize).and_then(|resource| resource.allocatable);
        Ok(Self {
            source,
            sink: receive.map(|rate| SinkNode::new(rate, options)),
            sessions,
            rows,
            schedule,
            react: REACT.of(&choice.options).map(Duration::as_nanos),
            reacts: false,
            mail: Mail::new(
                LOSS.of(&choice.options),
                LATE.of(&choice.options),
                random::stream(scenario.seed, &format!("messages of {name}")),
            ),
        })
    }
}

/// Whether the demands of a session are declared to its source.
pub(super) fn declares(plan: &FluidPlan<'_>, k: usize) -> bool {
    DECLARED.of(&plan.scenario.scheme_of(&plan.scenario.sessions[k]).options)
}

/// The constants of the rule with these options.
pub(super) fn constants(choice: &SchemeChoice) -> TallyOptions {
    let exchange = choice.scheme.node.and_then(|rule| rule.exchange);
    exchange.map_or_else(TallyOptions::default, |options| options(&choice.options))
}

/// The proofs about leases require delays and intervals below parts of a lease.
pub(super) fn below(
    span: Duration,
    options: &TallyOptions,
    parts: u64,
    part: &'static str,
    what: impl FnOnce() -> String,
) -> Result<(), FluidError> {
    let most = Duration::from_nanos(options.lease.as_nanos() / parts);
    if span < most { Ok(()) } else { Err(FluidError::Lease { what: what(), span, most, part, lease: options.lease }) }
}
