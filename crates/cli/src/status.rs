//! `fairwave status` and `fairwave why`.

use std::fmt::Write as _;

use fairwave_host::{LimitedBy, ProcessStatus, SessionStatus, runtime_dir, statuses};
use serde::Serialize;

use crate::Done;
use crate::failure::Failure;
use crate::output::print_json;
use crate::simulate::rate;
use crate::table::Table;
use crate::terminal::{self, BOLD, DIM, paint, print};

/// Show the sessions of all Fairwave processes of this user, with their rates and what limits each.
///
/// Rates are of IP packets, as end nodes count them: measured, expected (what the end node grants), target (where it
/// leads the session) and desired (what --limit allows).
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

/// Explain what limits a session, with the numbers that say so.
///
/// One of these holds a session: this end's node, the peer's node (or what is allowed there), --limit, the disk here, the
/// peer's disk, a comparison (--check), the path; or there is nothing to send. Without SESSION all sessions of this user's
/// processes are explained.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave why
  fairwave why 3f2a --json")]
pub(crate) struct WhyArgs {
    /// The session, by the first digits of its name in `fairwave status`
    session: Option<String>,
    /// Print JSON, one object a session
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listing<'a> {
    processes: &'a [ProcessStatus],
}

#[derive(Serialize)]
struct Reason<'a> {
    session: &'a str,
    pid: u32,
    limited_by: Option<LimitedBy>,
    because: &'a str,
    rate_bps: f64,
    source_expected_bps: Option<f64>,
    sink_expected_bps: Option<f64>,
    desired_bps: Option<f64>,
    path_rate_bps: Option<f64>,
    waits_for: Option<&'a str>,
}

pub(crate) fn run(args: &Args) -> Done {
    show(args.json, "")
}

/// Prints what all processes do now, behind `before` where that is for people.
pub(crate) fn show(is_json: bool, before: &str) -> Done {
    let processes = processes()?;
    if is_json {
        print_json(&Listing { processes: &processes })
    } else {
        print(&format!("{before}{}", text(&processes)))
    }
}

pub(crate) fn why(args: &WhyArgs) -> Done {
    let processes = processes()?;
    let of = |process| all_of(process).map(move |session| (process, session));
    let all = processes.iter().flat_map(of);
    let found: Vec<_> = match &args.session {
        None => all.collect(),
        Some(start) => all.filter(|(_, session)| session.id.starts_with(&start.to_ascii_lowercase())).collect(),
    };
    if let (Some(name), []) = (&args.session, found.as_slice()) {
        return Err(Failure::usage(
            format!("why: no session's name begins with \"{}\"", name.escape_debug()),
            "`fairwave status` lists them",
        ));
    }
    if args.json {
        return found.iter().try_for_each(|(process, session)| print_json(&reason(process, session)));
    }
    if found.is_empty() {
        return print("no sessions\n");
    }
    let texts: Vec<_> = found.iter().map(|(process, session)| explanation(process, session)).collect();
    print(&texts.join("\n"))
}

fn processes() -> Result<Vec<ProcessStatus>, Failure> {
    let dir = runtime_dir().map_err(|error| Failure::Run(error.to_string()))?;
    let (processes, mute) = statuses(&dir).map_err(|error| Failure::Run(format!("{}: {error}", dir.display())))?;
    for one in mute {
        terminal::note(&format!("a process does not answer: {one}"));
    }
    Ok(processes)
}

fn all_of(process: &ProcessStatus) -> impl Iterator<Item = &SessionStatus> {
    process.sessions.iter()
}

pub(crate) fn text(processes: &[ProcessStatus]) -> String {
    if processes.is_empty() {
        return "no Fairwave process of this user runs\n".into();
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
        let heads =
            ["session", "peer", ">rate", ">measured", ">expected", ">target", ">desired", "limited by", ">done"];
        let mut table = Table::new(&heads);
        for session in &process.sessions {
            table.row(row(session));
        }
        text += &table.render(2);
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
    let promise = if send.is_none() || receive.is_none() { ": fair shares are not promised" } else { "" };
    format!("{numbers} ({}){promise}", process.capacity_from)
}

fn row(session: &SessionStatus) -> [String; 9] {
    let optional = |bps: Option<f64>| bps.map_or_else(|| "-".into(), rate);
    let done = session.transfer.as_ref().map_or(String::new(), |transfer| match transfer.bytes_total {
        Some(0) => "100 %".into(),
        Some(total) => format!("{:.0} %", transfer.bytes_done as f64 / total as f64 * 100.0),
        None => "listing".into(),
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

/// What this end's node grants is the source's or the sink's, as this end is one or the other.
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
        rate_bps: session.rate_bps,
        source_expected_bps: source,
        sink_expected_bps: sink,
        desired_bps: session.desired_bps,
        path_rate_bps: session.path_rate_bps,
        waits_for: session.transfer.as_ref().and_then(|transfer| transfer.waits_for.as_deref()),
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
    let _ = writeln!(text, "  {by}, since {}", session.because);
    // What a sink's peer may send is known there.
    let unknown = if session.is_source { "no limit" } else { "known at the other end" };
    let path = if session.is_dedicated { "dedicated: no limit" } else { unknown };
    let disk = |limit| match &session.transfer {
        _ if session.limited_by == Some(limit) => "the transfer waits for it",
        Some(_) => "keeps up",
        None => "not asked",
    };
    for (name, limit, bps, none) in [
        ("node", LimitedBy::Node, session.expected_bps, "no limit"),
        ("peer node", LimitedBy::PeerNode, session.sink_expected_bps, unknown),
        ("limit", LimitedBy::Limit, session.desired_bps, "none is set here"),
        ("disk", LimitedBy::Disk, None, disk(LimitedBy::Disk)),
        ("peer disk", LimitedBy::PeerDisk, None, disk(LimitedBy::PeerDisk)),
        ("path", LimitedBy::Path, session.path_rate_bps, path),
    ] {
        let mark = if session.limited_by == Some(limit) { "<- this" } else { "" };
        let number = bps.map_or_else(|| none.to_owned(), rate);
        let line = format!("  {name:<14} {number:<24} {mark}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}
