//! From a scenario to a run.

use std::collections::BTreeMap;

use fairwave_scenario::{DemandBy, Discipline, MeanWindow, Run, Scenario, Session, Settings};
use fairwave_scenario::{node_rule, random};
use fairwave_schemes::scheme::{Kind, Model, OptionValue, Options, Scheme, schemes};
use fairwave_schemes::session::{RuleError, led_controller};
use fairwave_units::{Duration, Rate, Time};
use thiserror::Error;

use crate::background;
use crate::constant::Constant;
use crate::flow::{FlowOptions, Source};
use crate::gtp;
use crate::log::Log;
use crate::offer::Offer;
use crate::rbudp::{RbudpConfig, RbudpSession};
use crate::report;
use crate::route::{self, link_rule};
use crate::rtt::MinRto;
use crate::sender::{Sender, SenderConfig};
use crate::simulator::Simulator;
use crate::udt::{UdtSession, UdtSetup};

/// Why a scenario cannot be run packet by packet. What would do instead is [`SimError::hint`].
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SimError {
    /// The scheme has no packet form in this version.
    #[error("scheme \"{scheme}\" of session \"{session}\" does not run in the packet model")]
    Scheme {
        /// The scheme.
        scheme: &'static str,
        /// The first session that runs it.
        session: Box<str>,
    },
    /// The options of a scheme contradict each other.
    #[error("session \"{session}\": {problem}")]
    Options {
        /// The first session that has them.
        session: Box<str>,
        /// What is wrong.
        problem: RuleError,
    },
    /// Two sessions of one node ask its host to run different rules.
    #[error(
        "node \"{node}\" would have to run two rules: session \"{first}\" asks for {first_rule}, session \"{second}\" for \
         {second_rule}"
    )]
    Mixed {
        /// The node.
        node: Box<str>,
        /// A session.
        first: Box<str>,
        /// Its scheme and options.
        first_rule: String,
        /// Another session there.
        second: Box<str>,
        /// Its scheme and options.
        second_rule: String,
    },
    /// A key has no effect in the packet model of this version.
    #[error("{what} has no effect in the packet model of this version")]
    Unsupported {
        /// The thing and the key.
        what: String,
        /// What would do.
        hint: &'static str,
    },
    /// A session says too little for its scheme.
    #[error("session \"{session}\" needs {what} to run \"{scheme}\"")]
    Incomplete {
        /// The session.
        session: Box<str>,
        /// Its scheme.
        scheme: &'static str,
        /// What is missing.
        what: &'static str,
        /// What to write.
        hint: &'static str,
    },
    /// Nothing limits a session.
    #[error("{0}")]
    Unlimited(String),
}

impl SimError {
    /// What would do instead, for people.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Scheme { .. } => format!("the packet model runs {}", runs()),
            Self::Mixed { .. } => node_rule::SAME_RULE_HINT.to_owned(),
            Self::Unsupported { hint, .. } | Self::Incomplete { hint, .. } => (*hint).to_owned(),
            Self::Options { .. } | Self::Unlimited(_) => return None,
        })
    }
}

/// Runs a scenario to its end. The outcome is a function of scenario and settings, to the last bit.
pub fn simulate(scenario: &Scenario, settings: Settings<'_>) -> Result<Run, SimError> {
    run(scenario, settings, false)
}

/// The same with one pending event a packet: slower, and plainly in order. What tests compare with.
#[doc(hidden)]
pub fn simulate_naive(scenario: &Scenario, settings: Settings<'_>) -> Result<Run, SimError> {
    run(scenario, settings, true)
}

fn run(scenario: &Scenario, settings: Settings<'_>, is_naive: bool) -> Result<Run, SimError> {
    let Settings { record, window, progress, trace } = settings;
    let mut unheard = |_| {};
    let progress = progress.unwrap_or(&mut unheard);
    refuse_unsupported(scenario)?;
    let end = scenario.end();
    let MeanWindow { from, to, closes_early } = MeanWindow::of(scenario, window);
    let network = route::build(scenario, (from, to));
    let mut simulator = Simulator::new(network, is_naive);
    simulator.observer = trace;
    let hosts = gtp::hosts(&mut simulator, scenario)?;
    for session in &scenario.sessions {
        add(&mut simulator, scenario, session, &hosts)?;
    }
    if closes_early {
        simulator.close_with_the_last_of(scenario.sessions.iter().filter(|session| session.start < end).count());
    }
    background::add(&mut simulator, scenario);
    simulator.arm_links();
    let mut log = Log::new(record);
    let mut at = Time::ZERO;
    while at < end {
        at = at.saturating_add(scenario.sample).min(end);
        simulator.run_until(at, progress);
        log.read(&simulator);
        progress(at);
    }
    simulator.count_in_flight();
    report::report(scenario, &simulator, &log, &report::Asked { window: (from, to), record }, progress)
}

