//! The report of a run as text, for `simulate`.

use std::fmt::Write as _;

use fairwave_catalogue::picture::FEW_SESSIONS;
use fairwave_scenario::{Link, Run, Scenario};

use super::tables;
use crate::common::quantity::rate;
use crate::common::table::{TextTable, shortened};
use crate::common::terminal::{ACCENT, BAD, BOLD, DIM, GOOD, paint};
use crate::lab::blocks;

/// Width of the plots' curves: with names and numbers they fit 80 columns.
const CURVE: usize = 48;

/// Title and citation.
pub(super) fn heading(scenario: &Scenario) -> String {
    let title = if scenario.title.is_empty() { &scenario.name } else { &scenario.title };
    let mut text = format!("{}\n", paint(BOLD, title));
    if !scenario.cites.is_empty() {
        let _ = writeln!(text, "{}", paint(DIM, &format!("after {}", scenario.cites)));
    }
    text
}

/// The report of one run.
pub(crate) fn full(scenario: &Scenario, run: &Run) -> String {
    let mut text = heading(scenario);
    let is_changing = scenario.links.iter().any(Link::has_changing_capacity);
    let _ = writeln!(text, "{}\n{}\n", what_ran(scenario, run), paint(DIM, &window(run, is_changing)));
    text += &tables::sessions(run, is_changing);
    text += &tables::deliveries(run);
    text += &tables::completions(run);
    text += &tables::links(run);
    text.push('\n');
    text += &measures(run, is_changing);
    let plot = if run.summary.sessions.len() <= FEW_SESSIONS { rates(scenario, run) } else { distance(scenario, run) };
    if !plot.is_empty() {
        let _ = write!(text, "\n{plot}");
    }
    text
}

fn what_ran(scenario: &Scenario, run: &Run) -> String {
    let summary = &run.summary;
    let variant = summary.variant.as_ref().map_or(String::new(), |variant| format!("variant \"{variant}\": "));
    let links = match scenario.links.len() {
        0 => String::new(),
        1 => ", 1 link".into(),
        links => format!(", {links} links"),
    };
    format!(
        "{variant}{}, {} model, {}, seed {}; {} sessions, {} nodes{links}",
        summary.scheme,
        summary.model,
        scenario.duration,
        summary.seed,
        summary.sessions.len(),
        scenario.nodes.len(),
    )
}

/// The window of the means.
fn window(run: &Run, is_changing: bool) -> String {
    let window = &run.summary.window;
    let max_min =
        if is_changing { "\ncapacity changes over time: max-min rates are of its mean over these seconds" } else { "" };
    format!(
        "means over {} s to {} s; final: the last tenth of a session's lifetime{max_min}",
        short(window.from_s),
        short(window.to_s)
    )
}

