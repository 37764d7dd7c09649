//! The tables of a [`Run`] as CSV text: `rates.csv`, `queues.csv`, `windows.csv`, `losses.csv`, `completions.csv`; and
//! packet traces.
//!
//! Times are the ends of the samples, numbers have the fewest digits that read back to the same number, a column that
//! does not apply to a scheme is empty. Fields are quoted as in RFC 4180 if a name needs it.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use fairwave_units::Time;

use crate::{CompletionSummary, Run, Scenario, SlowdownSummary, TraceContent, TraceEvent, TraceOwner};

/// Writes `rates.csv`: a row per sample and session, sample by sample. Only the header if rates were not recorded.
///
/// `expected_bps` is the smaller of the source's and the sink's expected rates.
pub fn write_rates(run: &Run, out: &mut impl Write) -> io::Result<()> {
    out.write_all(
        b"time_s,session,rate_bps,wire_rate_bps,expected_bps,source_expected_bps,sink_expected_bps,target_bps,\
          measured_bps\n",
    )?;
    let Some(rates) = &run.rates else { return Ok(()) };
    let names: Vec<_> = run.summary.sessions.iter().map(|session| field(&session.name)).collect();
    for (sample, end) in rates.ends.iter().enumerate() {
        let end = seconds(*end);
        for (session, name) in names.iter().enumerate() {
            let at = sample * rates.sessions + session;
            let rate = entry(&rates.rate_bps, at);
            let wire = if rates.wire_rate_bps.is_empty() { rate } else { entry(&rates.wire_rate_bps, at) };
            let (source, sink) = (entry(&rates.source_expected_bps, at), entry(&rates.sink_expected_bps, at));
            let expected = Number(rates.expected_bps(sample, session));
            let (target, measured) = (entry(&rates.target_bps, at), entry(&rates.measured_bps, at));
            writeln!(out, "{end},{name},{rate},{wire},{expected},{source},{sink},{target},{measured}")?;
        }
    }
    Ok(())
}

/// Writes `queues.csv`: a row per sample and link, sample by sample. Only the header if queues were not recorded. The
/// last column is written only if a queue marks.
pub fn write_queues(run: &Run, out: &mut impl Write) -> io::Result<()> {
    let marked = run.queues.as_ref().map_or(&[][..], |queues| &queues.marked_packets);
    let marks = if marked.is_empty() { "" } else { ",marked_packets" };
    writeln!(out, "time_s,link,queue_packets,queue_bytes,dropped_packets{marks}")?;
    let Some(queues) = &run.queues else { return Ok(()) };
    let names: Vec<_> = run.summary.links.iter().map(|link| field(&link.name)).collect();
    for (sample, end) in queues.ends.iter().enumerate() {
        let end = seconds(*end);
        for (link, name) in names.iter().enumerate() {
            let at = sample * queues.links + link;
            let (packets, bytes) = (entry(&queues.queue_packets, at), entry(&queues.queue_bytes, at));
            let dropped = queues.dropped_packets.get(at).copied().unwrap_or_default();
            write!(out, "{end},{name},{packets},{bytes},{dropped}")?;
            match marked.get(at) {
                Some(marked) => writeln!(out, ",{marked}")?,
                None => writeln!(out)?,
            }
        }
    }
    Ok(())
}

/// Writes `windows.csv`: a row per sample and session, sample by sample. Only the header if windows were not recorded.
pub fn write_windows(run: &Run, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"time_s,session,cwnd_packets,ssthresh_packets\n")?;
    let Some(windows) = &run.windows else { return Ok(()) };
    let names: Vec<_> = run.summary.sessions.iter().map(|session| field(&session.name)).collect();
    for (sample, end) in windows.ends.iter().enumerate() {
        let end = seconds(*end);
        for (session, name) in names.iter().enumerate() {
            let at = sample * windows.sessions + session;
            let (cwnd, ssthresh) = (entry(&windows.cwnd_packets, at), entry(&windows.ssthresh_packets, at));
            writeln!(out, "{end},{name},{cwnd},{ssthresh}")?;
        }
    }
    Ok(())
}

/// Writes `losses.csv`: a row per loss event. Only the header in a model without packets.
pub fn write_losses(run: &Run, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"time_s,session,kind\n")?;
    for loss in &run.losses {
        let name = run.summary.sessions.get(loss.session as usize).map_or("", |session| &*session.name);
        writeln!(out, "{},{},{}", seconds(loss.time), field(name), loss.kind.name())?;
    }
    Ok(())
}

