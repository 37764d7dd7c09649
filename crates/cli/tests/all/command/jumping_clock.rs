//! Transfers of processes whose wall clock jumps; that of the machine stays as it is.

use std::path::PathBuf;
use std::time::Instant;

use super::gate::Gate;
use super::user::{Host, bytes};
use super::*;

const HOUR_S: i64 = 3600;

/// The wall clock of a host's commands.
struct WallClock {
    told_by: PathBuf,
}

impl WallClock {
    /// Its library is one small file: every machine that builds Fairwave has the compiler for it.
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

    /// Sets its offset from the machine's clock, seconds.
    fn jump_to(&self, seconds: i64) {
        let new = self.told_by.with_extension("new");
        std::fs::write(&new, seconds.to_string()).expect("the place takes files");
        std::fs::rename(&new, &self.told_by).expect("both are in the place");
    }
}

/// Seconds since a transfer started, as it counts them, and bytes received.
fn moment(event: &Value) -> (f64, u64) {
    assert_eq!(event["event"], "progress", "it is over: {event}");
    let bytes = |key: &str| event[key].as_u64().expect("a number");
    // Bytes of an incomplete block count as well.
    (event["elapsed_s"].as_f64().expect("a number"), bytes("bytes_done") + bytes("bytes_held"))
}

/// Transfers use the monotonic clock. Otherwise a jump would end their sessions, or their patience.
#[test]
fn clock__jumps_of_an_hour_disturb_no_transfer() {
    let mut host = Host::new();
    let clock = WallClock::of(&mut host);
    let content = bytes(3_000_000);
    host.write("big.bin", &content);
    let gate = Gate::new(0);
    let serve = gate.serve(&host, &["big.bin", "--expires", "2 h"]);
    let begin = Instant::now();
    let mut get = host.start(&["get", &serve.at(), "to", "--json", "--retry", "0 s"]);
    let mut last = (0.0, 0);
    for (number, jump) in (1..).zip([0, HOUR_S, -HOUR_S, HOUR_S]) {
        clock.jump_to(jump);
        gate.pass(400_000);
        get.wait_for(|event| {
            let now = moment(event);
            assert!(now.0 >= last.0, "{event}");
            last = now;
            // More than passed before.
            now.1 > number * 300_000
        });
        assert!(last.0 <= begin.elapsed().as_secs_f64(), "{last:?}");
    }
    gate.open();
    let mut done = Value::Null;
    get.wait_for(|event| {
        done = event.clone();
        event["event"] == "done"
    });
    assert_eq!(done["reconnects"], 0, "{done}");
    assert!(std::fs::read(host.path("to/big.bin")).expect("it is there") == content);
    // The processes see that clock: a ticket ends by it, and nothing else does.
    clock.jump_to(2 * HOUR_S + 1);
    let late = host.run(&["get", &serve.at(), "late"]);
    assert_eq!(late.code(), Some(1), "{}", late.stderr());
    assert!(late.stderr().contains("the ticket has expired"), "{}", late.stderr());
    clock.jump_to(-HOUR_S);
    host.run(&["get", &serve.at(), "early"]).good();
}
