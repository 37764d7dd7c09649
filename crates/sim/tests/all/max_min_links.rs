//! Schemes whose sources follow one link each, `maxnet`, `mkc`, `emkc` and `jetmax-share`: their rules by themselves on
//! random networks, and packet by packet compared with their closed forms.

#![allow(non_snake_case)]

use std::fmt::Write;

use fairwave_scenario::random::stream;
use fairwave_scenario::{Document, Run, Selection, Settings};
use fairwave_schemes::global::{Paths, Problem, max_min};
use fairwave_schemes::header::{CongestionHeader, JetmaxHeader, LinkId};
use fairwave_schemes::link::{LinkController, LinkSetup, Passage, link_controller};
use fairwave_schemes::scheme::{OptionValue, Options, find};
use fairwave_schemes::session::{CongestionController, Feedback, Sending, controller};
use fairwave_sim::simulate;
use fairwave_units::{Duration, Rate, Time};

/// Round-trip time of all sessions and interval of all links.
const STEP: Duration = Duration::from_millis(100);
/// Packets are of one byte, so that the least rates are near zero.
const PACKET_BYTES: u32 = 1;

/// `jetmax-share` without packets: in each step every session sends one that stands for the whole step.
struct Network {
    links: Vec<Box<dyn LinkController>>,
    sources: Vec<Box<dyn CongestionController>>,
    paths: Vec<Vec<u32>>,
    now: Time,
}

impl Network {
    /// Links of these capacities in Gb/s, and the links of each session.
    fn new(capacities: &[f64], paths: Vec<Vec<u32>>, hysteresis: f64) -> Self {
        let mut options = Options::default();
        for (name, value) in [("target", 1.0), ("hysteresis", hysteresis)] {
            let option = find("jetmax-share").unwrap().option(name).unwrap();
            options.set(option, OptionValue::Number(value));
        }
        let links = capacities.iter().zip(0..).map(|(gbps, id)| {
            let (id, capacity) = (LinkId::of(id), Rate::mbps(1e3 * gbps));
            let setup = LinkSetup { id, capacity, packet_bytes: PACKET_BYTES, phase: 0.5 };
            link_controller("jetmax-share", &options, &setup).unwrap()
        });
        let sources = paths.iter().map(|_| controller("jetmax-share", &options).unwrap());
        Self { links: links.collect(), sources: sources.collect(), paths, now: Time::ZERO }
    }

    /// The header that a session sends.
    fn header(&self, session: usize) -> JetmaxHeader {
        let sending = Sending { smoothed_rtt: None, window_packets: 1 };
        match self.sources[session].header(&sending) {
            Some(CongestionHeader::Jetmax(header)) => header,
            other => panic!("{other:?}"),
        }
    }

    fn answer(&mut self, session: usize, header: JetmaxHeader) {
        let header = CongestionHeader::Jetmax(header);
        let (now, packet_bytes) = (self.now, PACKET_BYTES);
        let feedback = Feedback { now, header, smoothed_rtt: STEP, packet_bytes, window_limited: true };
        self.sources[session].on_feedback(&feedback);
    }

    /// Every session names its first link, at a rate near zero.
    fn begin(&mut self) {
        for session in 0..self.sources.len() {
            let (least, least_bps) = (LinkId::of(self.paths[session][0]), 1.0);
            self.answer(session, JetmaxHeader { least, least_bps, ..self.header(session) });
        }
    }

    /// The rates after one step, in Gb/s.
    fn step(&mut self) -> Vec<f64> {
        for session in 0..self.sources.len() {
            let header = self.header(session);
            let bytes = (header.rate_bps * STEP.as_secs_f64() / 8.0).round() as u32;
            let whole = CongestionHeader::Jetmax(JetmaxHeader { interval_s: STEP.as_secs_f64(), ..header });
            let passage = Passage { now: self.now, bytes, is_data: true, queue_bytes: 0 };
            for link in &self.paths[session] {
                self.links[*link as usize].on_arrival(&passage, Some(&whole));
            }
        }
        self.now += STEP;
        for link in &mut self.links {
            link.on_timer(self.now, 0);
        }
        for session in 0..self.sources.len() {
            let mut header = CongestionHeader::Jetmax(self.header(session));
            let passage = Passage { now: self.now, bytes: PACKET_BYTES, is_data: true, queue_bytes: 0 };
            for link in &self.paths[session] {
                self.links[*link as usize].on_departure(&passage, Some(&mut header));
            }
            let CongestionHeader::Jetmax(header) = header else { unreachable!("links change fields only") };
            self.answer(session, header);
        }
        (0..self.sources.len()).map(|session| self.header(session).rate_bps / 1e9).collect()
    }
}

