//! The library's log, line by line on stderr, between the bars.

use std::io;
use std::str::FromStr;

use indicatif::MultiProgress;
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::output_args::OutputArgs;
use crate::common::terminal;

/// Says more than the options do: a level, or target=level, with commas between several.
const VARIABLE: &str = "FAIRWAVE_LOG";
/// Prefix of the targets of our own crates.
const OURS: &str = "fairwave";

/// Shows from now on what the options ask for. Only the first call of a process counts.
pub(super) fn start(multi: &MultiProgress, output: OutputArgs) {
    let asked = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
    let (targets, wrong) = match asked.as_deref().map(Targets::from_str) {
        Some(Ok(targets)) => (targets, None),
        Some(Err(error)) => (of_options(output), Some(error)),
        None => (of_options(output), None),
    };
    // Colour codes would look like the escapes of a file's name.
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(StderrLines { multi: multi.clone() });
    let is_first = tracing_subscriber::registry().with(targets).with(lines).try_init().is_ok();
    if let Some(error) = wrong.filter(|_| is_first) {
        terminal::note(&format!("ignoring {VARIABLE}: {error}; use a filter such as debug or fairwave_files=trace"));
    }
}

fn of_options(output: OutputArgs) -> Targets {
    let level = match output.verbose {
        _ if output.quiet => return Targets::new(),
        0 => Level::WARN,
        1 => Level::INFO,
        _ => Level::DEBUG,
    };
    Targets::new().with_default(Level::WARN).with_target(OURS, level)
}

/// Writes lines to stderr, the bars aside.
struct StderrLines {
    multi: MultiProgress,
}

/// A log line while it is assembled.
struct LogLine<'a> {
    multi: &'a MultiProgress,
    bytes: Vec<u8>,
}

impl<'a> MakeWriter<'a> for StderrLines {
    type Writer = LogLine<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        LogLine { multi: &self.multi, bytes: Vec::new() }
    }
}

impl io::Write for LogLine<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LogLine<'_> {
    fn drop(&mut self) {
        let text = String::from_utf8_lossy(&self.bytes);
        // Control characters in names are removed there.
        self.multi.suspend(|| terminal::say(text.trim_end()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_options__says_more_the_more_often_it_is_asked() {
        let shows = |output: OutputArgs, target: &str, level: Level| of_options(output).would_enable(target, &level);
        let verbose = |times| OutputArgs { verbose: times, ..OutputArgs::default() };
        assert!(shows(verbose(0), "fairwave_host::keyring", Level::WARN));
        assert!(!shows(verbose(0), "fairwave_host::driver", Level::INFO));
        assert!(shows(verbose(1), "fairwave_host::driver", Level::INFO));
        assert!(!shows(verbose(1), "fairwave_host::driver", Level::DEBUG));
        assert!(shows(verbose(2), "fairwave_host::driver", Level::DEBUG));
        assert!(!shows(verbose(2), "quinn_udp", Level::INFO));
        assert!(!shows(OutputArgs { quiet: true, ..OutputArgs::default() }, "fairwave_host::keyring", Level::ERROR));
    }
}
