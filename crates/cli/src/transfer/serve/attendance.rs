//! Reports of the visitors being served, for people and programs.

use std::collections::{BTreeMap, BTreeSet};

use fairwave_files::{Ended, Outcome, Visit, VisitKind};
use fairwave_host::{Carrier, Carriers};
use fairwave_units::{Duration, Rate};
use serde::Serialize;

use crate::common::failure::Done;
use crate::common::output::print_json;
use crate::common::quantity::{size, span};
use crate::common::screen::Screen;
use crate::common::terminal;
use crate::transfer::follow::{Teller, counted, mean_rate, new_bytes, print_end};
use crate::transfer::meter::{Moment, ProgressMeter};

/// The visitors of a process that serves.
pub(super) struct Attendance<'a> {
    screen: &'a Screen,
    capacity: Option<Rate>,
    /// By the visits' numbers.
    here: BTreeMap<u64, Guest<'a>>,
    /// Visits whose end was reported, as long as they are listed.
    gone: BTreeSet<u64>,
}

struct Guest<'a> {
    visit: Visit,
    meter: ProgressMeter,
    teller: Teller<'a>,
}

#[derive(Serialize)]
struct OpenedEvent {
    event: &'static str,
    session: String,
    peer: std::net::SocketAddr,
    carrier: Carrier,
    direction: &'static str,
}

impl<'a> Attendance<'a> {
    pub(super) fn new(screen: &'a Screen, capacity: Option<Rate>) -> Self {
        Self { screen, capacity, here: BTreeMap::new(), gone: BTreeSet::new() }
    }

    /// Reads all listed visits, and reports the changes.
    pub(super) fn look(&mut self, visits: Vec<Visit>) -> Done {
        self.gone.retain(|number| visits.iter().any(|visit| visit.number == *number));
        for visit in visits {
            if !self.gone.contains(&visit.number) && !self.here.contains_key(&visit.number) {
                self.begin(visit)?;
            }
        }
        for (number, mut guest) in std::mem::take(&mut self.here) {
            let moment = guest.meter.look();
            // Also of one that was over soon.
            guest.teller.tell_path(&moment)?;
            if let Some(outcome) = guest.visit.transfer.wait(Some(Duration::ZERO)) {
                self.end(&guest, &outcome, &moment)?;
                self.gone.insert(number);
            } else {
                guest.teller.tell(&moment)?;
                self.here.insert(number, guest);
            }
        }
        Ok(())
    }

    fn begin(&mut self, visit: Visit) -> Done {
        // A visitor without a session yet is reported later.
        let Some(session) = visit.transfer.session() else { return Ok(()) };
        let (peer, carrier) = (session.facts().peer, session.facts().carrier);
        if self.screen.output.json {
            let direction = if visit.is_put() { "receive" } else { "send" };
            let session = format!("{:016x}", session.id().0);
            print_json(&OpenedEvent { event: "opened", session, peer, carrier, direction })?;
            terminal::flush()?;
        } else {
            let what = match visit.kind {
                VisitKind::Get => "downloading",
                VisitKind::Put => "uploading",
                VisitKind::DryPut => "dry run of an upload",
            };
            let over = if carrier == Carrier::Udp { String::new() } else { format!(" over {carrier}") };
            self.screen.say(&format!("{peer}: {what}{over}"));
        }
        let teller = Teller::new(self.screen, format!("{peer}: "));
        let meter = ProgressMeter::new(visit.transfer.clone(), self.capacity);
        self.here.insert(visit.number, Guest { visit, meter, teller });
        Ok(())
    }

    fn end(&self, guest: &Guest<'_>, outcome: &Outcome, moment: &Moment) -> Done {
        guest.teller.end();
        let session = guest.visit.transfer.session();
        let is_dry = guest.visit.kind == VisitKind::DryPut;
        if self.screen.output.json {
            print_end(outcome, moment, &guest.visit.transfer, Carriers::Any, is_dry)?;
            return terminal::flush();
        }
        let seconds = moment.elapsed.as_secs_f64();
        let bytes = moment.progress.bytes_done.max(outcome.bytes);
        let mean = mean_rate(new_bytes(outcome, moment), seconds);
        let moved = format!("{} in {}", size(bytes), span(seconds));
        let what = match &outcome.ended {
            Ended::Done if is_dry => format!("dry run complete: {}", counted(outcome.files)),
            Ended::Done => format!("done: {}, {moved}{mean}", counted(outcome.files)),
            Ended::Stopped => format!("stopped after {moved}"),
            Ended::Failed(reason) => format!("failed after {moved}: {reason}"),
        };
        let failed = match outcome.files_failed {
            0 => String::new(),
            count => format!(", {} failed", counted(count)),
        };
        let peer = session.map_or(guest.visit.from, |session| session.facts().peer);
        self.screen.say(&format!("{peer}: {what}{failed}"));
        Ok(())
    }
}