#[test]
fn jetmax_share__two_links_follow_the_arithmetic() {
    let mut network = Network::new(&[50.0, 25.0], vec![vec![0, 1], vec![0], vec![1]], 0.02);
    network.begin();
    let steps: Vec<_> = (0..6).map(|_| network.step()).collect();
    // Step 1: the first link counts two sessions, 0.6 x 25; the first session is offered (25 + x) / 2 by the second
    // link and names that. Step 2: 15 - 0.6 (15 - 12.5), and 15 + 0.6 (50 - 15 - 15).
    let expected = [
        (1, [15.0, 15.0, 15.0]),
        (2, [13.5, 27.0, 13.5]),
        (3, [12.9, 32.7, 12.9]),
        (4, [12.66, 35.34, 12.66]),
        (6, [12.526, 37.078, 12.526]),
    ];
    for (step, rates) in expected {
        for (got, expected) in steps[step - 1].iter().zip(rates) {
            assert!((got - expected).abs() < 1e-3, "step {step}: {:?}", steps[step - 1]);
        }
    }
}

/// 2 to 8 links of 10 to 100 Gb/s, and up to four sessions per link, each over 1 to 4 links.
fn random_network(seed: u64) -> (Vec<f64>, Vec<Vec<u32>>) {
    let random = &mut stream(seed, "jetmax-share");
    let links = 2 + random.below(7);
    let capacities = (0..links).map(|_| random.uniform(10.0, 100.0)).collect();
    let mut path = || {
        let mut left: Vec<u32> = (0..links as u32).collect();
        let hops = 1 + random.below(links.min(4));
        (0..hops).map(|_| left.swap_remove(random.below(left.len() as u64) as usize)).collect()
    };
    let paths = (0..4 * links).map(|_| path()).collect();
    (capacities, paths)
}

/// Largest distance from max-min in the session's own rate, after a number of steps.
fn distance(seed: u64, hysteresis: f64, steps: usize) -> f64 {
    let (capacities, paths) = random_network(seed);
    let mut offsets = vec![0];
    for path in &paths {
        offsets.push(offsets[offsets.len() - 1] + path.len());
    }
    let resources: Vec<u32> = paths.iter().flatten().copied().collect();
    let optimum =
        max_min(&Problem::new(&capacities, Paths::Lists { offsets: &offsets, resources: &resources })).unwrap();
    let mut network = Network::new(&capacities, paths, hysteresis);
    network.begin();
    for _ in 1..steps {
        network.step();
    }
    let rates = network.step();
    let off = rates.iter().zip(&optimum.rates_bps).map(|(rate, best)| (rate / best - 1.0).abs());
    off.fold(0.0, f64::max)
}

#[test]
fn jetmax_share__is_max_min_on_random_networks() {
    // With its hysteresis a source may stay with a link that offers it up to that much more than another.
    for (hysteresis, within) in [(1e-9, 1e-6), (0.02, 0.02)] {
        for seed in 0..200 {
            let off = distance(seed, hysteresis, 100);
            assert!(off < within, "seed {seed}, hysteresis {hysteresis}: {off}");
        }
    }
}

fn run(text: &str, window_s: (u64, u64)) -> Run {
    let document = Document::parse("test.toml", text.as_bytes()).unwrap();
    let case = document.cases(&Selection::default()).unwrap().remove(0);
    let (scenario, _) = document.build(&case).unwrap();
    let window = Some((Time::from_secs(window_s.0), Time::from_secs(window_s.1)));
    simulate(&scenario, Settings { window, ..Settings::default() }).unwrap()
}

