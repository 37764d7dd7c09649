//! Limits of scenario files. Every error about a limit states it.

use fairwave_units::{Bytes, Duration, Rate};

/// Bytes of a file.
pub(crate) const FILE_BYTES: usize = 64 << 20;
/// Values in a file, counted by their separators. Each may take about 500 bytes while the text is parsed.
pub(crate) const VALUES: usize = 2_000_000;
/// Nesting depth of tables and arrays.
pub(crate) const NESTING: usize = 16;
/// Sessions, nodes, routers or links, written out or generated.
pub(crate) const ELEMENTS: u64 = 10_000_000;
/// Links on the paths of all sessions and background traffic together, in both directions.
pub(crate) const CROSSINGS: usize = 100_000_000;
/// Bytes of a name.
pub(crate) const NAME_BYTES: usize = 100;
/// Characters of a title, a citation or a label.
pub(crate) const TEXT_CHARS: usize = 500;
/// Steps of a demand schedule.
pub(crate) const SCHEDULE_STEPS: usize = 100_000;
/// Steps of a condition of a link: 17 minutes of a trace in milliseconds.
pub(crate) const CONDITION_STEPS: usize = 1_000_000;
/// Rate samples in a run.
pub(crate) const SAMPLES: u64 = 10_000_000;
/// Runs of a file: variants times `runs`.
pub(crate) const RUNS: u64 = 100_000;
/// Length of a run, and every instant in it: ten years of 365 days.
pub(crate) const RUN: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// Propagation delay.
pub(crate) const DELAY: Duration = Duration::from_secs(3600);
/// Minimum capacity in bit/s.
pub(crate) const MIN_CAPACITY_BPS: f64 = 1.0;
/// Maximum rate in bit/s.
pub(crate) const RATE_BPS: f64 = 1e15;
/// Bytes that a session delivers, or a queue holds.
pub(crate) const SIZE: Bytes = Bytes::new(1_000_000_000_000_000_000);
/// Packets in a queue.
pub(crate) const PACKETS: u64 = 1_000_000_000_000;
/// Bytes of a packet's payload or header.
pub(crate) const PACKET: Bytes = Bytes::new(1_000_000);
/// Weights are between the inverse of this number and this number.
pub(crate) const WEIGHT: f64 = 1e6;

/// The maximum rate, for messages.
pub(crate) fn largest_rate() -> Rate {
    Rate::nearest_bps(RATE_BPS)
}
