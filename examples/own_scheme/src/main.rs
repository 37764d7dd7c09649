//! A rule of one's own in Rust: one packet more per round trip, a third less at a loss, beside CUBIC on one bottleneck.
//!
//! `cargo run --release` prints both sessions' rates.

use std::error::Error;

use fairwave_catalogue::lab;
use fairwave_scenario::{Document, Selection, Settings};
use fairwave_schemes::scheme::{Scheme, own_session, with_own};
use fairwave_schemes::session::{Ack, CongestionController, CongestionWindow, Loss, SENDER_OPTIONS};

/// The rule: its window is all that it remembers.
struct Gentle {
    window: CongestionWindow,
}

impl CongestionController for Gentle {
    fn window(&self) -> &CongestionWindow {
        &self.window
    }

    fn window_mut(&mut self) -> &mut CongestionWindow {
        &mut self.window
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.in_recovery || !ack.window_limited {
            return;
        }
        let packets = self.window.packets();
        let is_slow_start = packets < self.ssthresh_packets();
        let growth = f64::from(ack.acked_packets) / if is_slow_start { 1.0 } else { packets };
        self.window.set(packets + growth);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window.cut_to(f64::from(loss.in_flight_packets) * 2.0 / 3.0);
    }
}

/// Its entry beside the list of schemes, with the options that every sender takes.
static GENTLE: Scheme = own_session("gentle", "a third less at a loss", SENDER_OPTIONS, |_, config| {
    Ok(Box::new(Gentle { window: CongestionWindow::new(&config) }))
});

static OWN: [&Scheme; 1] = [&GENTLE];

const SCENARIO: &str = r#"
name = "gentle-beside-cubic"
duration = "60 s"
scheme = "cubic"
node = [{ name = "s{1..2}", capacity = "1 Gb/s" }, { name = "d", capacity = "20 Mb/s", queue = "100 packets" }]
session = [{ from = "s1", to = "d", rtt = "40 ms", scheme = "gentle" }, { from = "s2", to = "d", rtt = "40 ms" }]
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let run = with_own(&OWN, || -> Result<_, Box<dyn Error>> {
        let document = Document::parse("gentle.toml", SCENARIO.as_bytes())?;
        let case = document.cases(&Selection::default())?.remove(0);
        Ok(lab::simulate(&document.build(&case)?.0, None, Settings::default())?)
    })?;
    for session in &run.summary.sessions {
        println!("{:8} {:6.2} Mb/s, {} packets lost", session.scheme, session.rate_bps / 1e6, session.lost_packets);
    }
    let share = run.summary.sessions[0].rate_bps / run.summary.metrics.total_bps;
    if !(0.05..0.95).contains(&share) {
        return Err(format!("one of the two has nearly nothing: {share}").into());
    }
    Ok(())
}
