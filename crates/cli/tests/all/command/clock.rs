//! Transfers of processes whose wall clock jumps; that of the machine stays as it is.

use std::path::PathBuf;
use std::time::Duration;

use super::host::{Host, Process, bytes};
use super::*;

/// Megabytes a second that the transfer is limited to: what a busy machine moves as well.
const LIMIT_MB_PER_S: f64 = 2.0;
const HOUR_S: i64 = 3600;

/// The wall clock of a host's commands.
struct WallClock {
    told_by: PathBuf,
}

impl WallClock {
    /// Its library is small and of one file: whoever can build Fairwave has the compiler that it takes.
    fn of(host: &mut Host) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/command/jumping_clock.c");
        let library = host.path("jumping_clock.so");
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let mut command = Command::new(&compiler);
        command.args(["-shared", "-fPIC", "-o"]).args([&library, &source]);
        let done = command.output().unwrap_or_else(|error| panic!("{}: {error}", compiler.display()));
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let clock = Self { told_by: host.path("jump") };
        clock.jump_to(0);
        host.preload(library, clock.told_by.clone());
        clock
    }

    /// From now on it is so many seconds ahead of the machine's.
    fn jump_to(&self, seconds: i64) {
        let new = self.told_by.with_extension("new");
        std::fs::write(&new, seconds.to_string()).expect("the place takes files");
        std::fs::rename(&new, &self.told_by).expect("both are in the place");
    }
}

/// Megabytes a second that a transfer makes in the next two seconds and some.
fn rate(get: &mut Process) -> f64 {
    let mut moments = Vec::new();
    get.wait_for(|event| {
        assert_eq!(event["event"], "progress", "it is over: {event}");
        let number = |key: &str| event[key].as_f64().expect("a number");
        // What came of a block that is not whole counts, too.
        moments.push((number("elapsed_s"), number("bytes_done") + number("bytes_held")));
        moments.last().expect("pushed above").0 - moments[0].0 >= 2.0
    });
    let (first, last) = (moments[0], moments.last().expect("there are two"));
    (last.1 - first.1) / (last.0 - first.0) / 1e6
}

#[test]
fn clock__jumps_of_an_hour_disturb_no_transfer() {
    let mut host = Host::new();
    let clock = WallClock::of(&mut host);
    let content = bytes(24_000_000);
    host.write("big.bin", &content);
    let serve = host.serve(&["big.bin", "--listen", "127.0.0.1:0", "--expires", "2 h"]);
    let mut get = host.start(&["get", &serve.at(), "to", "--json", "--limit", "16 Mb/s"]);
    let rates = [0, HOUR_S, -HOUR_S, HOUR_S].map(|jump| {
        clock.jump_to(jump);
        rate(&mut get)
    });
    println!("MB/s at 0 h, 1 h, -1 h, 1 h: {rates:.1?}");
    assert!(rates.iter().all(|rate| *rate > 0.5 * LIMIT_MB_PER_S && *rate < 1.5 * LIMIT_MB_PER_S), "{rates:?}");
    get.wait_for(|event| event["event"] == "done");
    assert!(std::fs::read(host.path("to/big.bin")).expect("it is there") == content);
    // The processes see that clock: a ticket ends by it, and nothing else does.
    clock.jump_to(2 * HOUR_S + 1);
    std::thread::sleep(Duration::from_millis(10));
    let late = host.run(&["get", &serve.at(), "late"]);
    assert_eq!(late.code(), Some(1), "{}", late.stderr());
    assert!(late.stderr().contains("the ticket has expired"), "{}", late.stderr());
    clock.jump_to(-HOUR_S);
    host.run(&["get", &serve.at(), "early"]).good();
}
