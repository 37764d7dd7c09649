//! The daemon of a node whose sessions are separate processes.

use std::path::Path;
use std::time::Duration as StdDuration;

use fairwave_daemon::{Daemon, Settings};
use fairwave_node::{CardCapacity, GRACE, ShareBy};
use fairwave_units::{Duration, Rate};

use crate::end_message::RuleSetup;

/// Time after which a new daemon gives newcomers their full rates.
pub(crate) const SETTLED: StdDuration = StdDuration::from_nanos(GRACE.as_nanos() + 200_000_000);
/// Its default control interval; in processes that are nodes it follows the round-trip times.
const INTERVAL: Duration = Duration::from_millis(20);

/// Starts the daemon of a node.
pub(crate) fn start(socket: &Path, rule: &RuleSetup) -> Result<Daemon, String> {
    let rate = |bps: Option<f64>| bps.map(Rate::nearest_bps);
    let everything = CardCapacity { send: rate(rule.send_bps), receive: rate(rule.receive_bps) };
    let interval = rule.interval_ns.map_or(INTERVAL, Duration::from_nanos);
    let settings = Settings {
        interval,
        share_by: ShareBy::Session,
        drain: rule.drain,
        fair_start: rule.fair_start,
        everything: Some(everything),
        yields: rule.yields,
        ..Settings::at(socket.to_owned())
    };
    Daemon::start(settings).map_err(|error| error.to_string())
}
