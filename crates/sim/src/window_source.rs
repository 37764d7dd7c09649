//! The source that acknowledgements drive: its construction, and its part of the loop.

use fairwave_scenario::{LossKind, Scenario, SessionSpec, TraceKind, random};
use fairwave_schemes::scheme::{Options, Scheme, SchemeKind};
use fairwave_schemes::session::tcp_options::{
    DELAYED_ACK, IDLE_RESTART, INITIAL_RTO, MAX_BURST, MAX_WINDOW, MIN_RTO, PACING, PRR, RACK, SACK, SEND_JITTER, UNDO,
};
use fairwave_schemes::session::{MarkResponse, WindowConfig, led_controller};
use fairwave_units::Duration;

use crate::delayed_ack::MAX_DELAY;
use crate::error::SimError;
use crate::event::SimEvent;
use crate::flow::{AckBlocks, FlowOptions};
use crate::gtp::GtpHosts;
use crate::kind::{NewSession, SourceKind};
use crate::packet::SimPacket;
use crate::route::link_rule;
use crate::rtt::MinRto;
use crate::sender::{Next, Repair, SenderConfig, TimerOutcome, WindowSender};
use crate::transit::Transit;

/// Runs every rule that is a `CongestionController`.
pub(crate) const KIND: SourceKind =
    SourceKind { refuse: refuse_unled, ..SourceKind::new(|scheme| scheme.controller.is_some(), add) };

fn add(transit: &mut Transit<'_>, _: &GtpHosts, new: &NewSession<'_>) -> Result<(), SimError> {
    let NewSession { scenario, session, choice, size_packets, data_bytes, .. } = *new;
    let (max_window_packets, offer) = new.limits();
    let sack = choice.scheme.read(&SACK, &choice.options).unwrap_or(false);
    let is_on = |option| choice.scheme.read(option, &choice.options).unwrap_or(false);
    let repair = Repair { prr: is_on(&PRR), rack: is_on(&RACK), undo: is_on(&UNDO) };
    if !sack && (repair.prr || repair.rack) {
        let (session, scheme) = (session.name.clone(), choice.scheme.name);
        let hint = "set sack = true, or omit prr and rack";
        return Err(SimError::Incomplete { session, scheme, what: "selective acknowledgements for prr or rack", hint });
    }
    let is_led = choice.scheme.kind == SchemeKind::Link;
    let mut options = choice.options.clone();
    if is_led && max_window_packets < u64::MAX {
        // The links' grants beyond the usable window are not saved up.
        MAX_WINDOW.set(&mut options, Some(max_window_packets));
    }
    let dither_packets = random::stream(scenario.seed, &format!("dither {}", session.name)).unit();
    let controller = led_controller(choice.scheme.name, &options, dither_packets)
        .map_err(|problem| SimError::Options { session: session.name.clone(), problem })?;
    // Schemes whose links or whose model set their window restart by these.
    let restarts =
        !is_led && !controller.takes_samples() && choice.scheme.read(&IDLE_RESTART, &options).unwrap_or(false);
    let restart_window_packets = restarts.then(|| WindowConfig::from_options(&options).initial_window_packets);
    let config = SenderConfig {
        sack,
        max_window_packets,
        min_rto: min_rto(choice.scheme, &options),
        initial_rto: initial_rto(choice.scheme, &options),
        restart_window_packets,
        size_packets,
        pacing: choice.scheme.read(&PACING, &options).unwrap_or(false),
        packet_bytes: data_bytes,
        repair,
        max_ack_delay: if DELAYED_ACK.of(&options) { MAX_DELAY } else { Duration::ZERO },
    };
    let flow_options = FlowOptions {
        max_burst: MAX_BURST.of(&options).unwrap_or(u64::MAX),
        delayed_ack: DELAYED_ACK.of(&options),
        blocks: match sack {
            false => AckBlocks::None,
            true if repair.rack || repair.undo => AckBlocks::SackAndDuplicate,
            true => AckBlocks::Sack,
        },
        is_headed: is_led || (controller.mark_response() != MarkResponse::None && has_marks(scenario)),
    };
    let sender = WindowSender::new(controller, config);
    let flow = transit.add_session(sender.into(), new.bytes(), offer, new.active(), flow_options);
    let most = SEND_JITTER.of(&options);
    if !most.is_zero() {
        let stream = random::stream(scenario.seed, &format!("jitter {}", session.name));
        transit.add_jitter(flow, most, stream);
    }
    Ok(())
}

/// Whether any queue sets congestion marks: only then packets are ECN-capable.
fn has_marks(scenario: &Scenario) -> bool {
    let nodes = scenario.nodes.iter().map(|node| (node.discipline, node.aqm));
    let mut all = nodes.chain(scenario.links.iter().map(|link| (link.discipline, link.aqm)));
    all.any(|(discipline, aqm)| discipline.is_some_and(|discipline| aqm.marks(discipline)))
}

/// The bound of a scheme's time-out, as set or by default.
pub(crate) fn min_rto(scheme: &Scheme, options: &Options) -> MinRto {
    match scheme.read(&MIN_RTO, options).flatten() {
        Some(least) => MinRto::Whole(least),
        // Linux 6 tcp_rtt_estimator: the variation is at least TCP_RTO_MIN, HZ / 5.
        None => MinRto::BeyondRtt(Duration::from_millis(200)),
    }
}

