//! `fairwave status` and `fairwave why`.

use std::fmt::Write as _;

use fairwave_host::machine::{MachineSnapshot, RowSnapshot, UserSnapshot};
use fairwave_host::{
    Carrier, LimitedBy, PathStatus, ProcessStatus, SessionStatus, TransferStatus, runtime_dir, statuses,
};
use serde::Serialize;

use crate::common::failure::{CommandFailure, Done};
use crate::common::output::print_json;
use crate::common::quantity::{rate, size};
use crate::common::table::{TextTable, shortened};
use crate::common::terminal::{self, BOLD, DIM, paint, print};
use crate::machine::overview::{DaemonEntry, NodeEntry, machine, nodes, text as machine_text};
use crate::machine::shared_node::{self, SharedNode, node_of};

/// Show this user's sessions, with their rates and what limits each.
///
/// If a daemon runs (`fairwave daemon`), the machine's end node comes first: its capacity, the use by all sessions of
/// all processes, and the distance from max-min. Of other users only totals are shown. Rates are of IP packets, as end
/// nodes count them: measured, expected (granted by the end node), target (where the end node steers the session) and
/// desired (the --limit).
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave status
  fairwave status --json")]
pub(crate) struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Explain what limits a session, with the numbers behind it.
///
/// A session is limited by one of: this end's node, the peer's node or limits, --limit, the disk here, the peer's disk,
/// a comparison (--check), the path, a silent peer, the circuit breaker of a dedicated path, the amount that the sink
/// requests at a time, or a lack of data to send. Next come the path's properties (RTT, loss, queues, marks, delivery
/// rate) and what to type to improve it. If a daemon runs (`fairwave daemon`), the output includes the session's end
/// node, its capacity and the sessions that share it. Without SESSION, all sessions of this user are explained, and
/// those of other processes that the daemon shows to this user.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave why
  fairwave why 3f2a --json")]
pub(crate) struct WhyArgs {
    /// First digits of the session's ID in `fairwave status` [default: all sessions]
    session: Option<String>,
    /// Print JSON, one object per session
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct StatusListing<'a> {
    /// The end node of this machine that is used most; none without a daemon.
    node: Option<&'a NodeEntry<'a>>,
    nodes: &'a [NodeEntry<'a>],
    /// Cost of the daemon; `None` without one.
    daemon: Option<DaemonEntry>,
    /// The daemon's rows of the sessions that this user may see, each by its direction.
    sessions: &'a [RowSnapshot],
    users: &'a [UserSnapshot],
    processes: &'a [ProcessStatus],
}

#[derive(Serialize)]
struct Reason<'a> {
    session: &'a str,
    pid: u32,
    limited_by: Option<LimitedBy>,
    because: &'a str,
    advice: Option<&'a str>,
    rate_bps: f64,
    source_expected_bps: Option<f64>,
    sink_expected_bps: Option<f64>,
    desired_bps: Option<f64>,
    path_rate_bps: Option<f64>,
    rtt_s: Option<f64>,
    path: PathStatus,
    waits_for: Option<&'a str>,
    /// The end node of this machine that the session crosses; none without a daemon.
    node: Option<&'a SharedNode<'a>>,
}

pub(crate) fn run(args: &Args) -> Done {
    show(args.json, "", None)
}

/// Prints the status of all processes, preceded by `before`, within this many columns if given.
pub(crate) fn show(is_json: bool, before: &str, columns: Option<usize>) -> Done {
    let machine = machine();
    let processes = processes()?;
    if is_json {
        let none = MachineSnapshot::default();
        let shown = machine.as_ref().unwrap_or(&none);
        let nodes = nodes(shown);
        let (sessions, users) = (&shown.sessions, &shown.users);
        return print_json(&StatusListing {
            node: nodes.first(),
            nodes: &nodes,
            daemon: machine.as_ref().map(DaemonEntry::of),
            sessions,
            users,
            processes: &processes,
        });
    }
    let machine = machine.map_or_else(String::new, |machine| machine_text(&machine) + "\n");
    print(&format!("{before}{machine}{}", text(&processes, columns)))
}

