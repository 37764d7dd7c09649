//! The report: one HTML file that needs nothing beside it.

use std::fmt::Write as _;

use crate::drawing::picture_of;
use crate::outcome::{Claim, ExperimentOutcome};
use crate::wire::WireNotes;

/// The report of several experiments as a self-contained HTML page: no script, nothing fetched, pictures inside.
pub fn report(outcomes: &[ExperimentOutcome]) -> String {
    let mut page = String::from(HEAD);
    summary(&mut page, outcomes);
    for outcome in outcomes {
        section(&mut page, outcome);
    }
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

/// The counts, and the list of experiments.
fn summary(page: &mut String, outcomes: &[ExperimentOutcome]) {
    let claims: usize = outcomes.iter().map(|outcome| outcome.claims.len()).sum();
    let known: usize = outcomes.iter().map(ExperimentOutcome::known_misses).sum();
    let unexplained: usize = outcomes.iter().map(ExperimentOutcome::unexplained_misses).sum();
    let wall_s: f64 = outcomes.iter().map(|outcome| outcome.wall_s).sum();
    let _ = writeln!(
        page,
        "<p class=\"counts\"><b>{}</b> of {claims} claims hold in {} experiments; <b>{known}</b> known misses, each with \
         its reason; <b>{unexplained}</b> without one. {wall_s:.1} s.</p>",
        claims - known - unexplained,
        outcomes.len(),
    );
    if outcomes.iter().any(|outcome| outcome.quick) {
        page.push_str("<p class=\"quick\">Quick: some draws were left out, or runs made shorter, of the experiments that say so.</p>\n");
    }
    page.push_str(
        "<table>\n<thead><tr><th>experiment</th><th>what</th><th class=\"n\">holds</th><th class=\"n\">known misses</th>\
         <th class=\"n\">unexplained</th><th class=\"n\">s</th></tr></thead>\n<tbody>\n",
    );
    for outcome in outcomes {
        let (known, unexplained) = (outcome.known_misses(), outcome.unexplained_misses());
        let id = escape(&outcome.id);
        let _ = writeln!(
            page,
            "<tr{}><td><a href=\"#{id}\">{id}</a></td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{known}</td>\
             <td class=\"n\">{unexplained}</td><td class=\"n\">{:.2}</td></tr>",
            if unexplained > 0 { " class=\"miss\"" } else { "" },
            escape(&outcome.experiment.title),
            outcome.claims.len() - known - unexplained,
            outcome.wall_s,
        );
    }
    page.push_str("</tbody>\n</table>\n");
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

/// What is told of a run with real programs.
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

/// One claim, and below it the reason of a miss.
fn row(page: &mut String, claim: &Claim) {
    let (class, verdict) = match (claim.holds, &claim.reason) {
        (true, _) => ("holds", "holds"),
        (false, Some(_)) => ("known", "known miss"),
        (false, None) => ("miss", "does not hold"),
    };
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
            .map_or_else(String::new, |number| format!(" Referee: {} {}.", crate::outcome::digits(number), claim.unit));
        let _ =
            writeln!(page, "<tr class=\"reason\"><td colspan=\"7\">{}{}</td></tr>", escape(reason), escape(&referee));
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
<p>What a paper says beside what Fairwave gets. <i>From</i> names where the stated value comes from: <i>paper</i> is printed there,
<i>derived</i> follows from its algorithm, <i>reference</i> is an independent exact fluid model, <i>arithmetic</i> is exact, <i>ours</i> puts a
number to its words. Of several values the one farthest from what is stated counts. 000 is Wu &amp; Chien 2006, 001 is Xu, Harfoush and
Rhee 2004, 002 is Wu 2007.</p>
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
        assert_eq!(page.matches("<section").count(), 3);
        assert_eq!(page.matches("<svg").count(), 2); // arithmetic has no picture
        assert!(page.contains("Wu 2007, Fig. VII.5"));
        assert!(page.contains("known miss") && page.contains("1.2 us")); // the print's 2 us
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
