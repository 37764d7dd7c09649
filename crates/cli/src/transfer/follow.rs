//! Follows a transfer to its end, and reports it to people and programs.

use std::time::{Duration, Instant};

use fairwave_files::{Ended, FileAction, Outcome, Pause, PlannedFile, Progress, Transfer, escaped};
use fairwave_host::{Carrier, Carriers, Refusal};
use fairwave_units::Rate;
use serde::Serialize;

use super::meter::{Moment, ProgressMeter, paused};
use super::name::Name;
use crate::common::failure::{CommandFailure, Done};
use crate::common::interrupt;
use crate::common::output::print_json;
use crate::common::quantity::{rate, size, span};
use crate::common::screen::{Screen, set_style};
use crate::common::terminal::print;

const TICK: Duration = Duration::from_millis(100);
const BETWEEN_EVENTS: Duration = Duration::from_secs(1);
const BETWEEN_LINES: Duration = Duration::from_secs(5);
/// Max failed or skipped entries listed by default.
const NAMED: usize = 20;
/// Max warnings listed: a file system without modes causes one per file.
const WARNED: usize = 3;
/// Grace period after an interrupt.
const STOPS_WITHIN: Duration = Duration::from_secs(10);

#[derive(Serialize)]
struct EntryEvent<'a> {
    event: &'static str,
    #[serde(flatten)]
    name: Name,
    reason: &'a str,
}

/// A dry run's plan for a file.
#[derive(Serialize)]
struct FileEvent {
    event: &'static str,
    #[serde(flatten)]
    name: Name,
    action: &'static str,
    bytes: u64,
}

/// A session ended, and another is to follow.
#[derive(Serialize)]
struct RetryEvent<'a> {
    event: &'static str,
    elapsed_s: f64,
    reason: &'a str,
    /// 1 is the first.
    attempt: u32,
    next_s: f64,
    gives_up_s: f64,
    bytes_done: u64,
    bytes_held: u64,
}

/// An end declares the path dedicated, but it does not behave so.
#[derive(Serialize)]
struct PathEvent<'a> {
    event: &'static str,
    session: &'a str,
    note: &'a str,
}

/// Another session has followed.
#[derive(Serialize)]
struct ResumedEvent<'a> {
    event: &'static str,
    session: Option<&'a str>,
    carrier: Option<Carrier>,
    elapsed_s: f64,
    reconnects: u64,
    bytes_done: u64,
}

/// The end of a transfer, for programs.
#[derive(Serialize)]
struct EndEvent<'a> {
    event: &'static str,
    /// Nothing was written: `files` and `bytes` say what there would be.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
    session: Option<String>,
    /// Carrier of the last session.
    carrier: Option<Carrier>,
    files: u64,
    files_failed: u64,
    files_skipped: u64,
    /// Files that are complete, and of which an attribute could not be set.
    files_warned: u64,
    /// Of those that failed: files that were gone before they were copied.
    files_vanished: u64,
    /// Files and directories that the source lacks: deleted, and left for --max-delete.
    #[serde(skip_serializing_if = "Option::is_none")]
    files_deleted: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files_undeleted: Option<u64>,
    bytes: u64,
    bytes_resumed: u64,
    /// If unfinished: kept bytes of incomplete blocks.
    bytes_held: u64,
    bytes_holes: u64,
    wall_s: f64,
    goodput_bps: f64,
    /// How often another session followed one that had ended; all counts are of all of them.
    reconnects: u64,
    /// At the end that receives: those that it missed, in whose place others came.
    retransmitted_packets: Option<u64>,
    blake3: Option<String>,
    reason: Option<&'a str>,
}

/// Facts about a transfer that are known before it starts.
#[derive(Clone, Debug)]
pub(crate) struct KnownBefore {
    pub(crate) capacity: Option<Rate>,
    /// Addresses of the peer as text.
    pub(crate) places: String,
    /// Allowed carriers.
    pub(crate) carriers: Carriers,
    /// The connection in place of UDP, if it is known, such as "through the ssh connection".
    pub(crate) detour: Option<&'static str>,
    /// The verb of the planned action, if nothing is written.
    pub(crate) dry: Option<&'static str>,
    /// Whether an attribute that could not be set counts as a failure.
    pub(crate) strict: bool,
}

