//! Random networks, as scenario files and as input of a bound.

use std::fmt::Write;

use fairwave_scenario::random::{RandomStream, stream};

/// Kind of network that is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Sessions come and go, demands change.
    Dynamic,
    /// As `Dynamic`, with all demands declared and no headroom.
    Declared,
    /// Equal nodes, one clock, demands that are shares: ties everywhere.
    Ties,
    /// Sessions of weights from 0.2 to 5.
    Weighted,
    /// End nodes at a chain of routers whose links run the rule.
    Routed,
    /// At most a tenth of the messages lost, up to 50 ms late.
    Loss,
}

/// A session of the final state, as input of a bound.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    /// The resources that it crosses, by number.
    pub(crate) crosses: Vec<usize>,
    pub(crate) demand_bps: f64,
    pub(crate) weight: f64,
}

/// A network and its final state.
pub(crate) struct Network {
    pub(crate) text: String,
    pub(crate) capacities_bps: Vec<f64>,
    pub(crate) sessions: Vec<Drawn>,
    /// Time of the last change.
    pub(crate) changed_ms: f64,
    pub(crate) largest_rtt_ms: f64,
    pub(crate) largest_interval_ms: f64,
    pub(crate) headroom: f64,
}

/// 1 to 4 sources and as many sinks, 1 to 8 sessions, RTT 0.2 to 400 ms, control intervals 10 to 50 ms; all changes are
/// in the first second. `options` is a further line of the scenario's options.
pub(crate) fn network(family: Family, seed: u64, duration_s: f64, options: &str) -> Network {
    let mut random = stream(seed, &format!("tally {family:?}"));
    let random = &mut random;
    let is_tied = family == Family::Ties;
    let headroom = if family == Family::Declared { 0.0 } else { 0.02 };
    let mut network = Network {
        text: String::new(),
        capacities_bps: Vec::new(),
        sessions: Vec::new(),
        changed_ms: 0.0,
        largest_rtt_ms: 0.0,
        largest_interval_ms: 0.0,
        headroom,
    };
    network.write(format_args!(
        "name = \"random\"\nscheme = \"tally\"\nseed = {seed}\nduration = \"{duration_s} s\"\nsample = \"10 ms\"\n\
         [options]\neps = {headroom}\n{options}"
    ));
    match family {
        Family::Declared => network.write(format_args!("declared = true\n")),
        Family::Ties => network.write(format_args!("phase = \"0 s\"\n")),
        Family::Loss => {
            let (loss, late) = (random.uniform(0.0, 0.1), random.uniform(0.0, 50.0));
            network.write(format_args!("loss = {loss:.4}\nlate = \"{late:.3} ms\"\n"));
        }
        Family::Dynamic | Family::Weighted | Family::Routed => {}
    }
    let routers = if family == Family::Routed { 2 + random.below(2) as usize } else { 0 };
    network.chain(random, routers);
    let (sources, sinks) = (1 + random.below(4) as usize, 1 + random.below(4) as usize);
    let interval_ms = random.uniform(10.0, 50.0);
    for n in 0..sources + sinks {
        let is_source = n < sources;
        let interval_ms = if is_tied { interval_ms } else { random.uniform(10.0, 50.0) };
        network.largest_interval_ms = network.largest_interval_ms.max(interval_ms);
        let capacity = if is_tied { 1000.0 } else { random.uniform(100.0, 1000.0).round() };
        network.capacities_bps.push(capacity * 1e6);
        let name = if is_source { format!("s{}", n + 1) } else { format!("d{}", n + 1 - sources) };
        let router = if is_source { 1 } else { routers };
        let at = if routers > 0 { format!("router = \"r{router}\"\n") } else { String::new() };
        network.write(format_args!(
            "[[node]]\nname = \"{name}\"\ncapacity = \"{capacity} Mb/s\"\ninterval = \"{interval_ms:.6} ms\"\n{at}"
        ));
    }
    // A link's control interval is that of the options: 20 ms.
    network.largest_interval_ms = network.largest_interval_ms.max(20.0);
    let same_rtt_ms = rtt_ms(random);
    for k in 0..=random.below(8) {
        let (source, sink) = (random.below(sources as u64) as usize, random.below(sinks as u64) as usize);
        let links = routers.max(1) - 1;
        let ends = [links + source, links + sources + sink];
        let crosses: Vec<usize> = (0..links).chain(ends).collect();
        // At most 20 ms per link and 2 links, in both directions: 80 ms.
        let rtt_ms = match (is_tied, routers) {
            (true, _) => same_rtt_ms,
            (false, 0) => rtt_ms(random),
            (false, _) => random.uniform(80.0, 200.0),
        };
        network.largest_rtt_ms = network.largest_rtt_ms.max(rtt_ms);
        let opens_ms = if is_tied { 10.0 * random.below(3) as f64 } else { random.uniform(0.0, 600.0).floor() };
        network.changed_ms = network.changed_ms.max(opens_ms);
        network.write(format_args!(
            "[[session]]\nname = \"k{k}\"\nfrom = \"s{}\"\nto = \"d{}\"\nrtt = \"{rtt_ms:.6} ms\"\nstart = \"{opens_ms} ms\"\n",
            source + 1,
            sink + 1,
        ));
        let weight = if family == Family::Weighted { [0.2, 0.5, 1.0, 2.0, 5.0][random.below(5) as usize] } else { 1.0 };
        network.write(format_args!("weight = {weight}\n"));
        let demand_mbps = network.demands(random, family, opens_ms);
        if family != Family::Ties && random.unit() < 0.25 {
            let stop_ms = opens_ms + random.uniform(10.0, 500.0).floor();
            network.changed_ms = network.changed_ms.max(stop_ms);
            network.write(format_args!("stop = \"{stop_ms} ms\"\n"));
        } else {
            network.sessions.push(Drawn { crosses, demand_bps: demand_mbps * 1e6, weight });
        }
    }
    network
}

