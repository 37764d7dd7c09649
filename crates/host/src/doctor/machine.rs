//! Checks of the resources of a process: clocks, descriptors, instructions, a state directory.

use std::fs;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Resource, getrlimit};

use super::check::Check;
use crate::state::{StateDir, StateError};

const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// Reading them takes a microsecond or more, and each packet reads the clock.
const SLOW_CLOCKS: [&str; 4] = ["hpet", "acpi_pm", "jiffies", "pit"];
/// How long the two clocks are compared.
const WATCHED: Duration = Duration::from_millis(200);
const STEP: Duration = Duration::from_millis(5);
const SLEEPS: usize = 60;
const SLEEP: Duration = Duration::from_micros(500);
/// Later than that, packets go in bursts.
const LATE: Duration = Duration::from_millis(2);
/// Descriptors that a transfer of many small files may have open.
const DESCRIPTORS: u64 = 1024;

/// Whether the clock is read without asking slow hardware.
pub(super) fn clock_source() -> Check {
    const NAME: &str = "clock source";
    match fs::read_to_string(CLOCK_SOURCE) {
        Ok(source) if SLOW_CLOCKS.contains(&source.trim()) => Check::warn(
            NAME,
            format!("{}: slow to read", source.trim()),
            format!("echo tsc | sudo tee {CLOCK_SOURCE} (unless dmesg reports an unstable TSC)"),
        ),
        Ok(source) => Check::ok(NAME, source.trim()),
        Err(_) => Check::ok(NAME, "unknown"),
    }
}

/// Whether the time of day jumps, which ends tickets early or late.
#[expect(clippy::disallowed_methods, reason = "it compares both clocks")]
pub(super) fn clock_steps() -> Check {
    const NAME: &str = "clock jumps";
    let (begin, day) = (Instant::now(), SystemTime::now());
    std::thread::sleep(WATCHED);
    let (steady, day) = (begin.elapsed(), day.elapsed());
    let step = day.map_or_else(|back| steady + back.duration(), |day| day.abs_diff(steady));
    let seen = format!("the system clock drifted by {:.1} ms from the monotonic clock", step.as_secs_f64() * 1e3);
    if step < STEP {
        Check::ok(NAME, seen)
    } else {
        Check::warn(NAME, seen, "use one time service: timedatectl set-ntp true")
    }
}

/// How late a thread wakes, which bounds how smoothly packets are sent.
pub(super) fn sleeps() -> Check {
    const NAME: &str = "timers";
    let mut late: Vec<_> = (0..SLEEPS)
        .map(|_| {
            let begin = Instant::now();
            std::thread::sleep(SLEEP);
            begin.elapsed().saturating_sub(SLEEP)
        })
        .collect();
    late.sort_unstable();
    let (median, worst) = (late[SLEEPS / 2], late[SLEEPS - 1]);
    let seen = format!("timers fire {} us late, at most {} us", median.as_micros(), worst.as_micros());
    if median < LATE {
        Check::ok(NAME, seen)
    } else {
        Check::warn(NAME, seen, "reduce other load: packets leave in bursts while the CPU is busy")
    }
}

/// How many files a process may have open.
pub(super) fn descriptors() -> Check {
    const NAME: &str = "open files";
    match getrlimit(Resource::Nofile).current {
        Some(most) if most < DESCRIPTORS => {
            Check::warn(NAME, format!("{most} per process"), format!("ulimit -n {DESCRIPTORS}"))
        }
        Some(most) => Check::ok(NAME, format!("{most} per process")),
        None => Check::ok(NAME, "no limit"),
    }
}

/// Whether the processor has instructions for what seals packets.
pub(super) fn sealing() -> Check {
    const NAME: &str = "AES instructions";
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    let has = std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    let has = std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    let has = false;
    if has {
        Check::ok(NAME, "present")
    } else {
        Check::warn(NAME, "absent: encryption is slow", "use --plain at both ends if the network is private")
    }
}

/// Whether the state directory can be used.
pub(super) fn state(state: Result<&StateDir, &StateError>) -> Check {
    const NAME: &str = "state directory";
    let probe = |state: &StateDir| -> Result<(), String> {
        let _lock = state.lock("doctor").map_err(|error| error.to_string())?;
        state.write("doctor", b"").map_err(|error| error.to_string())?;
        for name in ["doctor", "doctor.lock"] {
            fs::remove_file(state.path().join(name)).map_err(|error| error.to_string())?;
        }
        Ok(())
    };
    let outcome = match state {
        Ok(state) => probe(state).map(|()| state.path().display().to_string()),
        Err(error) => Err(error.to_string()),
    };
    match outcome {
        Ok(path) => Check::ok(NAME, path),
        Err(error) => {
            Check::fail(NAME, error, "choose a directory that you own: export XDG_STATE_HOME=\"$HOME/state\"")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn state__one_that_can_be_used_is_named_and_left_as_it_was() {
        let place = tempfile::tempdir().unwrap();
        let found = StateDir::at(place.path());
        let check = state(found.as_ref());
        assert_eq!((check.verdict, check.seen), (Verdict::Ok, place.path().display().to_string()));
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn state__one_that_cannot_fails_with_the_reason() {
        let check = state(Err(&StateError::NoHome));
        assert_eq!(check.verdict, Verdict::Fail);
        assert!(check.seen.contains("XDG_STATE_HOME"), "{check:?}");
    }
}