/// The time-out of a scheme before its first round-trip time, as set or by default.
pub(crate) fn initial_rto(scheme: &Scheme, options: &Options) -> Duration {
    scheme.read(&INITIAL_RTO, options).unwrap_or_else(|| INITIAL_RTO.of(options))
}

/// A session that follows links has to cross one with a rule: otherwise its header would never be filled in, and hold
/// it at its first window.
fn refuse_unled(scenario: &Scenario, session: &SessionSpec) -> Result<(), SimError> {
    let scheme = scenario.scheme_of(session).scheme;
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
    // The XCP family shares a header: each may cross the others' links.
    if rules.any(|other| other == rule || (other.ends_with("xcp") && rule.ends_with("xcp"))) {
        return Ok(());
    }
    needs(
        "a link on its way that runs its rule",
        "name it at a link, or at a node, of finite capacity: discipline = ...",
    )
}

/// Sends all that window, application and pacer allow.
pub(crate) fn send(transit: &mut Transit<'_>, index: u32) {
    let now = transit.now();
    for burst in 0_u64.. {
        let flow = &mut transit.flows[index];
        let Some(sender) = flow.source.sender_mut() else { return };
        let offered = flow.offer.as_mut().is_none_or(|offer| offer.has_packet(now, flow.data_bytes));
        if burst == flow.options.max_burst {
            sender.end_burst(offered);
            break;
        }
        let (number, what) = match sender.poll_send(now, offered) {
            None => break,
            Some(Next::New(number)) => {
                if let Some(offer) = &mut flow.offer {
                    offer.take(flow.data_bytes);
                }
                (number, TraceKind::Sent)
            }
            Some(Next::Again(number)) => {
                flow.counts.resent += 1;
                (number, TraceKind::Resent)
            }
        };
        transit.send(index, number, what);
    }
    arm(transit, index);
    await_offer(transit, index);
}

/// If only the application limits the flow: schedules an event for its next packet.
fn await_offer(transit: &mut Transit<'_>, index: u32) {
    let now = transit.now();
    let flow = &mut transit.flows[index];
    let (Some(sender), Some(offer)) = (flow.source.sender(), &mut flow.offer) else { return };
    // An application without remaining data needs no event.
    if sender.window_limited || sender.has_sent_all() || offer.is_waiting {
        return;
    }
    if let Some(at) = offer.next_packet(now, flow.data_bytes) {
        offer.is_waiting = true;
        transit.agenda.schedule(at, SimEvent::Offer(index));
    }
}

/// Schedules the timer event and the pacer's if they are needed and not pending.
fn arm(transit: &mut Transit<'_>, index: u32) {
    let flow = &mut transit.flows[index];
    let Some(sender) = flow.source.sender_mut() else { return };
    let paced = sender.arm_pace();
    if let Some(deadline) = sender.deadline() {
        transit.arm_at(index, deadline);
    }
    if let Some(at) = paced {
        transit.agenda.schedule(at, SimEvent::Pace(index));
    }
}

/// The retransmission timer fires, perhaps too early.
pub(crate) fn on_timer(transit: &mut Transit<'_>, index: u32) {
    let now = transit.now();
    let flow = &mut transit.flows[index];
    let Some(sender) = flow.source.sender_mut() else { return };
    let expiry = sender.on_timer(now);
    flow.counts.timeouts += u64::from(matches!(expiry, TimerOutcome::Cut | TimerOutcome::Again));
    match expiry {
        TimerOutcome::Cut => flow.losses.push((now, LossKind::Timeout)),
        TimerOutcome::Lost => flow.losses.push((now, LossKind::Loss)),
        TimerOutcome::Moved | TimerOutcome::Again | TimerOutcome::Early => {}
    }
    if expiry == TimerOutcome::Moved {
        arm(transit, index);
    } else {
        send(transit, index);
    }
}

/// The pacer releases the next packet.
pub(crate) fn on_pace(transit: &mut Transit<'_>, index: u32) {
    let now = transit.now();
    if let Some(sender) = transit.flows[index].source.sender_mut()
        && sender.on_pace(now)
    {
        send(transit, index);
    }
}

/// An acknowledgement arrives.
pub(crate) fn arrive(transit: &mut Transit<'_>, packet: SimPacket) {
    let now = transit.now();
    let flow = &mut transit.flows[packet.flow];
    flow.counts.acks_arrived += 1;
    let (header, plain) = transit.contents.headers.take(packet.kind);
    let blocks = transit.contents.blocks.take(plain).unwrap_or_default();
    let Some(sender) = flow.source.sender_mut() else { return };
    if let Some(delays) = &mut flow.delays {
        delays.on_ack(now, packet.stamp);
    }
    if let Some(header) = header {
        sender.on_header(header);
    }
    if sender.on_ack(now, packet.number, &blocks, packet.stamp) {
        flow.losses.push((now, LossKind::Loss));
    } else if sender.marks.has_cut {
        flow.losses.push((now, LossKind::Mark));
    }
    if let Some(header) = header {
        sender.on_feedback(now, header);
    }
    send(transit, packet.flow);
    transit.flows.free_if_over(packet.flow);
}
