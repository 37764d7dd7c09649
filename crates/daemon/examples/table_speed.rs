//! Measures the cost of a tick over the given number of rows: `cargo run --release -p fairwave-daemon --example
//! table_speed -- 1000`.

#![allow(missing_docs)]

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration as StdDuration;

use fairwave_daemon::{Daemon, Settings};
use fairwave_host::control_socket::{CONTROL_VERSION, ControlStream, Question, monotonic_ns};
use fairwave_node::{CardCapacity, MachineLimits, Terms};
use fairwave_table::{ProcessRow, ProcessSegment, RowPlace, SegmentMemory, VERSION};
use fairwave_units::{Bytes, Duration, Rate, Time};

/// Rows of a process: as many as a segment has.
const A_PROCESS: usize = 250;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rows: usize = std::env::args().nth(1).map_or(Ok(1000), |text| text.parse())?;
    let socket = std::env::temp_dir().join(format!("table-speed-{}.sock", std::process::id()));
    let capacity = Some(Rate::gbps(10.0));
    let daemon = Daemon::start(Settings {
        everything: Some(CardCapacity { send: capacity, receive: capacity }),
        limits: MachineLimits { members_a_user: 1000, rows_a_user: 100_000, rows: 100_000 },
        ..Settings::at(socket.clone())
    })?;
    let mut processes: Vec<Process> = Vec::new();
    for begin in (0..rows).step_by(A_PROCESS) {
        processes.push(Process::come(&socket, A_PROCESS.min(rows - begin))?);
    }
    let until = std::time::Instant::now() + StdDuration::from_secs(8);
    while std::time::Instant::now() < until {
        for process in &mut processes {
            process.turn();
        }
        std::thread::sleep(StdDuration::from_millis(1));
    }
    let seen = daemon.snapshot();
    let (cost_us, interval_ms) = (seen.tick_cost_s * 1e6, seen.interval_s * 1e3);
    let share = seen.tick_cost_s / seen.interval_s * 100.0;
    println!("{} rows: a tick {cost_us:.0} us, each {interval_ms:.1} ms: {share:.2} % of a core", seen.sessions.len());
    println!("{} of {} ticks were late", seen.counts.late_ticks, seen.tick);
    Ok(())
}

struct Process {
    _stream: ControlStream,
    segment: ProcessSegment,
    places: Vec<(RowPlace, f64)>,
    pulse: u64,
}

impl Process {
    fn come(socket: &std::path::Path, rows: usize) -> Result<Self, Box<dyn std::error::Error>> {
        let mut stream = ControlStream::connect(socket)?;
        let command = "speed".to_owned();
        let join = Question::Join { version: CONTROL_VERSION, layout: VERSION, clock_ns: monotonic_ns(), command };
        let [rows_memory, grants] = stream.join(&join)?;
        let mut segment = ProcessSegment::map(SegmentMemory { rows: rows_memory, grants })?;
        let places = std::iter::from_fn(|| segment.take_row()).take(rows).map(|place| (place, 1.0)).collect();
        let process = Self { _stream: stream, segment, places, pulse: 0 };
        process.write();
        Ok(process)
    }

    fn turn(&mut self) {
        let pulse = self.segment.pulse();
        if pulse == self.pulse {
            return;
        }
        self.pulse = pulse;
        for (place, rate) in &mut self.places {
            *rate = self.segment.grant(*place).map_or(*rate, |grant| grant.expected.as_mbps());
        }
        self.write();
    }

    fn write(&self) {
        let now = Time::from_nanos(monotonic_ns());
        for (at, (place, rate)) in self.places.iter().enumerate() {
            let row = ProcessRow {
                generation: 0,
                session: at as u64,
                receives: false,
                measured: Rate::mbps(*rate),
                measured_at: now,
                // Some want little.
                terms: Terms { desired: (at % 3 == 0).then(|| Rate::mbps(0.5)), ..Terms::default() },
                rtt: Duration::from_millis(20),
                waiting: None,
                start: Rate::mbps(*rate),
                path: None,
                remote: None,
                limited_by: 1,
                peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
                wire_bytes: Bytes::ZERO,
                lost: 0,
                holding: None,
            };
            self.segment.set_row(*place, &row);
        }
    }
}