pub(crate) fn why(args: &WhyArgs) -> Done {
    let machine = machine().unwrap_or_default();
    let processes = processes()?;
    let others = shared_node::of_others(&machine, &processes);
    let others: Vec<_> = others.into_iter().filter(|row| is_meant(args, &row.id)).collect();
    let of = |process| all_of(process).map(move |session| (process, session));
    let all = processes.iter().flat_map(of);
    let found: Vec<_> = all.filter(|(_, session)| is_meant(args, &session.id)).collect();
    if let (Some(name), [], []) = (&args.session, found.as_slice(), others.as_slice()) {
        return Err(CommandFailure::usage(
            format!("why: no session ID starts with \"{}\"", name.escape_debug()),
            "run `fairwave status` for a list",
        ));
    }
    if args.json {
        for (process, session) in &found {
            let node = shared_node(&machine, process, session);
            print_json(&Reason { node: node.as_ref(), ..reason(process, session) })?;
        }
        return others
            .iter()
            .try_for_each(|row| print_json(&reason_of_row(row, shared_node::explanation(&machine, row).1.as_ref())));
    }
    if found.is_empty() && others.is_empty() {
        return print("no sessions\n");
    }
    let said = found.iter().map(|(process, session)| {
        let node = shared_node(&machine, process, session);
        explanation(process, session) + &node.as_ref().map_or_else(String::new, shared_node::lines)
    });
    let seen = others.iter().map(|row| shared_node::explanation(&machine, row).0);
    let texts: Vec<_> = said.chain(seen).collect();
    print(&texts.join("\n"))
}

fn is_meant(args: &WhyArgs, id: &str) -> bool {
    args.session.as_ref().is_none_or(|start| id.starts_with(&start.to_ascii_lowercase()))
}

fn shared_node<'a>(
    machine: &'a MachineSnapshot,
    process: &ProcessStatus,
    session: &SessionStatus,
) -> Option<SharedNode<'a>> {
    node_of(machine, (process.pid, &session.id, session.is_source), session.limited_by)
}

/// The status of all processes, and messages about those that do not answer.
pub(crate) fn seen() -> Result<(Vec<ProcessStatus>, Vec<String>), CommandFailure> {
    let dir = runtime_dir().map_err(|error| CommandFailure::Run(error.to_string()))?;
    statuses(&dir).map_err(|error| CommandFailure::Run(format!("{}: {error}", dir.display())))
}

fn processes() -> Result<Vec<ProcessStatus>, CommandFailure> {
    let (processes, mute) = seen()?;
    for one in mute {
        terminal::note(&format!("a process does not respond: {one}"));
    }
    Ok(processes)
}

fn all_of(process: &ProcessStatus) -> impl Iterator<Item = &SessionStatus> {
    process.sessions.iter()
}

/// The status of all processes as text, in lines of at most this many characters if given and possible.
pub(crate) fn text(processes: &[ProcessStatus], columns: Option<usize>) -> String {
    if processes.is_empty() {
        return "no Fairwave process of this user is running\n".into();
    }
    let mut text = String::new();
    for process in processes {
        if !text.is_empty() {
            text.push('\n');
        }
        let at = process.listen.map_or(String::new(), |at| format!(" at {at}"));
        let _ = writeln!(text, "{} (process {}){at}", paint(BOLD, &process.command), process.pid);
        let _ = writeln!(text, "  {}", paint(DIM, &capacity(process)));
        if process.sessions.is_empty() {
            text += "  no sessions\n";
            continue;
        }
        text += &sessions(&process.sessions, columns);
    }
    text
}

const HEADS: [&str; 9] =
    ["session", "peer", ">rate", ">measured", ">expected", ">target", ">desired", "limited by", ">done"];
/// Columns in the order in which they are left out of narrow lines: `fairwave why` has the numbers.
const LEFT_OUT: [usize; 4] = [3, 6, 5, 4];
/// Min widths of the names of sessions and of the addresses of peers, characters.
const SHORT: [(usize, usize); 2] = [(0, 8), (1, 22)];

