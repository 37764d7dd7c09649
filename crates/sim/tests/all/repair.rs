//! The options `prr`, `rack` and `undo` in whole runs.

#![allow(non_snake_case)]

use fairwave_scenario::{Document, Run, Selection};
use fairwave_sim::{Settings, SimError, simulate};

fn try_run(text: &str) -> Result<Run, SimError> {
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    let (scenario, _) = document.build(&case).unwrap();
    simulate(&scenario, Settings::default())
}

/// CUBIC over 50 Mb/s and 40 ms, on which one packet in fifty is 5 ms late.
fn reordered(options: &str) -> Run {
    try_run(&format!(
        "name = \"reordered\"\nduration = \"30 s\"\nscheme = \"cubic\"\n[options]\n{options}\n\
         [[router]]\nname = \"r{{1..2}}\"\n[[node]]\nname = \"a\"\nrouter = \"r1\"\n[[node]]\nname = \"b\"\nrouter = \"r2\"\n\
         [[link]]\nfrom = \"r1\"\nto = \"r2\"\ncapacity = \"50 Mb/s\"\ndelay = \"10 ms\"\nduplex = true\nqueue = \"2 bdp\"\n\
         conditions = {{ reorder = [0.02, \"5 ms\"] }}\n\
         [[session]]\nfrom = \"a\"\nto = \"b\"\nrtt = \"40 ms\"\n"
    ))
    .unwrap()
}

#[test]
fn reordering__costs_no_rate_with_rack_or_undo() {
    let rates = ["", "rack = true", "undo = true", "prr = true\nrack = true\nundo = true"].map(|options| {
        let run = reordered(options);
        let session = &run.summary.sessions[0];
        println!("{options:?}: {:.1} Mb/s, {} sent again", session.wire_rate_bps / 1e6, session.retransmitted_packets);
        session.wire_rate_bps / 50e6
    });
    let [plain, rack, undo, all] = rates;
    assert!(plain < 0.5, "{rates:?}");
    assert!(rack > 0.9 && undo > 0.9 && all > 0.9, "{rates:?}");
}

/// Transfers of ten packets of which one in thirty is lost: mean completion time in seconds.
fn short_transfers(options: &str) -> f64 {
    let run = try_run(&format!(
        "name = \"short\"\nduration = \"60 s\"\nscheme = \"sack\"\n[options]\ninitial_window = \"10 packets\"\n{options}\n\
         [[node]]\nname = \"s\"\ncapacity = \"1 Gb/s\"\n[[node]]\nname = \"d\"\ncapacity = \"1 Gb/s\"\nreceive_loss = 0.03\n\
         [[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"20 ms\"\nsize = \"20 kB\"\ncount = 300\n\
         start = {{ uniform = [\"0 s\", \"10 s\"] }}\n"
    ))
    .unwrap();
    let done: Vec<f64> = run.summary.sessions.iter().filter_map(|session| session.completion_s).collect();
    assert_eq!(done.len(), 300, "{options}");
    done.iter().sum::<f64>() / 300.0
}

#[test]
fn rack__probes_end_short_transfers_earlier() {
    let (plain, rack) = (short_transfers(""), short_transfers("rack = true"));
    println!("{plain:.3} s, with rack {rack:.3} s");
    // A lost last packet costs a time-out of a second, or a probe after two round trips.
    assert!(rack < 0.5 * plain, "{rack} of {plain}");
}

#[test]
fn simulate__refuses_rack_without_selective_acknowledgements() {
    let text = "name = \"x\"\nduration = \"1 s\"\nscheme = \"newreno\"\n[options]\nrack = true\n\
                [[node]]\nname = \"s\"\ncapacity = \"1 Gb/s\"\n[[node]]\nname = \"d\"\ncapacity = \"1 Gb/s\"\n\
                [[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"20 ms\"\n";
    let error = try_run(text).unwrap_err();
    assert!(
        error.to_string().ends_with("needs selective acknowledgements for prr or rack to run \"newreno\""),
        "{error}"
    );
    assert_eq!(error.hint().as_deref(), Some("set sack = true, or omit prr and rack"));
    assert!(try_run(&text.replace("rack = true", "rack = true\nsack = true")).is_ok());
    assert!(try_run(&text.replace("rack = true", "undo = true")).is_ok());
}
