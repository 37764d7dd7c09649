//! Random networks as scenario files.

use std::fmt::Write;

use fairwave_scenario::random::{RandomStream, stream};

/// Kind of network that is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Only end nodes.
    Lambda,
    /// Only end nodes, with a different weight for every session.
    Weighted,
    /// End nodes at a chain of routers whose links run the node rule.
    Routed,
}

/// A network of 1 to 8 sources with 1 to 4 sessions each and 1 to 8 sinks. Half of the capacities are 1 Gb/s, the
/// others random down to 100 Mb/s; every node has its own alpha, beta and interval, every session its RTT; three in ten
/// have a finite demand, half start above zero.
pub(crate) fn instance(seed: u64, scheme: &str, shape: Shape) -> String {
    let mut random = stream(seed, "instance");
    let sources = 1 + random.below(8);
    let sinks = 1 + random.below(8);
    let routers = if shape == Shape::Routed { 2 + random.below(4) } else { 0 };
    let mut text = format!(
        "name = \"random\"\nscheme = \"{scheme}\"\nseed = {seed}\nduration = \"{} s\"\nsample = \"1 s\"\n",
        super::DURATION_S
    );
    chain(&mut text, &mut random, routers);
    // Sources are in one half of the chain, sinks anywhere else, so that every session crosses a link.
    let source_routers: Vec<u64> = (0..sources).map(|_| random.below(routers.max(2) - 1)).collect();
    let last = routers.max(1);
    for n in 0..sources + sinks {
        let (name, router) = match source_routers.get(n as usize) {
            Some(router) => (format!("s{}", n + 1), router + 1),
            None => (format!("d{}", n + 1 - sources), last),
        };
        let at = if routers > 0 { format!("router = \"r{router}\"\n") } else { String::new() };
        write(
            &mut text,
            format_args!(
                "[[node]]\nname = \"{name}\"\ncapacity = \"{}\"\nalpha = {:.4}\nbeta = {:.4}\ninterval = \"{:.3} ms\"\n{at}",
                capacity(&mut random),
                random.uniform(0.05, 0.3),
                random.uniform(0.05, 0.5),
                random.uniform(10.0, 100.0),
            ),
        );
    }
    let mut session = 0;
    for source in 1..=sources {
        for _ in 0..=random.below(4) {
            session += 1;
            let sink = 1 + random.below(sinks);
            // At most 20 ms per link and 4 links, in both directions: 160 ms.
            let rtt = if routers > 0 { random.uniform(160.0, 200.0) } else { random.uniform(1.0, 100.0) };
            write(
                &mut text,
                format_args!(
                    "[[session]]\nname = \"k{session}\"\nfrom = \"s{source}\"\nto = \"d{sink}\"\nrtt = \"{rtt:.3} ms\"\n"
                ),
            );
            if random.unit() < 0.3 {
                write(&mut text, format_args!("demand = \"{:.3} Mb/s\"\n", random.uniform(0.0, 500.0)));
            }
            if shape == Shape::Weighted {
                write(&mut text, format_args!("weight = {:.3}\n", random.uniform(0.25, 4.0)));
            }
            if random.unit() < 0.5 {
                write(&mut text, format_args!("initial_rate = \"{:.3} Mb/s\"\n", random.uniform(0.0, 300.0)));
            }
        }
    }
    text
}

/// A chain of routers, in both directions; no link is as fast as the fastest node.
fn chain(text: &mut String, random: &mut RandomStream, routers: u64) {
    for router in 1..=routers {
        write(text, format_args!("[[router]]\nname = \"r{router}\"\n"));
    }
    for router in 1..routers {
        write(
            text,
            format_args!(
                "[[link]]\nfrom = \"r{router}\"\nto = \"r{}\"\ncapacity = \"{:.3} Mb/s\"\ndelay = \"{:.3} ms\"\n\
                 discipline = \"gtp\"\nduplex = true\n",
                router + 1,
                random.uniform(200.0, 900.0),
                random.uniform(1.0, 20.0),
            ),
        );
    }
}

fn capacity(random: &mut RandomStream) -> String {
    if random.unit() < 0.5 { "1 Gb/s".to_owned() } else { format!("{:.3} Mb/s", random.uniform(100.0, 1000.0)) }
}

fn write(text: &mut String, line: std::fmt::Arguments<'_>) {
    text.write_fmt(line).expect("a String takes everything");
}
