//! The tables of a run's report: sessions, what they delivered, sums by scheme, links.

use std::fmt::Write as _;

use fairwave_catalogue::picture::FEW_SESSIONS;
use fairwave_scenario::{LinkSummary, Run, SchemeSummary, SessionSummary};
use fairwave_schemes::scheme::{OptionValue, find};
use fairwave_units::{Bytes, Duration};

use crate::common::quantity::{in_ms, rate};
use crate::common::table::{TextTable, shortened};
use crate::common::terminal::{DIM, paint};

/// Max sessions or links shown in a table.
const SHOWN: usize = 4;
/// So many links are all shown.
const FEW_LINKS: usize = 6;

/// All sessions if they are few, else those with the highest rates.
fn shown(run: &Run) -> Vec<&SessionSummary> {
    let mut shown: Vec<&SessionSummary> = run.summary.sessions.iter().collect();
    if shown.len() > FEW_SESSIONS {
        shown.sort_by(|a, b| b.final_wire_rate_bps.total_cmp(&a.final_wire_rate_bps));
        shown.truncate(SHOWN);
    }
    shown
}

/// Rates of the sessions; where they run several schemes, also which one each runs, and the sums by scheme. Final rates
/// are compared with max-min, or, if capacity changes over time, those of the same seconds.
pub(super) fn sessions(run: &Run, is_changing: bool) -> String {
    let is_mixed = run.summary.schemes.len() > 1;
    let shown = shown(run);
    let which = if is_mixed { "scheme" } else { ">RTT" };
    let share = match (is_mixed, is_changing) {
        (true, _) => ">of max-min",
        (false, true) => ">mean/max-min",
        (false, false) => ">final/max-min",
    };
    let mut table = TextTable::new(&["session", which, ">mean rate", ">final rate", ">max-min rate", share]);
    for session in &shown {
        let compared_bps = if is_changing { session.wire_rate_bps } else { session.final_wire_rate_bps };
        table.row([
            shortened(&session.name, if is_mixed { 12 } else { 18 }),
            if is_mixed { session.scheme.to_owned() } else { rtt(session) },
            rate(session.wire_rate_bps),
            rate(session.final_wire_rate_bps),
            rate(session.max_min_bps),
            percent_of(compared_bps, session.max_min_bps),
        ]);
    }
    let mut text = table.render(2);
    if run.summary.sessions.len() > shown.len() {
        let rest = run.summary.sessions.len() - shown.len();
        let rest = format!("the four fastest; {rest} more sessions (--json lists all)");
        let _ = writeln!(text, "  {}", paint(DIM, &rest));
    }
    if is_mixed {
        text = text + "\n" + &schemes(run, is_changing);
    }
    text
}

/// The sums of the sessions of each scheme.
fn schemes(run: &Run, is_changing: bool) -> String {
    let heads = ["scheme", ">sessions", ">mean rate", ">final rate", ">max-min rate", ">of max-min"];
    let mut table = TextTable::new(&heads);
    for sums in &run.summary.schemes {
        let compared_bps = if is_changing { sums.wire_rate_bps } else { sums.final_wire_rate_bps };
        table.row([
            shortened(&named(sums), 16),
            sums.sessions.to_string(),
            rate(sums.wire_rate_bps),
            rate(sums.final_wire_rate_bps),
            rate(sums.max_min_bps),
            percent_of(compared_bps, sums.max_min_bps),
        ]);
    }
    table.render(2)
}

/// A scheme, with those of its options that are not its defaults.
fn named(sums: &SchemeSummary) -> String {
    let default = |name: &str| find(sums.scheme).and_then(|scheme| Some(scheme.option(name)?.default_value()));
    let option_text =
        |(name, value): &(&str, OptionValue)| (default(name) != Some(*value)).then(|| format!(" {name}={value}"));
    sums.options.0.iter().filter_map(option_text).fold(sums.scheme.to_owned(), |text, option_text| text + &option_text)
}