/// Shows a transfer until it ends. An interrupt stops it where it can go on, and so does a reader of `--json` that
/// leaves.
pub(crate) fn follow(screen: &Screen, transfer: &Transfer, course: &KnownBefore) -> Done {
    let done = follow_to_end(screen, transfer, course);
    if !matches!(done, Err(CommandFailure::Unread)) {
        return done;
    }
    transfer.stop();
    if course.dry.is_some() {
        // As for any list: its reader has seen enough, and nothing was to be written.
        return done;
    }
    let limit = fairwave_units::Duration::from_nanos(STOPS_WITHIN.as_nanos() as u64);
    let is_done = transfer.wait(Some(limit)).is_some_and(|outcome| outcome.ended == Ended::Done);
    let what = if is_done { "the transfer is complete" } else { "the transfer was stopped" };
    let hint = if is_done { "read stdout to its end" } else { "the same command goes on where it stopped" };
    Err(CommandFailure::Run(format!("stdout: its reader has left; {what}\nhint: {hint}")))
}

fn follow_to_end(screen: &Screen, transfer: &Transfer, course: &KnownBefore) -> Done {
    interrupt::be_gentle();
    let mut meter = ProgressMeter::new(transfer.clone(), course.capacity);
    let mut teller = Teller::new(screen, String::new());
    let mut stopping: Option<Instant> = None;
    let mut carrier = CarrierTeller { screen, course, told: Carrier::Udp };
    let outcome = loop {
        carrier.tell(transfer);
        if let Some(outcome) = transfer.wait(Some(tick())) {
            break outcome;
        }
        let moment = meter.look();
        teller.tell(&moment)?;
        match stopping {
            None if interrupt::is_asked() => {
                stopping = Some(Instant::now());
                transfer.stop();
                screen.note("stopping; press Ctrl-C again to stop at once");
            }
            Some(since) if since.elapsed() > STOPS_WITHIN => break Outcome::empty(Ended::Stopped),
            _ => {}
        }
    };
    let moment = meter.look();
    // A reconnect since the last tick: what was left may have come whole within one.
    teller.tell_breaks(&moment)?;
    teller.tell_path(&moment)?;
    teller.end();
    tell_end(screen, &outcome, &moment, transfer, course)
}

/// Tells what carries a transfer where it is not what is best, and what that costs.
struct CarrierTeller<'a> {
    screen: &'a Screen,
    course: &'a KnownBefore,
    told: Carrier,
}

impl CarrierTeller<'_> {
    /// Reports each change once. A user who requested a carrier knows of it.
    fn tell(&mut self, transfer: &Transfer) {
        let Some(carrier) = transfer.session().map(|session| session.facts().carrier) else { return };
        if carrier == self.told || self.course.carriers != Carriers::Any {
            return;
        }
        self.told = carrier;
        let places = &self.course.places;
        let note = price(places, carrier, self.course.detour)
            .unwrap_or_else(|| format!("{places} answers over UDP again: continuing over UDP"));
        self.screen.note(&note);
    }
}

/// The cost of a carrier other than UDP to these addresses, as text.
pub(crate) fn price(places: &str, carrier: Carrier, detour: Option<&str>) -> Option<String> {
    let over = match carrier {
        Carrier::Udp => return None,
        Carrier::Tcp => "over TCP",
        Carrier::Ssh | Carrier::Sftp => detour.unwrap_or("through the ssh connection"),
    };
    Some(format!("no answer over UDP from {places}: continuing {over}, which is slower on long or lossy paths"))
}

/// Reports the progress of a transfer: with a bar, in lines, or in JSON.
pub(crate) struct Teller<'a> {
    screen: &'a Screen,
    /// Start of each line.
    label: String,
    bar: indicatif::ProgressBar,
    is_known: bool,
    told: Instant,
    reconnects: u64,
    /// Sessions before the break that was reported, until it is over.
    paused: Option<u64>,
    /// Advice is given once, and so is what the ends say of the path.
    is_advised: bool,
    is_path_told: bool,
}

impl<'a> Teller<'a> {
    pub(crate) fn new(screen: &'a Screen, label: String) -> Self {
        let (bar, told) = (screen.bar(), Instant::now());
        Self {
            screen,
            label,
            bar,
            is_known: false,
            told,
            reconnects: 0,
            paused: None,
            is_advised: false,
            is_path_told: false,
        }
    }

