//! The file as a whole.

use std::sync::Arc;

use fairwave_schemes::scheme;
use fairwave_units::{Bytes, Duration};

use super::elements::Patches;
use super::mistake::{Mistake, ReadResult};
use super::nodes::KnownNodes;
use super::paths::{Ecmp, Routes};
use super::position::Position;
use super::reader::{DEFAULT_SCHEME, Field, TOP_KEYS, TableReader, Thing};
use super::sessions::Sessions;
use super::tree::TomlTable;
use super::{arrivals, background, generate, jitter, links, nodes, options};
use crate::{DemandBy, Link, Node, PacketSizes, Scenario, SchemeChoice, SessionSpec, limits};

/// The keys of `[packet]`.
pub(super) const PACKET_KEYS: &[&str] = &["header", "payload"];

/// Length of a run of a file that sets none.
const DEFAULT_DURATION: Duration = Duration::from_secs(60);
/// Length of a sample in a file that sets none.
const DEFAULT_SAMPLE: Duration = Duration::from_millis(100);
/// Sizes of packets in a file that sets none.
const DEFAULT_PACKET: PacketSizes = PacketSizes { payload: Bytes::new(1000), header: Bytes::new(40) };

/// A file's top-level keys, checked to be known.
pub(crate) fn top(root: &TomlTable) -> ReadResult<TableReader<'_>> {
    TableReader::new(Thing::Top, Position::File, root, TOP_KEYS)
}

/// Reads a file's table, with all changes applied.
pub(crate) fn read(
    root: &TomlTable,
    seed: u64,
    variant: Option<&str>,
    mut patches: Patches,
    notes: &mut Vec<String>,
) -> ReadResult<Scenario> {
    let top = top(root)?;
    let name = scenario_name(top.need("name", "for instance name = \"five-to-one\"")?)?;
    let title = top.read_or("title", String::new(), Field::line)?;
    let cites = top.read_or("cites", String::new(), Field::line)?;
    let duration = top.read("duration", |field| field.positive_span(limits::RUN))?.unwrap_or_else(|| {
        notes.push(format!("the file sets no duration: using {DEFAULT_DURATION}"));
        DEFAULT_DURATION
    });
    let sample = top.read_or("sample", DEFAULT_SAMPLE, |field| field.positive_span(limits::RUN))?;
    check_samples(&top, duration, sample)?;
    let scheme = Arc::new(own_scheme(&top)?);
    let packet = top.read_or("packet", DEFAULT_PACKET, packet)?;
    seed_and_runs(&top)?;
    check_network_kind(&top)?;

    let mut ends = nodes::read(root, seed, &mut patches, notes)?;
    let links = links::read(root, &ends, &mut patches, notes)?;
    patches.finish("link", links.iter().map(|link| &*link.name))?;
    let ecmp = top.read("ecmp", |field| field.word(&[("flow", Ecmp::Flow(seed)), ("packet", Ecmp::Packet)]))?;
    let mut sessions = Vec::new();
    if let Some(field) = top.get("generate") {
        (ends.nodes, sessions) = generate::read(field.item, seed, &mut patches, notes)?;
    }
    patches.finish("node", ends.nodes.iter().map(|node| &*node.name))?;
    let mut maker = Sessions::new(seed, &ends, Routes::new(&ends, &links, ecmp), sessions);
    maker.read(root, &mut patches, notes)?;
    arrivals::read(root, &mut maker, (packet, &scheme), &mut patches, notes)?;
    patches.finish("session", maker.made.iter().map(|session| &*session.name))?;
    let background = background::read(root, seed, &ends, &mut maker.paths, notes)?;
    if let Some((from, to)) = maker.paths.tied {
        notes.push(format!(
            "several shortest paths lead from \"{}\" to \"{}\": all packets take the one whose links come first in the \
             file; ecmp = \"flow\" or \"packet\" spreads them",
            ends.nodes[from as usize].name, ends.nodes[to as usize].name
        ));
    }
    let mut sessions = maker.made;
    jitter::spread_starts(&mut sessions, jitter::most(&top, duration)?, seed);
    check_network(&top, &ends, &sessions)?;
    check_window_demands(&top, packet, &scheme, &sessions)?;
    notes.extend(unanswered_marks(&scheme, &ends.nodes, &links, &sessions));
    let KnownNodes { nodes, routers, .. } = ends;
    let variant = variant.map(str::to_owned);
    Ok(Scenario {
        name,
        title,
        cites,
        variant,
        duration,
        seed,
        scheme,
        sample,
        packet,
        nodes,
        sessions,
        routers,
        links,
        background,
    })
}

/// A demand by window is a whole number of packets in flight: one below half a packet is not possible.
fn check_window_demands(
    top: &TableReader<'_>,
    packet: PacketSizes,
    scheme: &SchemeChoice,
    sessions: &[SessionSpec],
) -> ReadResult<()> {
    for session in sessions.iter().filter(|session| session.demand_by == DemandBy::Window) {
        let bits = packet.on_link(session.scheme.as_deref().unwrap_or(scheme).scheme).as_bits_f64();
        let Some(rate) = session.demand.at(session.start) else { continue };
        if rate.as_bps() * session.rtt.as_secs_f64() < bits / 2.0 {
            let least_kbps = bits / session.rtt.as_secs_f64() / 1e3;
            return Err(top.wrong(
                format!(
                    "session \"{}\": a demand of {rate} by window is less than one packet per round trip of {}, which \
                     is {least_kbps:.0} kb/s",
                    session.name, session.rtt
                ),
                "leave demand_by out: the application then offers that rate",
            ));
        }
    }
    Ok(())
}

