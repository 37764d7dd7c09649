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
    let outcomes = run(&["papers", "run", "002/eq-ii-1", "000/table3", "--json"]).json();
    let ids: Vec<_> = outcomes.iter().map(|outcome| outcome["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["000/table3", "002/eq-ii-1"]);
    for outcome in &outcomes {
        assert_eq!(keys(outcome), words("id claims wall_s"));
        for claim in outcome["claims"].as_array().unwrap() {
            let mut known = keys(claim);
            // Only where there is one.
            known.remove("referee");
            known.remove("condition");
            known.remove("proof");
            assert_eq!(known, words("what paper ours unit tolerance source form holds verdict reason"));
        }
    }
}

#[test]
fn run__says_verdicts_and_counts_and_exits_by_them() {
    let done = run(&["papers", "run", "002/sec-ii-4a"]);
    let text = done.good();
    // The print gives 2 us where 12000 bits at 10 Gb/s take 1.2 us: refuted.
    for words in ["holds ", "refuted ", "the paper is wrong", "proof: ", "ours 1.2 us", "with its proof: 1; known"] {
        assert!(text.contains(words), "{words:?} is missing in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
}

#[test]
fn run__json_tells_the_proof_of_what_is_refuted() {
    let outcome = run(&["papers", "run", "002/sec-ii-4a", "--json"]).json().remove(0);
    let claims = outcome["claims"].as_array().unwrap();
    let refuted: Vec<_> = claims.iter().filter(|claim| claim["verdict"] == "refuted").collect();
    let [claim] = refuted[..] else { panic!("one: {claims:?}") };
    assert_eq!((&claim["holds"], &claim["paper"]), (&false.into(), &2.0.into()));
    assert!(claim["proof"]["why"].as_str().unwrap().contains("1.2 us"));
    let checks = claim["proof"]["checks"].as_array().unwrap();
    assert!(!checks.is_empty() && checks.iter().all(|check| check["verdict"] == "holds"), "{checks:?}");
}

#[test]
fn run__verdict_prints_the_record_and_runs_nothing() {
    let text = run(&["papers", "run", "all", "--verdict"]).good();
    assert!(text.contains("002/eq-ii-2 ") && text.contains("claims hold in"), "{text}");
    let sentence = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for form in [" numbers, ", " orders and ", " statements in words hold"] {
        assert!(sentence.contains(form), "{form:?} is missing in\n{text}");
    }
    let recorded = run(&["papers", "run", "002/eq-ii-2", "--verdict", "--json"]).json();
    assert_eq!(recorded.len(), 1);
    assert_eq!(keys(&recorded[0]), words("id version date claims"));
    for claim in recorded[0]["claims"].as_array().unwrap() {
        let mut keys = keys(claim);
        keys.remove("condition");
        assert_eq!(keys, words("what verdict paper ours unit tolerance source form"));
    }
    run(&["papers", "run", "all", "--verdict", "--quick"]).refused();
}

#[test]
fn run__records_verdicts_beside_those_that_are_there() {
    let scratch = Scratch::new("record");
    let file = scratch.path("verdict.json");
    run(&["papers", "run", "002/eq-ii-2", "--record", &file]).good();
    run(&["papers", "run", "000/table2", "002/eq-ii-2", "--record", &file]).good();
    let text = std::fs::read_to_string(&file).unwrap();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    let ids: Vec<_> = record["experiments"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["000/table2", "002/eq-ii-2"]);
    // A file that is not a record is not overwritten.
    std::fs::write(&file, "[]").unwrap();
    let stderr = run(&["papers", "run", "002/eq-ii-2", "--record", &file]).refused();
    assert!(stderr.contains("cannot read the recorded verdicts"), "{stderr}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "[]");
    run(&["papers", "run", "002/eq-ii-2", "--quick", "--record", &file]).refused();
    // An unwritable path is reported before anything runs.
    let nowhere = scratch.path("no-such-folder/verdict.json");
    let done = run(&["papers", "run", "002/eq-ii-2", "--record", &nowhere]);
    assert!(done.refused().contains("no-such-folder"));
}

#[test]
fn run__writes_a_report_that_needs_nothing_beside_it() {
    let scratch = Scratch::new("report");
    run(&["papers", "run", "000/table3", "--out", &scratch.path("report")]).good();
    let page = std::fs::read_to_string(scratch.path("report/report.html")).unwrap();
    assert!(page.starts_with("<!") && page.trim_end().ends_with("</html>"));
    assert!(page.contains("<svg") && page.contains("000/table3"));
    for reference in ["<script", "src=\"http", "href=\"http", "url("] {
        assert!(!page.contains(reference), "{reference}");
    }
}

#[test]
fn run__of_an_unknown_experiment_is_refused() {
    let stderr = run(&["papers", "run", "002/fig-vii-2z"]).refused();
    assert!(stderr.contains("unknown experiment") && stderr.contains("hint: "), "{stderr}");
}