    pub(crate) fn tell(&mut self, moment: &Moment) -> Done {
        self.tell_breaks(moment)?;
        let output = self.screen.output;
        self.tell_path(moment)?;
        if let Some(advice) = moment.advice().filter(|_| !output.json && !self.is_advised) {
            self.is_advised = true;
            self.screen.note(&format!("{}{advice}", self.label));
        }
        if output.json {
            if self.told.elapsed() >= BETWEEN_EVENTS {
                self.told = Instant::now();
                print_json(&moment.event())?;
                crate::common::terminal::flush()?;
            }
        } else if self.screen.has_bars() {
            if let Some(total) = moment.progress.bytes_total {
                if !self.is_known {
                    self.is_known = true;
                    set_style(&self.bar, true);
                }
                self.bar.set_length(total);
            }
            self.bar.set_position(moment.bytes_seen);
            self.bar.set_message(format!("{}{}", self.label, moment.text(output.is_verbose())));
            self.bar.tick();
        } else if self.told.elapsed() >= BETWEEN_LINES {
            self.told = Instant::now();
            self.screen.say(&format!("{}{}", self.label, moment.text(output.is_verbose())));
        }
        Ok(())
    }

    /// A path that is not as an end declares it is slow: reported at once.
    pub(crate) fn tell_path(&mut self, moment: &Moment) -> Done {
        let Some(session) = moment.session.as_ref().filter(|_| !self.is_path_told) else { return Ok(()) };
        let Some(note) = &session.path_note else { return Ok(()) };
        self.is_path_told = true;
        if self.screen.output.json {
            print_json(&PathEvent { event: "path", session: &session.id, note })?;
            return crate::common::terminal::flush();
        }
        self.screen.note(&format!("{}{note}", self.label));
        Ok(())
    }

    /// Reports each attempt to reconnect once, and its success.
    fn tell_breaks(&mut self, moment: &Moment) -> Done {
        for pause in &moment.pauses {
            self.tell_resumed(moment, pause.reconnects)?;
            self.tell_pause(moment, pause)?;
        }
        self.tell_resumed(moment, moment.reconnects)
    }

    fn tell_resumed(&mut self, moment: &Moment, reconnects: u64) -> Done {
        if reconnects <= self.reconnects {
            return Ok(());
        }
        self.reconnects = reconnects;
        let was_paused = self.paused.take().is_some();
        if !self.screen.output.json {
            if was_paused {
                self.screen.say(&format!("{}reconnected", self.label));
            }
            return Ok(());
        }
        let session = moment.session.as_ref();
        print_json(&ResumedEvent {
            event: "resumed",
            session: session.map(|session| session.id.as_str()),
            carrier: session.map(|session| session.carrier),
            elapsed_s: moment.elapsed.as_secs_f64(),
            reconnects,
            bytes_done: moment.progress.bytes_done,
        })?;
        crate::common::terminal::flush()
    }

    fn tell_pause(&mut self, moment: &Moment, pause: &Pause) -> Done {
        self.paused = Some(pause.reconnects);
        if self.screen.output.json {
            print_json(&RetryEvent {
                event: "retry",
                elapsed_s: moment.elapsed.as_secs_f64(),
                reason: &pause.reason,
                attempt: pause.attempt,
                next_s: pause.next_in.unwrap_or(fairwave_units::Duration::ZERO).as_secs_f64(),
                gives_up_s: pause.gives_up_in.as_secs_f64(),
                bytes_done: moment.progress.bytes_done,
                bytes_held: moment.progress.bytes_held,
            })?;
            return crate::common::terminal::flush();
        }
        // A bar shows each attempt by itself.
        if pause.attempt == 1 || !self.screen.has_bars() {
            self.screen.say(&format!("{}{}", self.label, paused(pause)));
        }
        Ok(())
    }

    pub(crate) fn end(&self) {
        self.screen.remove(&self.bar);
    }
}

