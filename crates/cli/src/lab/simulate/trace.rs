//! `--trace`: what happens to every packet, as CSV or as pcapng.

mod headers;
mod pcapng;

use std::io::{self, Write};
use std::path::Path;

use fairwave_scenario::{Scenario, TraceEvent, csv};

use crate::common::failure::CommandFailure;
use pcapng::Pcapng;

/// The form of a trace, from the ending of its file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Csv,
    Pcapng,
}

impl Format {
    pub(super) fn of(path: &Path) -> Result<Self, CommandFailure> {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
        if ending.eq_ignore_ascii_case("csv") {
            Ok(Self::Csv)
        } else if ending.eq_ignore_ascii_case("pcapng") {
            Ok(Self::Pcapng)
        } else {
            Err(CommandFailure::usage(
                format!("--trace {}: unknown file name extension", path.display()),
                "use .pcapng (for Wireshark) or .csv",
            ))
        }
    }
}

/// Writes a trace as the run goes; it keeps nothing but the last buffer.
pub(super) struct Trace<'a> {
    scenario: &'a Scenario,
    form: Form<'a>,
    failed: Option<io::Error>,
}

enum Form<'a> {
    Csv(&'a mut dyn Write),
    Pcapng(Pcapng<'a>),
}

impl<'a> Trace<'a> {
    pub(super) fn begin(format: Format, scenario: &'a Scenario, out: &'a mut dyn Write) -> io::Result<Self> {
        let form = match format {
            Format::Csv => {
                csv::write_trace_head(out)?;
                Form::Csv(out)
            }
            Format::Pcapng => Form::Pcapng(Pcapng::begin(scenario, out)?),
        };
        Ok(Self { scenario, form, failed: None })
    }

    /// Takes what happened. After an error it writes nothing more, and [`Trace::end`] has it.
    pub(super) fn on_event(&mut self, event: &TraceEvent<'_>) {
        if self.failed.is_some() {
            return;
        }
        let done = match &mut self.form {
            Form::Csv(out) => csv::write_trace_event(self.scenario, event, out),
            Form::Pcapng(pcapng) => pcapng.write(self.scenario, event),
        };
        self.failed = done.err();
    }

    pub(super) fn end(self) -> io::Result<()> {
        self.failed.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format__is_the_ending() {
        assert_eq!(Format::of(Path::new("a/b.CSV")).ok(), Some(Format::Csv));
        assert_eq!(Format::of(Path::new("b.pcapng")).ok(), Some(Format::Pcapng));
        for name in ["b.pcap", "pcapng", "b"] {
            let failure = Format::of(Path::new(name)).unwrap_err();
            assert_eq!(failure.code(), 2);
            assert!(failure.message().unwrap().contains(name));
        }
    }
}