fn add(
    simulator: &mut Simulator<'_>,
    scenario: &Scenario,
    session: &Session,
    hosts: &BTreeMap<u32, u32>,
) -> Result<(), SimError> {
    let choice = scenario.scheme_of(session);
    let options = &choice.options;
    let bytes = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    let header = scenario.packet.header.get() + choice.scheme.ack_header.get();
    let data_bytes = bytes(scenario.packet.on_link(choice.scheme).get());

    let size_packets = session.size.map_or(u64::MAX, |size| size.get().div_ceil(scenario.packet.payload.get().max(1)));
    let active = (session.start, session.stop);
    if choice.scheme.name == "cbr" {
        let source = Source::Constant(Constant::new(&session.demand, session.stop, size_packets));
        simulator.add_flow(source, [data_bytes, 0], None, active, FlowOptions::default());
        return Ok(());
    }
    if gtp::is_gtp(choice.scheme) {
        gtp::add(simulator, scenario, session, hosts, [data_bytes, bytes(header)]);
        return Ok(());
    }
    if choice.scheme.name == "rbudp" {
        let source = Source::Rated(Box::new(rbudp(session, size_packets, [data_bytes, bytes(header)])?));
        simulator.add_flow(source, [data_bytes, bytes(header)], None, active, FlowOptions::default());
        return Ok(());
    }
    let mut max_window_packets = match options.get("max_window") {
        Some(OptionValue::Packets(packets)) => packets,
        _ => u64::MAX,
    };
    let mut offer = None;
    match session.demand_by {
        DemandBy::Application => offer = Offer::new(&session.demand, session.start),
        DemandBy::Window => {
            if let Some(rate) = session.demand.at(session.start) {
                let packets = rate.as_bps() * session.rtt.as_secs_f64() / (f64::from(data_bytes) * 8.0);
                max_window_packets = max_window_packets.min((packets.round() as u64).max(1));
            }
        }
    }
    let sack = choice.scheme.value(options, "sack") == Some(OptionValue::Flag(true));
    if choice.scheme.name == "udt" {
        let setup = UdtSetup {
            size_packets,
            max_window_packets: max_window_packets.min(options.packets("max_window").unwrap_or(UDT_WINDOW)),
            data_bytes,
            message_bytes: bytes(header),
            offer,
            stream: random::stream(scenario.seed, &format!("udt {}", session.name)),
        };
        let source = Source::Rated(Box::new(UdtSession::new(setup, session.start)));
        simulator.add_flow(source, [data_bytes, bytes(header)], None, active, FlowOptions::default());
        return Ok(());
    }
    let is_headed = choice.scheme.kind == Kind::Link;
    let mut options = options.clone();
    if is_headed && max_window_packets < u64::MAX {
        // What the links grant beyond the window that can be used is not saved up.
        options.set("max_window", OptionValue::Packets(max_window_packets));
    }
    let options = &options;
    let dither_packets = random::stream(scenario.seed, &format!("dither {}", session.name)).unit();
    let controller = led_controller(choice.scheme.name, options, dither_packets).map_err(|problem| match problem {
        RuleError::Unknown(_) => SimError::Scheme { scheme: choice.scheme.name, session: session.name.clone() },
        RuleError::HighSpeedLine { .. } => SimError::Options { session: session.name.clone(), problem },
    })?;
    let config = SenderConfig {
        sack,
        max_window_packets,
        min_rto: min_rto(choice.scheme, options),
        size_packets,
        pacing: options.flag("pacing"),
        packet_bytes: data_bytes,
    };
    let source = Source::Window(Box::new(Sender::new(controller, config)));
    let flow_options = FlowOptions {
        max_burst: options.packets("max_burst").unwrap_or(u64::MAX),
        delayed_ack: options.flag("delayed_ack"),
        sack,
        is_headed,
    };
    let flow = simulator.add_flow(source, [data_bytes, bytes(header)], offer, active, flow_options);
    if let Some(most) = options.time("send_jitter").filter(|most| !most.is_zero()) {
        let stream = random::stream(scenario.seed, &format!("jitter {}", session.name));
        simulator.add_jitter(flow, most, stream);
    }
    Ok(())
}

/// The bound of a scheme's time-out, as named or its default.
pub(crate) fn min_rto(scheme: &Scheme, options: &Options) -> MinRto {
    match scheme.value(options, "min_rto") {
        Some(OptionValue::Time(least)) => MinRto::Whole(least),
        // Linux 6 tcp_rtt_estimator: the variation is at least TCP_RTO_MIN, HZ / 5.
        _ => MinRto::BeyondRtt(Duration::from_millis(200)),
    }
}

/// The sink's buffer of a UDT session that names none, in packets.
const UDT_WINDOW: u64 = 25_600;