/// Reports the end of a transfer and the results of its entries; returns success or the failure.
fn tell_end(
    screen: &Screen,
    outcome: &Outcome,
    moment: &Moment,
    transfer: &Transfer,
    KnownBefore { carriers, dry, strict, .. }: &KnownBefore,
) -> Done {
    print_planned(screen, outcome)?;
    if screen.output.json {
        print_end(outcome, moment, transfer, *carriers, dry.is_some())?;
    } else {
        say_entries(screen, outcome);
    }
    let (dry, strict) = (*dry, *strict);
    let (elapsed_s, new_bytes) = (moment.elapsed.as_secs_f64(), new_bytes(outcome, moment));
    let there = size(moment.progress.bytes_there());
    match (&outcome.ended, dry) {
        (Ended::Done, Some(verb)) => {
            let progress = &moment.progress;
            screen.say(&format!(
                "dry run: would {verb} {}, {}; {}, {} already complete{}",
                counted(outcome.files.saturating_sub(progress.files_done)),
                size(new_bytes),
                counted(progress.files_done),
                size(progress.bytes_resumed),
                deleted(outcome, "would be deleted")
            ));
            all_well(outcome, strict)
        }
        (Ended::Done, None) => {
            let hash = outcome.blake3.map_or_else(String::new, |hash| format!(", blake3 {}", hex(&hash)));
            let some = |bytes, what| if bytes == 0 { String::new() } else { format!(", {} {what}", size(bytes)) };
            let before = some(moment.progress.bytes_resumed, "already complete");
            let holes = some(moment.progress.bytes_holes, "sparse");
            let mean = mean_rate(new_bytes, elapsed_s);
            let (files, bytes) = (counted(outcome.files), size(outcome.bytes));
            screen.say(&format!(
                "{files}, {bytes} in {}{mean}{before}{holes}{hash}{}",
                span(elapsed_s),
                deleted(outcome, "deleted")
            ));
            all_well(outcome, strict)
        }
        (Ended::Stopped, _) => {
            Err(CommandFailure::Interrupted(format!("stopped; {there} complete\nhint: repeat the command to resume")))
        }
        (Ended::Failed(reason), _) => {
            let message = format!("{reason}\nhint: {}", what_next(transfer, &there));
            Err(if transfer.is_lost() { CommandFailure::Lost(message) } else { CommandFailure::Run(message) })
        }
    }
}

/// A hint for a transfer that stopped.
fn what_next(transfer: &Transfer, there: &str) -> String {
    if !matches!(transfer.refusal(), Some(Refusal::Revoked | Refusal::Expired | Refusal::UsedUp)) {
        return format!("{there} complete; repeat the command to resume");
    }
    let over = "this ticket is no longer valid: ask for a new one";
    // A server keeps parts of files by ticket, so that holders of others do not see them.
    if transfer.session().is_some_and(|session| session.facts().sends) {
        format!("{over}; complete files stay on the server, the others start over")
    } else {
        format!("{over} for the same files; {there} complete, and the transfer resumes from there")
    }
}

fn all_well(outcome: &Outcome, strict: bool) -> Done {
    let Outcome { files, files_failed, files_missing, files_vanished, files_warned, .. } = *outcome;
    if files_failed == 0 && files_warned > 0 && strict {
        let message = format!("cannot set mode or time of {}", counted(files_warned));
        return Err(CommandFailure::Files(format!("{message}\nhint: omit --strict to make this a warning")));
    }
    if files_failed == 0 && outcome.files_undeleted > 0 {
        let message = format!("{} of the destination left by --max-delete", entries(outcome.files_undeleted));
        return Err(CommandFailure::Files(format!("{message}\nhint: --dry-run lists what would be deleted")));
    }
    if files_failed == 0 {
        return Ok(());
    }
    let message = format!("{} failed", counted(files_failed));
    Err(if files_vanished == files_failed {
        CommandFailure::Vanished(format!("{message}: gone before they were copied"))
    } else if files_missing == files_failed && files == 0 {
        let hint = "names start with that of the served file or directory, such as data/2024; omit them to fetch all";
        CommandFailure::Usage(format!("{message}\nhint: {hint}"))
    } else {
        CommandFailure::Files(message)
    })
}

/// The end of a transfer, and what became of its entries, for programs.
pub(crate) fn print_end(
    outcome: &Outcome,
    moment: &Moment,
    transfer: &Transfer,
    carriers: Carriers,
    is_dry: bool,
) -> Done {
    let entry = |event, failure: &fairwave_files::Failure| {
        print_json(&EntryEvent { event, name: Name::of(&failure.path), reason: &failure.reason })
    };
    outcome.skipped.iter().try_for_each(|failure| entry("file_skipped", failure))?;
    outcome.warned.iter().try_for_each(|failure| entry("file_warned", failure))?;
    outcome.failed.iter().try_for_each(|failure| entry("file_failed", failure))?;
    let (event, reason) = match &outcome.ended {
        Ended::Done => ("done", None),
        Ended::Stopped => ("stopped", None),
        Ended::Failed(reason) => ("failed", Some(reason.as_str())),
    };
    let wall_s = moment.elapsed.as_secs_f64();
    let moved_bytes = if is_dry { 0 } else { new_bytes(outcome, moment) };
    print_json(&EndEvent {
        event,
        dry_run: is_dry,
        session: transfer.session().map(|session| format!("{:016x}", session.id().0)),
        carrier: match carriers {
            Carriers::Only(Carrier::Sftp) => Some(Carrier::Sftp),
            _ => transfer.session().map(|session| session.facts().carrier),
        },
        files: outcome.files,
        files_failed: outcome.files_failed,
        files_skipped: outcome.files_skipped,
        files_warned: outcome.files_warned,
        files_vanished: outcome.files_vanished,
        files_deleted: Some(outcome.files_deleted).filter(|files| *files > 0),
        files_undeleted: Some(outcome.files_undeleted).filter(|files| *files > 0),
        bytes: outcome.bytes,
        bytes_resumed: moment.progress.bytes_resumed,
        bytes_held: moment.progress.bytes_held,
        bytes_holes: moment.progress.bytes_holes,
        wall_s,
        goodput_bps: moved_bytes as f64 * 8.0 / wall_s.max(1e-3),
        reconnects: moment.reconnects,
        retransmitted_packets: transfer.retransmitted_packets(),
        blake3: outcome.blake3.map(|hash| hex(&hash)),
        reason,
    })
}

