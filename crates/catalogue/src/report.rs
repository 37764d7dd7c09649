//! The report: a self-contained HTML file.

use std::fmt::Write as _;

use crate::counts::VerdictCounts;
use crate::drawing::picture_of;
use crate::judged::Claim;
use crate::outcome::ExperimentOutcome;
use crate::verdict::Verdict;
use crate::wire::WireNotes;

/// The report of several experiments as a self-contained HTML page, without scripts and external resources.
pub fn report(outcomes: &[ExperimentOutcome]) -> String {
    let mut page = String::from(HEAD);
    summary(&mut page, outcomes);
    for outcome in outcomes {
        section(&mut page, outcome);
    }
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

/// The counts, the list of experiments, and the refuted claims.
fn summary(page: &mut String, outcomes: &[ExperimentOutcome]) {
    let counts = VerdictCounts::of(outcomes);
    let wall_s: f64 = outcomes.iter().map(|outcome| outcome.wall_s).sum();
    let _ = writeln!(page, "<p class=\"counts\">{} {wall_s:.1} s.</p>", escape(&counts.sentence()));
    if outcomes.iter().any(|outcome| outcome.quick) {
        page.push_str("<p class=\"quick\">Quick: experiments marked quick had fewer draws or shorter runs.</p>\n");
    }
    page.push_str(
        "<table>\n<thead><tr><th>experiment</th><th>what</th><th class=\"n\">holds</th><th class=\"n\">refuted</th>\
         <th class=\"n\">known misses</th><th class=\"n\">misses</th><th class=\"n\">s</th></tr></thead>\n<tbody>\n",
    );
    for outcome in outcomes {
        let counts = VerdictCounts::of_one(outcome);
        let id = escape(&outcome.id);
        let _ = writeln!(
            page,
            "<tr{}><td><a href=\"#{id}\">{id}</a></td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{:.2}</td></tr>",
            if counts.misses > 0 { " class=\"miss\"" } else { "" },
            escape(&outcome.experiment.title),
            counts.holds,
            counts.refuted,
            counts.known_misses,
            counts.misses,
            outcome.wall_s,
        );
    }
    page.push_str("</tbody>\n</table>\n");
    refuted(page, outcomes);
}

/// The section of values that are printed and proved wrong: the paper's value, the correct one, the reason, and the
/// checks.
fn refuted(page: &mut String, outcomes: &[ExperimentOutcome]) {
    let is_there = |id: &str| outcomes.iter().any(|outcome| outcome.id == id);
    let mut rows = String::new();
    for outcome in outcomes.iter().filter(|outcome| !outcome.experiment.repeats.as_deref().is_some_and(is_there)) {
        let id = escape(&outcome.id);
        for claim in outcome.claims.iter().filter(|claim| claim.verdict == Verdict::Refuted) {
            let Some(proof) = &claim.proof else { continue };
            let checks: Vec<String> = proof.checks.iter().map(check_line).collect();
            let _ = writeln!(
                rows,
                "<tr><td><a href=\"#{id}\">{}</a></td><td>{}</td><td class=\"n\">{} {unit}</td>\
                 <td class=\"n\">{} {unit}</td><td>{}<ul><li>{}</li></ul></td></tr>",
                escape(&outcome.experiment.cites),
                escape(&claim.what),
                escape(&claim.paper.to_string()),
                escape(&claim.ours.to_string()),
                escape(&proof.why),
                checks.join("</li><li>"),
                unit = escape(claim.unit),
            );
        }
    }
    if !rows.is_empty() {
        let _ = writeln!(
            page,
            "<section id=\"refuted\">\n<h2>Printed, and proved wrong</h2>\n<p>Each line below a proof is a separate \
             check from runs or formulas of this report; if one fails, the claim is a miss.</p>\n\
             <table>\n<thead><tr><th>where</th><th>what</th><th class=\"n\">printed</th><th class=\"n\">true</th>\
             <th>why</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</section>"
        );
    }
}

/// A check of a proof in a line.
fn check_line(check: &Claim) -> String {
    let text = format!(
        "{}: stated {} {unit}, ours {} {unit} (tolerance {}, {}){}",
        check.what,
        check.paper,
        check.ours,
        check.tolerance,
        check.source,
        if check.holds { "" } else { ": does not hold" },
        unit = check.unit,
    );
    escape(&text)
}

/// One experiment.
fn section(page: &mut String, outcome: &ExperimentOutcome) {
    let experiment = outcome.experiment;
    let id = escape(&outcome.id);
    let _ = writeln!(page, "<section id=\"{id}\">\n<h2>{}</h2>", escape(&experiment.title));
    let scenario =
        experiment.scenario.as_ref().map_or_else(String::new, |name| format!(" \u{b7} scenarios/{name}.toml"));
    let quick = if outcome.quick { " \u{b7} <b>quick: fewer draws or shorter runs</b>" } else { "" };
    let _ = writeln!(
        page,
        "<p class=\"cites\">{} \u{b7} {id}{} \u{b7} {:.2} s{quick}</p>",
        escape(&experiment.cites),
        escape(&scenario),
        outcome.wall_s
    );
    if let Some(note) = &experiment.note {
        let _ = writeln!(page, "<p>{}</p>", escape(note));
    }
    match picture_of(outcome) {
        None => {}
        Some(Ok(svg)) => {
            let _ = writeln!(page, "<figure>\n{svg}\n</figure>");
        }
        Some(Err(error)) => {
            let _ = writeln!(page, "<p class=\"miss\">No picture: {}.</p>", escape(&error.to_string()));
        }
    }
    if let Some(notes) = &outcome.wire {
        wire_notes(page, notes);
    }
    page.push_str(
        "<table>\n<thead><tr><th>claim</th><th>from</th><th class=\"n\">stated</th><th class=\"n\">ours</th><th>unit</th>\
         <th>tolerance</th><th>verdict</th></tr></thead>\n<tbody>\n",
    );
    for claim in &outcome.claims {
        row(page, claim);
    }
    page.push_str("</tbody>\n</table>\n</section>\n");
}

/// Notes on a run with real programs.
fn wire_notes(page: &mut String, notes: &WireNotes) {
    let mut lines = Vec::new();
    lines.extend(notes.skipped.iter().map(|reason| format!("Skipped: {reason}.")));
    lines.extend(notes.lateness.iter().cloned());
    lines.extend(notes.not_judged.iter().map(|claim| format!("Not judged: {}: {}.", claim.what, claim.reason)));
    lines.extend(notes.why.iter().map(|line| format!("Why: {line}")));
    for line in lines {
        let _ = writeln!(page, "<p class=\"cites\">{}</p>", escape(&line));
    }
}

/// One claim, followed by the reason of a miss, or the proof that the printed value is wrong.
fn row(page: &mut String, claim: &Claim) {
    let class = match claim.verdict {
        Verdict::Holds => "holds",
        Verdict::Refuted => "refuted",
        Verdict::KnownMiss => "known",
        Verdict::Miss => "miss",
    };
    let verdict = escape(&claim.verdict_in_words());
    let _ = writeln!(
        page,
        "<tr class=\"{class}\"><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td><td>{}</td>\
         <td>{verdict}</td></tr>",
        escape(&claim.what),
        claim.source,
        escape(&claim.paper.to_string()),
        escape(&claim.ours.to_string()),
        escape(claim.unit),
        escape(&claim.tolerance),
    );
    if let Some(reason) = &claim.reason {
        let referee = claim
            .referee
            .map_or_else(String::new, |number| format!(" Referee: {} {}.", crate::judged::digits(number), claim.unit));
        let _ =
            writeln!(page, "<tr class=\"reason\"><td colspan=\"7\">{}{}</td></tr>", escape(reason), escape(&referee));
    }
    if let (Some(proof), false) = (&claim.proof, claim.holds) {
        let checks: Vec<String> = proof.checks.iter().map(check_line).collect();
        let (why, checks) = (escape(&proof.why), checks.join("<br>"));
        let _ = writeln!(page, "<tr class=\"proof\"><td colspan=\"7\">{why}<br>{checks}</td></tr>");
    }
}

/// Text for HTML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const HEAD: &str = r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Fairwave: the experiments of the papers</title>
<style>
body { margin: 0; background: #fff; color: #222; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.7rem; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 0; }
section { margin-top: 2.5rem; border-top: 1px solid #ccc; padding-top: 1.25rem; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; margin: .75rem 0; }
th, td { text-align: left; vertical-align: top; padding: .25rem .5rem; border-bottom: 1px solid #e4e4e4; }
th { border-bottom: 2px solid #999; font-weight: 600; }
.n { text-align: right; font-variant-numeric: tabular-nums; }
.cites { color: #555; margin: .25rem 0 .75rem; }
.known td { background: #fff6e0; }
.miss td, p.miss { background: #fde3df; font-weight: 600; }
.reason td { background: #fff6e0; color: #444; padding-left: 2rem; }
.refuted td { background: #e9edf7; }
.proof td { background: #e9edf7; color: #444; padding-left: 2rem; }
.quick { background: #e7f1fb; padding: .4rem .6rem; }
figure { margin: 0; overflow-x: auto; }
svg { max-width: 100%; height: auto; }
a { color: #0b5394; }
@media print { body { font-size: 11pt; } main { max-width: none; padding: 0; } section { break-inside: avoid-page; } }
</style>
</head>
<body>
<main>
<h1>The experiments of the papers</h1>
<p>The values of a paper next to those of Fairwave. <i>From</i> names where the stated value comes from: <i>paper</i> is printed there,
<i>calibrated</i> is printed there and was used to set up the experiment, so that it counts nowhere, <i>closed form</i> stands for a curve
without printed numbers, <i>derived</i> follows from the paper's algorithm, <i>reference</i> is an independent exact model, <i>arithmetic</i> is
exact, <i>ours</i> is our bar for its words. <i>Refuted</i>: what is printed is proved wrong. Of several values the one farthest from what is
stated counts.</p>
<p>000 is Wu &amp; Chien 2006, an evaluation of end-node rate allocation. 001 is Xu, Harfoush &amp; Rhee 2004, BIC. 002 is Wu 2007, the
dissertation on GTP. 003 is Zan &amp; Yang 2007, iXCP. 004 is Huang et al. 2010, AECP. <i>beyond</i> is no paper: its claims are
Fairwave's, about BBR next to other flows and Tally next to GTP.</p>
"#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RunOptions, run};

    #[test]
    fn report__holds_everything_and_fetches_nothing() {
        let outcomes: Vec<ExperimentOutcome> = ["002/sec-ii-4a", "002/fig-vii-5", "002/fig-vii-3"]
            .iter()
            .map(|id| run(id, RunOptions::default()).unwrap())
            .collect();
        let page = report(&outcomes);
        assert_eq!(page.matches("<section").count(), 4); // plus the refuted ones
        assert_eq!(page.matches("<svg").count(), 2); // arithmetic has no picture
        assert!(page.contains("Wu 2007, Fig. VII.5"));
        assert!(page.contains(">refuted</td>") && page.contains("<td class=\"n\">1.2 us</td>")); // the print's 2 us
        assert_eq!(page.matches("id=\"refuted\"").count(), 1);
        for outside in ["<script", "<link", "@import", "src=", "href=\"http"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn report__is_the_same_for_the_same_outcomes() {
        let mut outcomes = [
            run("002/fig-vii-5", RunOptions::default()).unwrap(),
            run("002/fig-vii-5", RunOptions::default()).unwrap(),
        ];
        for outcome in &mut outcomes {
            outcome.wall_s = 0.0;
        }
        let [first, second] = outcomes;
        assert_eq!(report(&[first]), report(&[second]));
    }

    #[test]
    fn escape__leaves_no_markup() {
        assert_eq!(escape("a < b & \"c\""), "a &lt; b &amp; &quot;c&quot;");
    }
}