/// The sessions of a process as a table, with as many columns as there is room for.
fn sessions(sessions: &[SessionStatus], columns: Option<usize>) -> String {
    let rows: Vec<_> = sessions.iter().map(row).collect();
    let mut text = String::new();
    for left_out in 0..=LEFT_OUT.len() + 1 {
        let is_short = left_out > LEFT_OUT.len();
        let gone = &LEFT_OUT[..left_out.min(LEFT_OUT.len())];
        let kept: Vec<usize> = (0..HEADS.len()).filter(|column| !gone.contains(column)).collect();
        let mut table = TextTable::new(&kept.iter().map(|column| HEADS[*column]).collect::<Vec<_>>());
        for row in &rows {
            table.row(kept.iter().map(|column| match SHORT.iter().find(|(short, _)| is_short && short == column) {
                Some((_, most)) => shortened(&row[*column], *most),
                None => row[*column].clone(),
            }));
        }
        text = table.render(2);
        let widest = anstream::adapter::strip_str(&text).to_string().lines().map(|line| line.chars().count()).max();
        if columns.is_none_or(|columns| widest <= Some(columns)) {
            break;
        }
    }
    text
}

fn capacity(process: &ProcessStatus) -> String {
    let one = |bps: Option<f64>| bps.map_or_else(|| "unknown".into(), rate);
    let (send, receive) = (process.send_capacity_bps, process.receive_capacity_bps);
    let numbers = if send == receive {
        format!("capacity {}", one(send))
    } else {
        format!("capacity {} out, {} in", one(send), one(receive))
    };
    let promise = if send.is_none() || receive.is_none() { ": fair shares are not guaranteed" } else { "" };
    format!("{numbers} ({}){promise}", process.capacity_from)
}

fn row(session: &SessionStatus) -> [String; 9] {
    let optional = |bps: Option<f64>| bps.map_or_else(|| "-".into(), rate);
    let done = session.transfer.as_ref().map_or(String::new(), |transfer| match transfer.bytes_total {
        Some(0) => "100 %".into(),
        Some(total) => format!("{:.0} %", bytes_there(transfer) as f64 / total as f64 * 100.0),
        None if bytes_there(transfer) == 0 => "listing".into(),
        // The client chooses the total.
        None => size(bytes_there(transfer)),
    });
    [
        session.id.clone(),
        format!("{} {}", if session.is_source { "to" } else { "from" }, session.peer),
        rate(session.rate_bps),
        optional(session.measured_bps),
        optional(session.expected_bps),
        optional(session.target_bps),
        optional(session.desired_bps),
        session.limited_by.map_or_else(|| "-".into(), |by| by.to_string()),
        done,
    ]
}

/// Bytes as `get` shows them: with the received parts of incomplete blocks, limited to the total.
fn bytes_there(transfer: &TransferStatus) -> u64 {
    let sum = transfer.bytes_done.saturating_add(transfer.bytes_held);
    sum.min(transfer.bytes_total.unwrap_or(u64::MAX).max(transfer.bytes_done))
}

/// This end's node's grants: the source's or the sink's, depending on its role.
fn grants(session: &SessionStatus) -> [Option<f64>; 2] {
    if session.sends { [session.expected_bps, session.sink_expected_bps] } else { [None, session.expected_bps] }
}

fn reason<'a>(process: &ProcessStatus, session: &'a SessionStatus) -> Reason<'a> {
    let [source, sink] = grants(session);
    Reason {
        session: &session.id,
        pid: process.pid,
        limited_by: session.limited_by,
        because: &session.because,
        advice: session.advice.as_deref(),
        rate_bps: session.rate_bps,
        source_expected_bps: source,
        sink_expected_bps: sink,
        desired_bps: session.desired_bps,
        path_rate_bps: session.path_rate_bps,
        rtt_s: session.rtt_s,
        path: session.path,
        waits_for: session.transfer.as_ref().and_then(|transfer| transfer.waits_for.as_deref()),
        node: None,
    }
}

