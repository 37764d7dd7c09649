//! The relay as a command: a network with delay and loss between namespaces that exist already. As root:
//!
//! ```text
//! ip netns add a; ip netns add b
//! cargo run --release --package fairwave-wan --example relay -- a:delay_ms=30,loss=0.00025 b
//! ip netns exec a ping 10.66.1.1
//! ```
//!
//! Host number N has the addresses 10.66.N.1 and fd66:0:0:N::1. A line on standard input, `a:loss=0.01` for example,
//! changes only the parameters that it names; `a:after_ms=500,loss=0.01` does so exactly half a second after it was
//! read. The relay runs until its standard input ends, and then prints the traffic that it carried, its precision and
//! its cost, and as JSON the fate of packets by host.

use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use fairwave_wan::{Direction, Port, Relay, Report, Space, Way};

const USAGE: &str = "usage: relay [--seed N] NAMESPACE[:KEY=VALUE,...]...
  device_mtu=1500   MTU of the host's device, from the beginning
  delay_ms=30       each way
  loss=0.001        share of packets lost on the way from the host; likewise duplicate=, late= with late_by_ms=
  drop_above=1400   larger IP packets vanish on the way from the host
  rate_mbps=700     toward the host, with queue_bytes=1000000
  mark_bytes=50000  who finds more than that in the queue is marked (ECN)
  even=1            packets of one large one take their turns at the rate one by one
A line NAMESPACE:KEY=VALUE,... on standard input changes a host's keys; with after_ms=N before them, so much later.";

/// A host of the command line.
struct Host {
    space: String,
    device_mtu: u32,
    up: Way,
    down: Way,
}