/// A note if a queue marks packets and no session's scheme responds to marks.
fn unanswered_marks(scheme: &SchemeChoice, nodes: &[Node], links: &[Link], sessions: &[SessionSpec]) -> Option<String> {
    let at_nodes = nodes.iter().map(|node| ("node", &node.name, node.discipline, node.aqm));
    let at_links = links.iter().map(|link| ("link", &link.name, link.discipline, link.aqm));
    let mut marking = at_nodes.chain(at_links).filter_map(|(kind, name, rule, aqm)| Some((kind, name, rule?, aqm)));
    let (kind, name, discipline, _) = marking.find(|(.., discipline, aqm)| aqm.marks(*discipline))?;
    let schemes = sessions.iter().map(|session| session.scheme.as_deref().unwrap_or(scheme).scheme);
    let mut deaf: Vec<&str> = schemes.filter(|scheme| !scheme.answers_marks).map(|scheme| scheme.name).collect();
    deaf.sort_unstable();
    deaf.dedup();
    (!deaf.is_empty()).then(|| {
        format!(
            "{kind} \"{name}\" marks packets ({}), and {} does not respond to marks: its packets are not marked",
            discipline.name(),
            deaf.join(", ")
        )
    })
}

/// Length of the run and of a sample.
pub(crate) fn duration_and_sample(top: &TableReader<'_>) -> ReadResult<(Duration, Duration)> {
    let span = |key, default| top.read_or(key, default, |field| field.positive_span(limits::RUN));
    Ok((span("duration", DEFAULT_DURATION)?, span("sample", DEFAULT_SAMPLE)?))
}

/// The seed and the number of runs.
pub(crate) fn seed_and_runs(top: &TableReader<'_>) -> ReadResult<(u64, u64)> {
    let seed = top.read_or("seed", 1, |field| field.whole(0, u64::MAX))?;
    let runs = top.read_or("runs", 1, |field| field.whole(1, limits::RUNS))?;
    if seed.checked_add(runs - 1).is_none() {
        let place = top.get("seed").map_or(Position::File, |field| field.item.place);
        return Err(Mistake::new(
            place,
            format!("seed {seed} is too large for {runs} runs with consecutive seeds"),
            "choose a smaller seed",
        ));
    }
    Ok((seed, runs))
}

fn scenario_name(field: Field<'_>) -> ReadResult<String> {
    let name = field.text()?;
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || !name.bytes().all(is_plain) {
        return Err(field.wrong("must be made of a-z, 0-9 and -", "for instance name = \"five-to-one\""));
    }
    if name.len() > limits::NAME_BYTES {
        return Err(field.wrong(format!("is longer than {} bytes", limits::NAME_BYTES), "choose a shorter one"));
    }
    Ok(name.to_owned())
}

fn check_samples(top: &TableReader<'_>, duration: Duration, sample: Duration) -> ReadResult<()> {
    let samples = duration.as_nanos().div_ceil(sample.as_nanos());
    if samples <= limits::SAMPLES {
        return Ok(());
    }
    let message = format!("{duration} in samples of {sample} are {samples} samples, the limit is {}", limits::SAMPLES);
    let place = top.get("duration").or(top.get("sample")).map_or(Position::File, |field| field.item.place);
    Err(Mistake::new(place, message, "use a longer sample, for instance sample = \"10 s\""))
}

fn own_scheme(top: &TableReader<'_>) -> ReadResult<SchemeChoice> {
    let scheme = match top.get("scheme") {
        Some(field) => options::scheme(field)?,
        None => scheme::find(DEFAULT_SCHEME)
            .ok_or_else(|| top.wrong("scheme is missing", "for instance scheme = \"gtp\""))?,
    };
    let table = top.read("options", |field| field.table("[options]"))?;
    options::choice(scheme, Thing::Section("options"), table)
}

fn packet(field: Field<'_>) -> ReadResult<PacketSizes> {
    let table = field.table("[packet]")?;
    let reader = TableReader::new(Thing::Section("packet"), field.item.place, table, PACKET_KEYS)?;
    Ok(PacketSizes {
        payload: reader
            .read_or("payload", DEFAULT_PACKET.payload, |field| field.size(Bytes::new(1), limits::PACKET))?,
        header: reader.read_or("header", DEFAULT_PACKET.header, |field| field.size(Bytes::ZERO, limits::PACKET))?,
    })
}

/// A network is either generated or written out; with routers it has links.
fn check_network_kind(top: &TableReader<'_>) -> ReadResult<()> {
    if top.get("generate").is_some() {
        let written =
            ["node", "session", "arrivals", "router", "link", "background"].iter().find_map(|key| top.get(key));
        if let Some(field) = written {
            return Err(Mistake::new(
                field.item.place,
                format!("both [[{}]] and [generate]", field.key),
                "[generate] makes the whole network: remove one of them",
            ));
        }
    }
    Ok(())
}

/// Rejects a network without any activity.
fn check_network(top: &TableReader<'_>, ends: &KnownNodes, sessions: &[SessionSpec]) -> ReadResult<()> {
    const EXAMPLE: &str = "write [[node]] and [[session]], or [generate]";
    if ends.nodes.is_empty() {
        return Err(top.wrong("the network has no nodes", EXAMPLE));
    }
    if sessions.is_empty() {
        return Err(top.wrong("the network has no sessions", EXAMPLE));
    }
    Ok(())
}
