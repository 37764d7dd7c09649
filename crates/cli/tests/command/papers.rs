use super::*;

#[test]
fn list__names_experiments_with_their_claims() {
    let listing = run(&["papers", "list", "--json"]).json().remove(0);
    let experiments = listing["experiments"].as_array().unwrap();
    let ids: BTreeSet<_> = experiments.iter().map(|experiment| experiment["id"].as_str().unwrap()).collect();
    for id in words("000/fig2 000/table3 002/fig-vii-2a 002/eq-ii-2") {
        assert!(ids.contains(id), "{id} is missing");
    }
    let text = run(&["papers", "list"]).good();
    assert!(ids.iter().all(|id| text.contains(id)));
}

#[test]
fn run__json_has_the_keys_of_the_contract() {
    let outcomes = run(&["papers", "run", "002/eq-ii-1", "000/fig3", "--json"]).json();
    let ids: Vec<_> = outcomes.iter().map(|outcome| outcome["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["000/fig3", "002/eq-ii-1"]);
    for outcome in &outcomes {
        assert_eq!(keys(outcome), words("id claims wall_s"));
        for claim in outcome["claims"].as_array().unwrap() {
            let mut known = keys(claim);
            // Only where there is one.
            known.remove("referee");
            known.remove("source");
            assert_eq!(known, words("what paper ours unit tolerance holds reason"));
        }
    }
}

#[test]
fn run__says_verdicts_and_counts_and_exits_by_them() {
    let done = run(&["papers", "run", "002/sec-ii-4a"]);
    let text = done.good();
    // The print gives 2 us where 12000 bits at 10 Gb/s take 1.2 us: a known miss.
    for words in ["holds ", "known miss ", "reason: ", "ours 1.2 us", "known misses, each with its reason: 1; misses"] {
        assert!(text.contains(words), "{words:?} is missing in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
}

#[test]
fn run__writes_a_report_that_needs_nothing_beside_it() {
    let scratch = Scratch::new("report");
    run(&["papers", "run", "000/fig3", "--out", &scratch.path("report")]).good();
    let page = std::fs::read_to_string(scratch.path("report/report.html")).unwrap();
    assert!(page.starts_with("<!") && page.trim_end().ends_with("</html>"));
    assert!(page.contains("<svg") && page.contains("000/fig3"));
    for reference in ["<script", "src=\"http", "href=\"http", "url("] {
        assert!(!page.contains(reference), "{reference}");
    }
}

#[test]
fn run__of_an_unknown_experiment_is_refused() {
    let stderr = run(&["papers", "run", "002/fig-vii-2z"]).refused();
    assert!(stderr.contains("there is no experiment") && stderr.contains("hint: "), "{stderr}");
}
