//! Packet hops per second of one simulation on one core.
//! usage: cargo run --release -p fairwave-sim --example speed [constant|sack|lossy|many]

#![expect(clippy::disallowed_types, reason = "this program measures the wall time of a core")]

use std::time::Instant;

use fairwave_scenario::{Document, Selection};
use fairwave_sim::{Settings, simulate};

fn main() {
    for name in ["constant", "sack", "lossy", "many"] {
        if std::env::args().nth(1).is_some_and(|wanted| wanted != name) {
            continue;
        }
        let document = Document::parse(name, text(name).as_bytes()).expect("the cases below are valid");
        let case = document.cases(&Selection::default()).expect("the cases below are valid").remove(0);
        let (scenario, _) = document.build(&case).expect("the cases below are valid");
        let started = Instant::now();
        let run = simulate(&scenario, Settings::default()).expect("the cases below run");
        let wall_s = started.elapsed().as_secs_f64();
        let hops = run.summary.engine.packet_hops as f64;
        println!("{name}: {:.1} M hops/s ({hops} hops, {wall_s:.2} s)", hops / wall_s / 1e6);
    }
}

fn text(name: &str) -> String {
    let rtts = "rtt = { each = [\"10 ms\", \"30 ms\", \"50 ms\", \"70 ms\", \"90 ms\"] }";
    let five = |sink: &str, loss: f64| {
        format!(
            "[[node]]\nname = \"d\"\ncapacity = \"{sink}\"\nreceive_loss = {loss}\n\
             [[node]]\nname = \"s{{1..5}}\"\ncapacity = \"500 Mb/s\"\n\
             [[session]]\nfrom = \"s{{1..5}}\"\nto = \"d\"\n"
        )
    };
    match name {
        "constant" => format!(
            "name = \"constant\"\nduration = \"100 s\"\nscheme = \"cbr\"\n{}{rtts}\ndemand = \"96 Mb/s\"\n",
            five("500 Mb/s", 0.0)
        ),
        "sack" => format!("name = \"sack\"\nduration = \"60 s\"\nscheme = \"sack\"\n{}{rtts}\n", five("450 Mb/s", 0.0)),
        "lossy" => format!(
            "name = \"lossy\"\nduration = \"60 s\"\nscheme = \"bic\"\n{}rtt = \"10 ms\"\n",
            five("450 Mb/s", 0.01)
        ),
        _ => "name = \"many\"\nduration = \"20 s\"\nscheme = \"sack\"\n\
              [[node]]\nname = \"d\"\ncapacity = \"1 Gb/s\"\n[[node]]\nname = \"s{1..500}\"\ncapacity = \"1 Gb/s\"\n\
              [[session]]\nfrom = \"s{1..500}\"\nto = \"d\"\nrtt = { uniform = [\"10 ms\", \"100 ms\"] }\n"
            .to_owned(),
    }
}