/// Seconds with as many digits as a reader wants.
fn short(seconds: f64) -> String {
    let text = format!("{seconds:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn measures(run: &Run, is_changing: bool) -> String {
    let metrics = &run.summary.metrics;
    let mut text = String::new();
    let mut line = |what: &str, value: String| {
        let _ = writeln!(text, "  {what:<17} {value}");
    };
    line("total rate", rate(metrics.total_bps));
    line("Jain's index", format!("{:.4}", metrics.jain));
    let (start, end) = (metrics.distance_start_bps, metrics.distance_final_bps);
    line("distance", format!("{} at the start, {} at the end (2-norm)", rate(start), rate(end)));
    let converged = match metrics.converged_s {
        Some(at_s) => paint(GOOD, &format!("at {at_s:.2} s: every session stays within 5 % of max-min")),
        None if is_changing => "not defined if capacity changes over time".to_owned(),
        None => paint(BAD, &format!("not reached: largest gap to max-min {:.1} %", metrics.gap_to_max_min * 100.0)),
    };
    line("converged", converged);
    if run.summary.model != "fluid" {
        let sum = |packets: fn(&fairwave_scenario::SessionSummary) -> u64| -> u64 {
            run.summary.sessions.iter().map(packets).sum()
        };
        let (sent, lost) = (sum(|session| session.sent_packets), sum(|session| session.lost_packets));
        let share = lost as f64 / sent.max(1) as f64 * 100.0;
        let again = sum(|session| session.retransmitted_packets);
        line("lost", format!("{lost} of {sent} packets ({share:.3} %); {again} retransmitted"));
    }
    line("peak load", format!("{:.3} x capacity at its maximum", metrics.peak_overload));
    let timeouts: u64 = run.summary.sessions.iter().map(|session| session.timeouts).sum();
    if timeouts > 0 {
        let of = run.summary.sessions.iter().filter(|session| session.timeouts > 0).count();
        line("time-outs", format!("{timeouts} in {of} session{}", if of == 1 { "" } else { "s" }));
    }
    text
}

/// One curve a session.
fn rates(scenario: &Scenario, run: &Run) -> String {
    let Some(rates) = run.rates.as_ref().filter(|rates| !rates.ends.is_empty()) else { return String::new() };
    let wire = rates.wire_bps();
    let most = wire.iter().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return String::new();
    }
    let names: Vec<_> = run.summary.sessions.iter().map(|session| shortened(&session.name, 14)).collect();
    let wide = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut text = format!("  {}\n", paint(BOLD, &format!("rates over time; a full block is {}", rate(most))));
    for (n, (name, session)) in names.iter().zip(&run.summary.sessions).enumerate() {
        let curve: Vec<_> = (0..rates.ends.len()).map(|sample| wire[sample * rates.sessions + n]).collect();
        let curve = paint(ACCENT, &blocks::row(&over_time(scenario, &curve, CURVE), most, CURVE));
        let _ = writeln!(text, "  {name:<wide$} {curve} {}", rate(session.final_wire_rate_bps));
    }
    text + &time_axis(run, wide + 3)
}

/// The distance to max-min as an area below a curve, with a logarithmic height.
fn distance(scenario: &Scenario, run: &Run) -> String {
    const HEIGHT: usize = 8;
    // Without active sessions the shares have a gap.
    let shares: Vec<_> =
        (run.distances_bps.iter().zip(&run.max_min_norms_bps)).map(|(distance, norm)| distance / norm).collect();
    let shares = over_time(scenario, &shares, CURVE + 12);
    let finite = || shares.iter().copied().filter(|share| share.is_finite());
    let (Some(least), most) = (finite().reduce(f64::min), finite().fold(1.0, f64::max)) else {
        return String::new();
    };
    // Whole decades, from the one below the least share; a hundredth of a per cent is as good as nothing.
    let bottom = least.max(1e-4).log10().floor().min(-1.0);
    let span = most.log10() - bottom;
    let heights: Vec<_> = shares.iter().map(|share| (share.max(1e-12).log10() - bottom).max(0.0)).collect();
    let mut text = format!("  {}\n", paint(BOLD, "distance to max-min over time, relative to its norm, logarithmic"));
    let mut labelled = f64::INFINITY;
    for (row, line) in blocks::area(&heights, span, CURVE + 12, HEIGHT).into_iter().enumerate() {
        // The decade that a row's upper edge is the first to reach.
        let edge = bottom + span * (HEIGHT - row) as f64 / HEIGHT as f64;
        let decade = (edge + 1e-9).floor();
        let is_new = decade < labelled && edge - decade < span / HEIGHT as f64 - 1e-9;
        let label = if is_new { percent(10f64.powf(decade)) } else { String::new() };
        labelled = if is_new { decade } else { labelled };
        let _ = writeln!(text, "  {label:>7} {}", paint(ACCENT, &line));
    }
    text + &time_axis_of(run, 10, CURVE + 12)
}

/// The samples of a run as columns of equal spans of time.
fn over_time(scenario: &Scenario, samples: &[f64], width: usize) -> Vec<f64> {
    let (sample_s, end_s) = (scenario.sample.as_secs_f64(), scenario.duration.as_secs_f64());
    let ends_s: Vec<_> = (1..=samples.len()).map(|n| (n as f64 * sample_s).min(end_s)).collect();
    blocks::over_time(&ends_s, samples, width)
}