/// The limit of a session whose process does not answer: its report to the daemon.
fn reason_of_row<'a>(row: &'a RowSnapshot, node: Option<&'a SharedNode<'a>>) -> Reason<'a> {
    let (source, sink) =
        if row.receives { (None, Some(row.expected_bps)) } else { (Some(row.expected_bps), row.remote_bps) };
    Reason {
        session: &row.id,
        pid: row.pid,
        limited_by: row.limited_by.as_deref().and_then(|word| serde_json::from_value(word.into()).ok()),
        because: "its process reports this to the daemon",
        advice: None,
        rate_bps: row.measured_bps,
        source_expected_bps: source,
        sink_expected_bps: sink,
        desired_bps: row.desired_bps,
        path_rate_bps: row.path_rate_bps,
        rtt_s: row.rtt_s,
        path: PathStatus::default(),
        waits_for: None,
        node,
    }
}

pub(crate) fn explanation(process: &ProcessStatus, session: &SessionStatus) -> String {
    let verb = if session.is_source { "sends to" } else { "receives from" };
    let mut text = format!(
        "{} {verb} {} at {} ({}, process {})\n",
        paint(BOLD, &session.id),
        session.peer,
        rate(session.rate_bps),
        process.command,
        process.pid
    );
    let by = session.limited_by.map_or_else(|| "not limited by this end".into(), |by| format!("limited by: {by}"));
    let _ = writeln!(text, "  {by}: {}", session.because);
    // The peer of a sink knows its limit.
    let unknown = if session.is_source { "no limit" } else { "known to the peer only" };
    // A tunnel has separate congestion control.
    let is_dedicated = session.is_dedicated && session.carrier == Carrier::Udp;
    let path = if is_dedicated { "dedicated: no limit" } else { unknown };
    let disk = |limit| match &session.transfer {
        _ if session.limited_by == Some(limit) => "limits the transfer",
        Some(_) => "keeps up",
        None => "not used",
    };
    for (name, limit, bps, none) in [
        ("node", LimitedBy::Node, session.expected_bps, "no limit"),
        ("peer node", LimitedBy::PeerNode, session.sink_expected_bps, unknown),
        ("limit", LimitedBy::Limit, session.desired_bps, "not set"),
        ("disk", LimitedBy::Disk, None, disk(LimitedBy::Disk)),
        ("peer disk", LimitedBy::PeerDisk, None, disk(LimitedBy::PeerDisk)),
        ("path", LimitedBy::Path, session.path_rate_bps, path),
    ] {
        let mark = if session.limited_by == Some(limit) { "<- this" } else { "" };
        let number = bps.map_or_else(|| none.to_owned(), rate);
        let line = format!("  {name:<14} {number:<24} {mark}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    for (name, number) in of_path(session) {
        let _ = writeln!(text, "  {name:<14} {number}");
    }
    if let Some(advice) = &session.advice {
        let _ = writeln!(text, "  hint: {advice}");
    }
    text
}

/// Properties of the path, as far as this end knows them.
fn of_path(session: &SessionStatus) -> Vec<(&'static str, String)> {
    let path = &session.path;
    let ms = |seconds: f64| format!("{:.1} ms", seconds * 1e3);
    let percent = |share: f64| format!("{:.2} %", share * 100.0);
    let mut lines = Vec::new();
    if let (Some(now), Some(least)) = (session.rtt_s, path.least_rtt_s) {
        lines.push(("RTT", format!("{}, minimum {}", ms(now), ms(least))));
    }
    lines.extend(path.queueing_s.map(|queueing| ("in queues", ms(queueing))));
    let all = path.loss_share_all.map_or_else(String::new, |all| format!(", {} since the start", percent(all)));
    lines.extend(
        path.loss_share.map(|loss| ("lost", format!("{} of the last {:.0} s{all}", percent(loss), path.span_s))),
    );
    let by = path.lateness_s.map_or_else(String::new, |by| format!(" by {}", ms(by)));
    lines.extend(path.late_share.map(|late| ("late", format!("{}{by}", percent(late)))));
    lines.extend(path.marked_share.map(|marked| ("marked", percent(marked))));
    lines.extend(path.delivery_rate_bps.map(|bps| ("arrives", rate(bps))));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(peer: &str) -> ProcessStatus {
        let session = |id: &str| {
            serde_json::json!({
                "id": id, "peer": peer, "is_initiator": false, "sends": true, "receives": false, "is_source": true,
                "is_dedicated": false, "is_plain": false, "rate_bps": 1.234e9, "measured_bps": 1.234e9,
                "expected_bps": 1.5e9, "target_bps": 1.5e9, "sink_expected_bps": null, "desired_bps": 2e9,
                "path_rate_bps": 1.3e9, "limited_by": "path", "because": "the path carries 1.3 Gb/s", "rtt_s": 0.06,
                "datagram_bytes": 1400, "sent_packets": 1, "lost_packets": 0, "received_packets": 0, "silent_s": 0.0,
                "unanswered_s": 0.0, "transfer": null,
            })
        };
        serde_json::from_value(serde_json::json!({
            "version": 1, "pid": 4242, "command": "serve", "listen": "[::]:8642", "send_capacity_bps": 9.5e9,
            "receive_capacity_bps": 9.5e9, "capacity_from": "95 % of eth0's speed",
            "sessions": [session("20ab5c64505c0000"), session("20ab5c64505c0001")],
        }))
        .unwrap()
    }

    fn lines(text: &str) -> Vec<String> {
        anstream::adapter::strip_str(text).to_string().lines().map(str::to_owned).collect()
    }

    #[test]
    fn text__counts_what_came_of_a_block() {
        let mut process = process("192.0.2.7:50000");
        for (bytes_total, done) in [(Some(3_000_000), "75 %"), (None, "2.2 MB")] {
            process.sessions[0].transfer = serde_json::from_value(serde_json::json!({
                "files_total": 1, "files_done": 0, "files_failed": 0, "bytes_total": bytes_total,
                "bytes_done": 2_000_000, "bytes_held": 250_000, "waits_for": null,
            }))
            .unwrap();
            let text = text(std::slice::from_ref(&process), None);
            assert!(lines(&text).iter().any(|line| line.trim_end().ends_with(done)), "{text}");
        }
    }

    #[test]
    fn explanation__of_a_tunnel_has_no_dedicated_path() {
        let mut process = process("192.0.2.7:50000");
        let mut path = |carrier| {
            let session = &mut process.sessions[0];
            (session.is_dedicated, session.is_source, session.path_rate_bps) = (true, false, None);
            (session.carrier, session.limited_by) = (carrier, None);
            let text = explanation(&process, &process.sessions[0]);
            lines(&text).into_iter().find(|line| line.starts_with("  path "))
        };
        assert_eq!(path(Carrier::Udp).as_deref(), Some("  path           dedicated: no limit"));
        assert_eq!(path(Carrier::Tcp).as_deref(), Some("  path           known to the peer only"));
    }

    #[test]
    fn text__fits_into_the_columns_that_there_are() {
        for (peer, heads) in [
            ("192.0.2.7:50000", "  session           peer"),
            ("[2001:db8:1111:2222:3333:4444:5555:6666]:50000", "  session   peer"),
        ] {
            let all = lines(&text(&[process(peer)], None));
            assert!(all.iter().any(|line| line.contains("desired") && line.chars().count() > 80), "{all:#?}");
            let narrow = lines(&text(&[process(peer)], Some(80)));
            assert!(narrow.iter().all(|line| line.chars().count() <= 80), "{narrow:#?}");
            assert!(narrow[2].starts_with(heads) && narrow[2].contains("limited by"), "{narrow:#?}");
        }
        // With enough room, all columns are shown.
        let process = process("192.0.2.7:50000");
        assert_eq!(text(std::slice::from_ref(&process), Some(200)), text(&[process], None));
    }
}