/// Writes `completions.csv`: a row per range of sizes. The last one has no upper limit.
pub fn write_completions(run: &Run, out: &mut impl Write) -> io::Result<()> {
    out.write_all(
        b"above_bytes,up_to_bytes,sessions,completed,completion_mean_s,completion_p50_s,completion_p95_s,\
          completion_p99_s,slowdown_mean,slowdown_p50,slowdown_p99\n",
    )?;
    for bucket in &run.summary.completions {
        let up_to = bucket.up_to_bytes.map_or(String::new(), |bytes| bytes.to_string());
        write!(out, "{},{up_to},{},{}", bucket.above_bytes, bucket.sessions, bucket.completed)?;
        let time = |of: fn(&CompletionSummary) -> f64| bucket.completion.as_ref().map_or(f64::NAN, of);
        let slowdown = |of: fn(&SlowdownSummary) -> f64| bucket.slowdown.as_ref().map_or(f64::NAN, of);
        for number in [
            time(|of| of.completion_mean_s),
            time(|of| of.completion_p50_s),
            time(|of| of.completion_p95_s),
            time(|of| of.completion_p99_s),
            slowdown(|of| of.slowdown_mean),
            slowdown(|of| of.slowdown_p50),
            slowdown(|of| of.slowdown_p99),
        ] {
            write!(out, ",{}", Number(number))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Writes the header line of a packet trace.
pub fn write_trace_head(out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    out.write_all(b"time_ns,event,link,session,kind,number,bytes\n")
}

/// Writes a row of a packet trace. `number` is that of the data packet or message, or the first that the receiver has
/// not received. The link is empty for events at an end node. Flows of background traffic are named by their slot and
/// the number of its earlier flows: "web1 3.0".
pub fn write_trace_event(
    scenario: &Scenario,
    event: &TraceEvent<'_>,
    out: &mut (impl Write + ?Sized),
) -> io::Result<()> {
    let link = event.link.map_or(Cow::Borrowed(""), |link| field(link.name));
    write!(out, "{},{},{link},", event.time.as_nanos(), event.what.name())?;
    match event.owner {
        TraceOwner::Session(index) => write!(out, "{}", field(&scenario.sessions[index as usize].name))?,
        TraceOwner::Background { table, place, life } => {
            let name = format!("{} {place}.{life}", scenario.background[table as usize].name);
            write!(out, "{}", field(&name))?;
        }
    }
    let (kind, number) = match event.packet.content {
        TraceContent::Data(number) => ("data", number),
        TraceContent::Ack { next, .. } => ("ack", next),
        TraceContent::Message { number, .. } => ("message", number),
    };
    writeln!(out, ",{kind},{number},{}", event.packet.bytes)
}

fn entry(column: &[f64], at: usize) -> Number {
    Number(column.get(at).copied().unwrap_or(f64::NAN))
}

fn seconds(time: Time) -> Number {
    Number(time.as_secs_f64())
}

/// A number in its shortest form that reads back the same; empty for NaN and infinities.
#[derive(Clone, Copy)]
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.abs();
        if !size.is_finite() {
            Ok(())
        } else if size == 0.0 {
            f.write_str("0")
        } else if (1e-6..1e16).contains(&size) {
            write!(f, "{}", self.0)
        } else {
            write!(f, "{:e}", self.0)
        }
    }
}

/// A text field, quoted if it contains a comma, a quote or a line break (RFC 4180).
fn field(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Engine, LinkSummary, LossEvent, LossKind, Metrics, QueueSamples, RateSamples, SchemeOptions, SessionSummary,
        Summary, Window, WindowSamples,
    };

    #[test]
    fn write_rates__wire_equals_payload_without_headers() {
        let mut run = run(&["a", "b"]);
        run.rates = Some(RateSamples {
            ends: vec![ms(100), ms(200)],
            sessions: 2,
            rate_bps: vec![0.0, 1e6, 0.1 + 0.2, 5e8],
            wire_rate_bps: Vec::new(),
            source_expected_bps: vec![1e6, 2e6, 3e6, f64::NAN],
            sink_expected_bps: vec![2e6, 1e6, 3e6, f64::NAN],
            target_bps: vec![4e6, 4e6, 1e-7, f64::NAN],
            measured_bps: vec![0.0, 5e5, 1e6, f64::NAN],
        });
        let expected = "\
time_s,session,rate_bps,wire_rate_bps,expected_bps,source_expected_bps,sink_expected_bps,target_bps,measured_bps
0.1,a,0,0,1000000,1000000,2000000,4000000,0
0.1,b,1000000,1000000,1000000,2000000,1000000,4000000,500000
0.2,a,0.30000000000000004,0.30000000000000004,3000000,3000000,3000000,1e-7,1000000
0.2,b,500000000,500000000,,,,,
";
        assert_eq!(text(|out| write_rates(&run, out)), expected);
    }

    #[test]
    fn write_queues__names_with_commas_are_quoted() {
        let mut run = run(&[]);
        run.summary.links = vec![link("a,b:in")];
        run.queues = Some(QueueSamples {
            ends: vec![ms(100)],
            links: 1,
            queue_bytes: vec![1560.0],
            queue_packets: vec![1.5], // 1560 B / 1040 B
            dropped_packets: vec![2],
            marked_packets: Vec::new(),
        });
        let expected = "time_s,link,queue_packets,queue_bytes,dropped_packets\n0.1,\"a,b:in\",1.5,1560,2\n";
        assert_eq!(text(|out| write_queues(&run, out)), expected);
        run.queues.as_mut().unwrap().marked_packets = vec![3];
        let expected =
            "time_s,link,queue_packets,queue_bytes,dropped_packets,marked_packets\n0.1,\"a,b:in\",1.5,1560,2,3\n";
        assert_eq!(text(|out| write_queues(&run, out)), expected);
    }

    #[test]
    fn write_windows__missing_values_are_empty() {
        let mut run = run(&["a", "b"]);
        run.windows = Some(WindowSamples {
            ends: vec![ms(100)],
            sessions: 2,
            cwnd_packets: vec![12.5, f64::NAN],
            ssthresh_packets: vec![f64::NAN, f64::NAN],
            ..WindowSamples::default()
        });
        let expected = "time_s,session,cwnd_packets,ssthresh_packets\n0.1,a,12.5,\n0.1,b,,\n";
        assert_eq!(text(|out| write_windows(&run, out)), expected);
    }

    #[test]
    fn write_losses__has_a_row_an_event() {
        let mut run = run(&["a", "b"]);
        assert_eq!(text(|out| write_losses(&run, out)), "time_s,session,kind\n");
        run.losses = vec![
            LossEvent { time: ms(1500), session: 1, kind: LossKind::Loss },
            LossEvent { time: ms(2500), session: 0, kind: LossKind::Timeout },
        ];
        assert_eq!(text(|out| write_losses(&run, out)), "time_s,session,kind\n1.5,b,loss\n2.5,a,timeout\n");
    }

    #[test]
    fn number__reads_back_to_the_same_number() {
        for number in [1.0 / 3.0, 5e-324, f64::MAX, 1e16, 123_456_789.012_345, -2.5] {
            assert_eq!(Number(number).to_string().parse(), Ok(number));
        }
    }

    fn text(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).expect("memory does not fail");
        String::from_utf8(out).expect("CSV is text")
    }

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn run(sessions: &[&str]) -> Run {
        let sessions = sessions.iter().map(|name| session(name)).collect();
        let summary = Summary {
            version: "",
            scenario: "test".into(),
            scheme: "gtp".into(),
            options: SchemeOptions::default(),
            model: "fluid",
            seed: 1,
            duration_s: 1.0,
            variant: None,
            window: Window::default(),
            sessions,
            schemes: Vec::new(),
            completions: Vec::new(),
            links: Vec::new(),
            background: Vec::new(),
            metrics: Metrics::default(),
            engine: Engine::default(),
        };
        Run {
            summary,
            rates: None,
            queues: None,
            windows: None,
            distances_bps: Vec::new(),
            max_min_norms_bps: Vec::new(),
            max_min: Vec::new(),
            losses: Vec::new(),
            delays: Vec::new(),
        }
    }

    fn session(name: &str) -> SessionSummary {
        SessionSummary { name: name.into(), ..SessionSummary::default() }
    }

    fn link(name: &str) -> LinkSummary {
        LinkSummary {
            name: name.into(),
            capacity_bps: 1e9,
            utilisation: 0.0,
            mean_queue_packets: 0.0,
            max_queue_packets: 0.0,
            dropped_packets: 0,
            marked_packets: None,
        }
    }
}