fn main() -> ExitCode {
    let (seed, mut hosts) = match read_arguments(std::env::args().skip(1)) {
        Ok(read) => read,
        Err(error) => {
            eprintln!("relay: {error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(seed, &mut hosts) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("relay: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(seed: u64, hosts: &mut [Host]) -> io::Result<()> {
    let mut spaces = Vec::new();
    let mut ports = Vec::new();
    for (number, host) in hosts.iter().enumerate() {
        let space = Space::named(&host.space)?;
        ports.push(Port::new(&space, number, host.device_mtu)?);
        spaces.push(space);
    }
    let relay = Relay::start(ports, seed)?;
    for (number, host) in hosts.iter().enumerate() {
        set(&relay, Instant::now(), number, host);
    }
    let addresses: Vec<_> =
        (0..hosts.len()).map(|number| fairwave_wan::address(number, 1, false).to_string()).collect();
    println!("ready: {}", addresses.join(" "));
    for line in io::stdin().lines() {
        let (line, at) = (line?, Instant::now());
        let (space, options) = line.split_once(':').unwrap_or((&line, ""));
        let number = hosts.iter().position(|host| host.space == space);
        let number = number.ok_or_else(|| io::Error::other(format!("there is no host \"{space}\"")))?;
        let (after, options) = read_after(options).map_err(io::Error::other)?;
        hosts[number].read(options).map_err(io::Error::other)?;
        set(&relay, at + after, number, &hosts[number]);
    }
    let mut overflows = 0;
    for (number, space) in spaces.iter().enumerate() {
        overflows += fairwave_wan::overflows(space, number)?;
    }
    let report = relay.stop()?;
    eprintln!("{report}; {overflows} overflowed a device's queue");
    print_report(&report, overflows);
    Ok(())
}

fn set(relay: &Relay, at: Instant, number: usize, host: &Host) {
    relay.set_at(at, number, Direction::Up, host.up);
    relay.set_at(at, number, Direction::Down, host.down);
}

/// Splits off the delay after which a line applies.
fn read_after(options: &str) -> Result<(Duration, &str), String> {
    let Some(words) = options.strip_prefix("after_ms=") else { return Ok((Duration::ZERO, options)) };
    let (word, rest) = words.split_once(',').unwrap_or((words, ""));
    let after_ms: f64 = word.parse().map_err(|_| format!("after_ms: \"{word}\" is no number"))?;
    if !(0.0..=1e9).contains(&after_ms) {
        return Err(format!("after_ms: {word} must be from 0 to 10^9"));
    }
    Ok((Duration::from_secs_f64(after_ms / 1e3), rest))
}

/// One line of JSON: the fate of packets, in slots of some milliseconds, and the precision.
fn print_report(report: &Report, overflows: u64) {
    let mut flows = Vec::new();
    for (from, row) in report.flows.iter().enumerate() {
        for (to, flow) in row.iter().enumerate().filter(|(_, flow)| flow.bytes + flow.lost + flow.queue_drops > 0) {
            flows.push(serde_json::json!({
                "from": from, "to": to, "bytes": flow.bytes, "packets": flow.packets, "lost": flow.lost,
                "queue_drops": flow.queue_drops, "held_back": flow.held_back, "marked": flow.marked,
                "slots_bytes": flow.slots,
            }));
        }
    }
    let milliseconds = |time: &Duration| time.as_secs_f64() * 1e3;
    let waits = report.waits.iter().enumerate().filter(|(_, ways)| !ways[Direction::Down as usize].is_empty());
    let queues: Vec<_> = waits
        .map(|(host, ways)| {
            let waits: Vec<_> = ways[Direction::Down as usize].iter().map(milliseconds).collect();
            serde_json::json!({ "to": host, "waits_ms": waits })
        })
        .collect();
    let late_by = |share| milliseconds(&report.late_by(share));
    println!(
        "{}",
        serde_json::json!({
            "slot_ms": milliseconds(&Report::SLOT), "flows": flows, "queues": queues,
            "late_ms": { "half": late_by(0.5), "p99": late_by(0.99), "p999": late_by(0.999) },
            "overflows": overflows, "refused": report.refused,
        })
    );
}

fn read_arguments(mut arguments: impl Iterator<Item = String>) -> Result<(u64, Vec<Host>), String> {
    let (mut seed, mut hosts) = (1, Vec::new());
    while let Some(argument) = arguments.next() {
        if argument == "--seed" {
            let word = arguments.next().unwrap_or_default();
            seed = word.parse().map_err(|_| format!("--seed \"{word}\" is no number"))?;
        } else {
            hosts.push(read_host(&argument)?);
        }
    }
    if hosts.is_empty() || hosts.len() > 256 {
        return Err(format!("{} hosts: there must be 1 to 256", hosts.len()));
    }
    Ok((seed, hosts))
}

fn read_host(text: &str) -> Result<Host, String> {
    let (space, options) = text.split_once(':').unwrap_or((text, ""));
    let mut host = Host { space: space.to_owned(), device_mtu: 1500, up: Way::default(), down: Way::default() };
    // A queue of 1 MB, unless set otherwise.
    host.down.queue_bytes = 1_000_000;
    host.read(options)?;
    Ok(host)
}

impl Host {
    /// Applies the options that are named; the others stay unchanged.
    fn read(&mut self, options: &str) -> Result<(), String> {
        for option in options.split(',').filter(|option| !option.is_empty()) {
            let (key, word) = option.split_once('=').ok_or_else(|| format!("\"{option}\" has no value"))?;
            let value: f64 = word.parse().map_err(|_| format!("{key}: \"{word}\" is no number"))?;
            if !(0.0..=1e12).contains(&value) {
                return Err(format!("{key}: {word} must be from 0 to 10^12"));
            }
            let time = || Duration::from_secs_f64(value / 1e3);
            match key {
                "device_mtu" => self.device_mtu = value as u32,
                "delay_ms" => (self.up.delay, self.down.delay) = (time(), time()),
                "loss" => self.up.loss = value,
                "duplicate" => self.up.duplicate = value,
                "late" => self.up.late = value,
                "late_by_ms" => self.up.late_by = time(),
                "drop_above" => self.up.mtu = Some(value as usize),
                "rate_mbps" => self.down.rate_bps = Some(value * 1e6).filter(|rate| *rate > 0.0),
                "queue_bytes" => self.down.queue_bytes = value as u64,
                "mark_bytes" => self.down.mark_bytes = value as u64,
                "even" => self.down.is_even = value > 0.0,
                _ => return Err(format!("there is no \"{key}\"")),
            }
        }
        Ok(())
    }
}