/// From 0.2 to 400 ms, log-uniform.
fn rtt_ms(random: &mut RandomStream) -> f64 {
    0.2 * 2000_f64.powf(random.unit())
}

impl Network {
    fn write(&mut self, line: std::fmt::Arguments<'_>) {
        self.text.write_fmt(line).expect("a String takes everything");
    }

    /// A chain of routers; the links of one direction run the rule.
    fn chain(&mut self, random: &mut RandomStream, routers: usize) {
        for router in 1..=routers {
            self.write(format_args!("[[router]]\nname = \"r{router}\"\n"));
        }
        for router in 1..routers {
            let (capacity, delay_ms) = (random.uniform(100.0, 900.0).round(), random.uniform(1.0, 20.0));
            self.capacities_bps.push(capacity * 1e6);
            self.write(format_args!(
                "[[link]]\nfrom = \"r{router}\"\nto = \"r{}\"\ncapacity = \"{capacity} Mb/s\"\ndelay = \"{delay_ms:.6} ms\"\n\
                 discipline = \"gtp\"\nduplex = true\n",
                router + 1,
            ));
        }
    }

    /// Draws the demands of a session over time; returns the last one, in Mb/s.
    fn demands(&mut self, random: &mut RandomStream, family: Family, opens_ms: f64) -> f64 {
        let demand = |random: &mut RandomStream| match random.below(4) {
            0 | 1 => f64::INFINITY,
            2 if family == Family::Ties => [125.0, 250.0, 500.0][random.below(3) as usize],
            2 => random.uniform(1.0, 1000.0).round(),
            _ => random.uniform(1.0, 50.0).round(),
        };
        let rate = |mbps: f64| if mbps.is_finite() { format!("{mbps} Mb/s") } else { "inf".to_owned() };
        let mut last = demand(random);
        let steps = if family == Family::Ties { 0 } else { random.below(3) };
        if steps == 0 {
            if last.is_finite() {
                self.write(format_args!("demand = \"{}\"\n", rate(last)));
            }
            return last;
        }
        let mut text = format!("[\"0 s\", \"{}\"]", rate(last));
        let mut at_ms = opens_ms;
        for _ in 0..steps {
            at_ms += random.uniform(1.0, 300.0).floor();
            last = demand(random);
            write!(text, ", [\"{at_ms} ms\", \"{}\"]", rate(last)).expect("a String");
            self.changed_ms = self.changed_ms.max(at_ms);
        }
        self.write(format_args!("demand = [{text}]\n"));
        last
    }
}