fn time_axis(run: &Run, indent: usize) -> String {
    time_axis_of(run, indent, CURVE)
}

/// Start, middle and end of the run below a curve.
fn time_axis_of(run: &Run, indent: usize, width: usize) -> String {
    let end_s = run.summary.duration_s;
    let (middle, end) = (format!("{} s", end_s / 2.0), format!("{end_s} s"));
    let half = width / 2;
    let first = format!("{:<half$}", "0 s");
    let second = format!("{middle:<rest$}", rest = width.saturating_sub(half + end.len()));
    format!("{}{}\n", " ".repeat(indent), paint(DIM, &format!("{first}{second}{end}")))
}

/// One run among many.
pub(super) struct RunLine {
    variant: Option<String>,
    seed: u64,
    total_bps: f64,
    jain: f64,
    gap: f64,
    converged_s: Option<f64>,
    peak_overload: f64,
}

impl RunLine {
    pub(super) fn of(run: &Run) -> Self {
        let (summary, metrics) = (&run.summary, &run.summary.metrics);
        Self {
            variant: summary.variant.clone(),
            seed: summary.seed,
            total_bps: metrics.total_bps,
            jain: metrics.jain,
            gap: metrics.gap_to_max_min,
            converged_s: metrics.converged_s,
            peak_overload: metrics.peak_overload,
        }
    }
}

/// Many runs: a line each, or a line for the runs of a variant where these are more than a few.
pub(super) fn overview(heading: &str, lines: &[RunLine]) -> String {
    let groups: Vec<&[RunLine]> = lines.chunk_by(|a, b| a.variant == b.variant).collect();
    let is_grouped = lines.len() > 12 && groups.iter().any(|group| group.len() > 1);
    let rows: Vec<&[RunLine]> = if is_grouped { groups } else { lines.chunks(1).collect() };
    let has_variants = lines.iter().any(|line| line.variant.is_some());
    let which = if is_grouped { ">runs" } else { ">seed" };
    let heads = ["variant", which, ">total rate", ">Jain", ">largest gap", ">converged", ">peak load"];
    let mut table = TextTable::new(if has_variants { &heads } else { &heads[1..] });
    for row in rows {
        let variant = has_variants.then(|| shortened(row[0].variant.as_deref().unwrap_or(""), 24));
        let largest = |value: &dyn Fn(&RunLine) -> f64| row.iter().map(value).fold(0.0, f64::max);
        let never = row.iter().filter(|line| line.converged_s.is_none()).count();
        let converged = match median(row, |line| line.converged_s.unwrap_or(f64::INFINITY)) {
            _ if never > 0 && row.len() == 1 => "no".into(),
            _ if never > 0 => format!("{} of {}", row.len() - never, row.len()),
            at_s => format!("{at_s:.2} s"),
        };
        table.row(variant.into_iter().chain([
            if is_grouped { row.len().to_string() } else { row[0].seed.to_string() },
            rate(median(row, |line| line.total_bps)),
            format!("{:.4}", median(row, |line| line.jain)),
            format!("{:.2} %", largest(&|line| line.gap) * 100.0),
            converged,
            format!("{:.3}", largest(&|line| line.peak_overload)),
        ]));
    }
    let mut more = "gap: largest |final - max-min| / max-min".to_owned();
    if is_grouped {
        more += "; for several runs the median, or the maximum for gap and load";
    }
    format!(
        "{heading}\n{}\n  {}\n  {}\n",
        table.render(2),
        paint(DIM, &more),
        paint(DIM, "use --variant and --set runs=1 for one run in full, --json for all")
    )
}

/// The middle value; of an even number the mean of the middle two.
fn median(lines: &[RunLine], value: impl Fn(&RunLine) -> f64) -> f64 {
    let mut values: Vec<_> = lines.iter().map(value).collect();
    values.sort_unstable_by(f64::total_cmp);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    if low == high { low } else { f64::midpoint(low, high) }
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    format!("{percent:.*} %", (-percent.log10()).max(0.0).round() as usize)
}