/// Prints a dry run's plan for each file.
fn print_planned(screen: &Screen, outcome: &Outcome) -> Done {
    for PlannedFile { path, action, bytes } in outcome.planned.iter() {
        let action = match action {
            FileAction::New => "new",
            FileAction::Update => "update",
            FileAction::Skip => "skip",
            FileAction::Delete => "delete",
        };
        if screen.output.json {
            print_json(&FileEvent { event: "file", name: Name::of(path), action, bytes })?;
        } else if !screen.output.quiet {
            print(&format!("{action:<6} {:>10}  {}\n", size(bytes), escaped(path)))?;
        }
    }
    Ok(())
}

fn say_entries(screen: &Screen, outcome: &Outcome) {
    let most = if screen.output.is_verbose() { usize::MAX } else { NAMED };
    if screen.output.is_verbose() {
        for failure in &outcome.skipped {
            screen.say(&format!("skipped: {}: {}", escaped(&failure.path), failure.reason));
        }
    }
    for failure in outcome.failed.iter().take(most) {
        screen.complain(&format!("failed: {}: {}", escaped(&failure.path), failure.reason));
    }
    let named = outcome.failed.len().min(most) as u64;
    if let Some(more) = outcome.files_failed.checked_sub(named).filter(|more| *more > 0) {
        // The list is bounded as well.
        let listed = match outcome.failed.len() as u64 {
            all if all == outcome.files_failed => "all of them".to_owned(),
            some => format!("the first {some}"),
        };
        screen.complain(&format!("and {more} more failed\nhint: --json lists {listed}"));
    }
    for failure in outcome.warned.iter().take(if screen.output.is_verbose() { most } else { WARNED }) {
        screen.say(&format!("warning: {}: {}", escaped(&failure.path), failure.reason));
    }
    if outcome.files_warned > 0 {
        let have = if outcome.files_warned == 1 { "entry lacks" } else { "entries lack" };
        screen
            .say(&format!("{} {have} an attribute that could not be set; the content is there", outcome.files_warned));
    }
    if outcome.files_skipped > 0 && !screen.output.is_verbose() {
        let were = if outcome.files_skipped == 1 { "entry" } else { "entries" };
        screen.say(&format!("{} {were} skipped (--verbose lists them)", outcome.files_skipped));
    }
}

/// The mean rate of the moved bytes, in brackets; empty if nothing moved.
pub(crate) fn mean_rate(new_bytes: u64, elapsed_s: f64) -> String {
    if new_bytes == 0 { String::new() } else { format!(" ({})", rate(new_bytes as f64 * 8.0 / elapsed_s.max(1e-3))) }
}

/// Bytes that were moved this time.
pub(crate) fn new_bytes(outcome: &Outcome, moment: &Moment) -> u64 {
    let bytes_done = outcome.bytes.max(moment.progress.bytes_done);
    Progress { bytes_done, ..moment.progress }.bytes_come()
}

/// Deletions as text.
fn deleted(outcome: &Outcome, what: &str) -> String {
    if outcome.files_deleted == 0 { String::new() } else { format!("; {} {what}", entries(outcome.files_deleted)) }
}

/// A number of files, directories and links as text.
fn entries(count: u64) -> String {
    if count == 1 { "1 entry".into() } else { format!("{count} entries") }
}

/// A number of files as text.
pub(crate) fn counted(files: u64) -> String {
    if files == 1 { "1 file".into() } else { format!("{files} files") }
}

pub(crate) fn hex(hash: &[u8; 32]) -> String {
    data_encoding::HEXLOWER.encode(hash)
}

pub(crate) fn tick() -> fairwave_units::Duration {
    fairwave_units::Duration::from_nanos(TICK.as_nanos() as u64)
}
