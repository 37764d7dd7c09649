//! Cases for the measurement of speed and memory.

use fairwave_scenario::{Document, Scenario, Selection};

/// Cases of [`scenario`]: links and lines only, large windows, many losses, many flows, a window full of holes, the
/// same window without holes, thirty flows over one link with XCP's rule, and five sessions of GTP, as values and as
/// sealed datagrams.
pub(crate) const NAMES: [&str; 9] = ["constant", "sack", "lossy", "many", "holes", "whole", "xcp", "gtp", "gtp-wire"];

/// The case of that name with a duration of `duration_s` seconds; its own duration if zero.
pub(crate) fn scenario(name: &str, duration_s: u64) -> Scenario {
    let text = text(name, duration_s);
    let document = Document::parse(name, text.as_bytes()).expect("the cases are well-formed");
    let case = document.cases(&Selection::default()).expect("the cases have one run each").remove(0);
    document.build(&case).expect("the cases are valid").0
}

fn text(name: &str, duration_s: u64) -> String {
    let rtts = "rtt = { each = [\"10 ms\", \"30 ms\", \"50 ms\", \"70 ms\", \"90 ms\"] }";
    let five = |sink: &str, loss: f64| {
        format!(
            "[[node]]\nname = \"d\"\ncapacity = \"{sink}\"\nreceive_loss = {loss}\n\
             [[node]]\nname = \"s{{1..5}}\"\ncapacity = \"500 Mb/s\"\n\
             [[session]]\nfrom = \"s{{1..5}}\"\nto = \"d\"\n"
        )
    };
    // Slow start to a window of 10^5 packets, which fits into 5 Gb/s x 90 ms (54 087 packets of 1040 B) and the queue:
    // every other packet of the last round trip is dropped, which leaves more than ten thousand holes.
    let large = |queue: &str| {
        format!(
            "[[node]]\nname = \"d\"\ncapacity = \"5 Gb/s\"\nqueue = \"{queue}\"\n\
             [[node]]\nname = \"s\"\ncapacity = \"10 Gb/s\"\nqueue = \"1000000 packets\"\n\
             [[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"90 ms\"\nsize = \"300 MB\"\ncount = 4\n\
             start = {{ each = [\"0 s\", \"3 s\", \"6 s\", \"9 s\"] }}\n[options]\nmax_window = \"100000 packets\"\n"
        )
    };
    let (own_s, scheme, rest) = match name {
        "constant" => (100, "cbr", format!("{}{rtts}\ndemand = \"96 Mb/s\"\n", five("500 Mb/s", 0.0))),
        "sack" => (60, "sack", format!("{}{rtts}\n", five("450 Mb/s", 0.0))),
        "gtp" => (60, "gtp", format!("{}{rtts}\n", five("500 Mb/s", 0.0))),
        "gtp-wire" => (20, "gtp", format!("{}{rtts}\n[options]\nwire = true\n", five("500 Mb/s", 0.0))),
        "lossy" => (60, "bic", format!("{}rtt = \"10 ms\"\n", five("450 Mb/s", 0.01))),
        "holes" => (12, "sack", large("10000 packets")),
        "whole" => (12, "sack", large("1000000 packets")),
        "xcp" => (
            60,
            "xcp",
            "[[router]]\nname = \"r{1..2}\"\n[[node]]\nname = \"a\"\nrouter = \"r1\"\n[[node]]\nname = \"b\"\nrouter = \"r2\"\n\
             [[link]]\nfrom = \"r1\"\nto = \"r2\"\ncapacity = \"500 Mb/s\"\ndelay = \"20 ms\"\nduplex = true\n\
             [[session]]\nfrom = \"a\"\nto = \"b\"\ncount = 30\nrtt = \"80 ms\"\n\
             start = { uniform = [\"0 s\", \"1 s\"] }\n"
                .to_owned(),
        ),
        _ => (
            20,
            "sack",
            "[[node]]\nname = \"d\"\ncapacity = \"1 Gb/s\"\n[[node]]\nname = \"s{1..500}\"\ncapacity = \"1 Gb/s\"\n\
             [[session]]\nfrom = \"s{1..500}\"\nto = \"d\"\nrtt = { uniform = [\"10 ms\", \"100 ms\"] }\n"
                .to_owned(),
        ),
    };
    let duration_s = if duration_s == 0 { own_s } else { duration_s };
    let name = if NAMES.contains(&name) { name } else { "many" };
    format!("name = \"{name}\"\nduration = \"{duration_s} s\"\nscheme = \"{scheme}\"\n{rest}")
}