/// Delivered and lost data of the sessions, and their completion times: for packets, or if a session has a size.
pub(super) fn deliveries(run: &Run) -> String {
    let is_packet = run.summary.model != "fluid";
    let is_done = run.summary.sessions.iter().any(|session| session.completed_s.is_some());
    if !is_packet && !is_done {
        return String::new();
    }
    let mut heads = vec!["session", ">RTT", ">delivered"];
    heads.extend(if is_packet { &[">sent", ">lost", ">resent"][..] } else { &[] });
    heads.extend(is_done.then_some(">size"));
    heads.extend(is_done.then_some(">completed"));
    let mut table = TextTable::new(&heads);
    for session in shown(run) {
        let mut row =
            vec![shortened(&session.name, 12), rtt(session), format!("{:.2}", Bytes::new(session.delivered_bytes))];
        if is_packet {
            let counts = [session.sent_packets, session.lost_packets, session.retransmitted_packets];
            row.extend(counts.map(|packets| packets.to_string()));
        }
        if is_done {
            row.push(session.size_bytes.map_or("-".into(), |bytes| format!("{:.2}", Bytes::new(bytes))));
            row.push(session.completed_s.map_or("-".into(), |at_s| format!("at {at_s:.2} s")));
        }
        table.row(row);
    }
    format!("\n{}", table.render(2))
}

/// Completion times and slowdowns by size, if the sizes of sessions differ.
pub(super) fn completions(run: &Run) -> String {
    let buckets = &run.summary.completions;
    if buckets.is_empty() {
        return String::new();
    }
    let heads = [">size up to", ">completed", ">mean", ">p50", ">p99", ">slowdown", ">p50", ">p99"];
    let mut table = TextTable::new(&heads);
    for bucket in buckets {
        let mut row = vec![
            bucket.up_to_bytes.map_or("larger".into(), |bytes| format!("{}", Bytes::new(bytes))),
            format!("{} of {}", bucket.completed, bucket.sessions),
        ];
        let times = bucket.completion.map(|of| [of.completion_mean_s, of.completion_p50_s, of.completion_p99_s]);
        row.extend(times.map_or(["-"; 3].map(String::from), |times| {
            times.map(|time_s| Duration::from_secs_f64(time_s).map_or(String::new(), |time| format!("{time:.2}")))
        }));
        let slowdowns = bucket.slowdown.map(|of| [of.slowdown_mean, of.slowdown_p50, of.slowdown_p99]);
        row.extend(slowdowns.map_or(["-"; 3].map(String::from), |of| of.map(|slowdown| format!("{slowdown:.2}"))));
        table.row(row);
    }
    format!("\n{}", table.render(2))
}

/// The links by how much of them was used: all if they are few.
pub(super) fn links(run: &Run) -> String {
    let mut links: Vec<&LinkSummary> = run.summary.links.iter().collect();
    if links.is_empty() {
        return String::new();
    }
    // Stable: of links that are used alike the file's order holds.
    links.sort_by(|a, b| b.utilisation.total_cmp(&a.utilisation));
    let most = if links.len() <= FEW_LINKS { FEW_LINKS } else { SHOWN };
    let heads = ["link", ">capacity", ">utilisation", ">mean queue", ">largest", ">dropped"];
    let mut table = TextTable::new(&heads);
    for link in links.iter().take(most) {
        table.row([
            shortened(&link.name, 18),
            rate(link.capacity_bps),
            format!("{:.1} %", link.utilisation * 100.0),
            format!("{:.1}", link.mean_queue_packets),
            format!("{:.1}", link.max_queue_packets),
            link.dropped_packets.to_string(),
        ]);
    }
    let mut text = format!("\n{}", table.render(2));
    let rest = match links.len().saturating_sub(most) {
        0 => String::new(),
        rest => format!("the four most used; {rest} more links (--json lists all); "),
    };
    let _ = writeln!(text, "  {}", paint(DIM, &format!("{rest}queues in full packets")));
    text
}

fn rtt(session: &SessionSummary) -> String {
    Duration::from_secs_f64(session.rtt_s).map_or(String::new(), in_ms)
}

fn percent_of(part: f64, whole: f64) -> String {
    let share = part / whole;
    if share.is_finite() { format!("{:.1} %", share * 100.0) } else { "-".into() }
}