/// Routers r1, r2, ... with links of these capacities between them, and sessions by the numbers of their ends.
fn line(scheme: &str, options: &str, links_mbps: &[f64], sessions: &[(usize, usize)]) -> String {
    let mut text = format!(
        "name = \"line\"\nduration = \"60 s\"\nscheme = \"{scheme}\"\n[packet]\npayload = \"960 B\"\n\
         [options]\n{options}\n[[router]]\nname = \"r{{1..{}}}\"\n",
        links_mbps.len() + 1
    );
    for (from, mbps) in (1..).zip(links_mbps) {
        let to = from + 1;
        write!(
            text,
            "[[link]]\nfrom = \"r{from}\"\nto = \"r{to}\"\ncapacity = \"{mbps} Mb/s\"\ndelay = \"10 ms\"\nduplex = true\n"
        )
        .unwrap();
    }
    for (session, (from, to)) in sessions.iter().enumerate() {
        write!(
            text,
            "[[node]]\nname = \"a{session}\"\nrouter = \"r{from}\"\n[[node]]\nname = \"b{session}\"\nrouter = \"r{to}\"\n\
             [[session]]\nfrom = \"a{session}\"\nto = \"b{session}\"\nstart = \"{} ms\"\n",
            session * 37
        )
        .unwrap();
    }
    text
}

/// A session over three links of 50, 25 and 50 Mb/s, and one on each.
fn parking_lot(scheme: &str, options: &str) -> Run {
    run(&line(scheme, options, &[50.0, 25.0, 50.0], &[(1, 4), (1, 2), (2, 3), (3, 4)]), (40, 60))
}

fn assert_rates(what: &str, run: &Run, mbps: &[f64], within: f64) {
    let rates: Vec<_> = run.summary.sessions.iter().map(|session| session.wire_rate_bps / 1e6).collect();
    println!("{what}: {rates:?}");
    for (rate, expected) in rates.iter().zip(mbps) {
        assert!((rate / expected - 1.0).abs() < within, "{what}: {rates:?}, not {mbps:?}");
    }
}

#[test]
fn parking_lot__is_max_min_within_the_target() {
    for scheme in ["maxnet", "jetmax-share"] {
        let run = parking_lot(scheme, "");
        // 98 % of 12.5 and 37.5 Mb/s.
        assert_rates(scheme, &run, &[12.25, 36.75, 12.25, 36.75], 0.01);
        for link in &run.summary.links {
            assert!(link.mean_queue_packets < 2.0, "{scheme}: {}", link.mean_queue_packets);
        }
    }
}

/// At rest alpha = beta p x at the link with the largest loss. With 90 % of the capacities as targets nothing is lost:
/// 2 x - 22.5 = 0.4 + 0.4 at the second link, and at the others x (11.65 + x - 45) = 0.4 (11.65 + x).
#[test]
fn emkc__parking_lot_rests_at_its_closed_form() {
    for scheme in ["mkc", "emkc"] {
        let run = parking_lot(scheme, "target = 0.9\ninterval = \"50 ms\"");
        assert_rates(scheme, &run, &[11.65, 33.887, 11.65, 33.887], 0.02);
    }
}

/// N alpha / (beta C + N alpha) = 0.4 / 5.4 of the packets are lost for good.
#[test]
fn emkc__loses_its_share_at_rest() {
    let run = run(&line("emkc", "", &[10.0], &[(1, 2), (1, 2)]), (40, 60));
    let sent = run.summary.sessions.iter().map(|session| session.sent_packets as f64);
    let lost: u64 = run.summary.sessions.iter().map(|session| session.lost_packets).sum();
    let [one, other] = sent.collect::<Vec<_>>()[..] else { panic!("two sessions") };
    println!("{one} and {other} sent, {lost} lost");
    assert!((one / other - 1.0).abs() < 0.03, "{one} {other}");
    let share = lost as f64 / (one + other);
    assert!((share - 0.0741).abs() < 0.003, "{share}");
    assert!(run.summary.links[0].utilisation > 0.999);
}

/// n equal links with a session each and one over all: MaxNet gives that one half, whatever n is; the sum of prices
/// would give it 1 / (n + 1).
#[test]
fn maxnet__a_session_over_many_links_gets_half() {
    let run = run(&line("maxnet", "", &[30.0; 3], &[(1, 4), (1, 2), (2, 3), (3, 4)]), (40, 60));
    assert_rates("maxnet", &run, &[14.7; 4], 0.01);
}