fn rbudp(
    session: &Session,
    size_packets: u64,
    [data_bytes, message_bytes]: [u32; 2],
) -> Result<RbudpSession, SimError> {
    let needs = |what, hint| SimError::Incomplete { session: session.name.clone(), scheme: "rbudp", what, hint };
    if session.size.is_none() {
        return Err(needs("a size", "it blasts a whole object, then what was lost of it: size = \"1 GB\""));
    }
    if session.demand.at(session.start).is_none() {
        return Err(needs("a demand", "that is the rate of its blasts: demand = \"500 Mb/s\""));
    }
    let (rate, rtt) = (session.demand.clone(), session.rtt);
    Ok(RbudpSession::new(RbudpConfig { rate, size_packets, data_bytes, message_bytes, rtt }, session.start))
}

/// The schemes that run packet by packet, for people.
fn runs() -> String {
    let names: Vec<_> =
        schemes().iter().filter(|scheme| scheme.runs_in(Model::Packet)).map(|scheme| scheme.name).collect();
    names.join(" ")
}

/// What the scenario asks for and this version does not do is an error, not a silence.
fn refuse_unsupported(scenario: &Scenario) -> Result<(), SimError> {
    for session in &scenario.sessions {
        let choice = scenario.scheme_of(session);
        if !choice.scheme.runs_in(Model::Packet) {
            return Err(SimError::Scheme { scheme: choice.scheme.name, session: session.name.clone() });
        }
        refuse_unled(scenario, session, choice.scheme)?;
        if gtp::is_gtp(choice.scheme) {
            for (key, rate) in fluid_keys(session) {
                if rate > Rate::ZERO {
                    return Err(unsupported(format!("{key} of session \"{}\"", session.name), AS_FLUID));
                }
            }
        }
    }
    let nodes = scenario.nodes.iter().map(|node| (&node.name, node.discipline));
    let links = scenario.links.iter().map(|link| (&link.name, link.discipline));
    for (name, discipline) in nodes.chain(links) {
        if let Some(discipline @ (Discipline::Gtp | Discipline::Jetmax)) = discipline {
            let hint = if discipline == Discipline::Gtp { AS_FLUID } else { "leave it out" };
            return Err(unsupported(format!("the discipline \"{}\" of \"{name}\"", discipline.name()), hint));
        }
    }
    Ok(())
}

/// A session that follows links has to cross one that leads: headers that nobody writes would hold it at its first window.
fn refuse_unled(scenario: &Scenario, session: &Session, scheme: &'static Scheme) -> Result<(), SimError> {
    let Some(rule) = link_rule(scheme) else { return Ok(()) };
    let needs =
        |what, hint| Err(SimError::Incomplete { session: session.name.clone(), scheme: scheme.name, what, hint });
    if scheme.name == "endpoint-xcp" && !scenario.is_lambda() {
        return needs("a network without [[link]]", "in a routed network, name scheme = \"xcp\"");
    }
    let (from, to) = (&scenario.nodes[session.from as usize], &scenario.nodes[session.to as usize]);
    let ends = [(from.send, from.discipline), (to.receive, to.discipline)];
    let links = session.path.iter().map(|link| &scenario.links[*link as usize]);
    let all = ends.into_iter().chain(links.map(|link| (link.capacity, link.discipline)));
    let of_scheme = link_rule(scenario.scheme.scheme);
    let mut rules = all
        .filter(|(capacity, _)| capacity.is_some())
        .filter_map(|(_, discipline)| discipline.map_or(of_scheme, |discipline| Some(discipline.name())));
    // XCP's kin share a header: each may cross the others' links.
    if rules.any(|other| other == rule || (other.ends_with("xcp") && rule.ends_with("xcp"))) {
        return Ok(());
    }
    needs(
        "a link on its way that runs its rule",
        "name it at a link, or at a node, of finite capacity: discipline = ...",
    )
}

/// Whether a scenario of node rules asks for what they have in the fluid model alone: links that run one, rates to start
/// with, guaranteed rates.
pub fn is_fluid_only(scenario: &Scenario) -> bool {
    let nodes = scenario.nodes.iter().map(|node| node.discipline);
    let mut disciplines = nodes.chain(scenario.links.iter().map(|link| link.discipline));
    let mut ruled = scenario.sessions.iter().filter(|session| gtp::is_gtp(scenario.scheme_of(session).scheme));
    disciplines.any(|discipline| discipline == Some(Discipline::Gtp))
        || ruled.any(|session| fluid_keys(session).iter().any(|(_, rate)| *rate > Rate::ZERO))
}

/// What node rules do not look at packet by packet.
fn fluid_keys(session: &Session) -> [(&'static str, Rate); 2] {
    [("initial_rate", session.initial_rate), ("minimum", session.minimum)]
}

/// What would do where the fluid model can.
const AS_FLUID: &str = "leave it out, or run it as a fluid: --model fluid";

fn unsupported(what: String, hint: &'static str) -> SimError {
    SimError::Unsupported { what, hint }
}
