//! A host whose process does not run for a while: what that may last, and what is concluded from it.

use fairwave_units::Duration;

/// Lateness of a timer that counts as a pause of the process: a slice of another one (3 ms in Linux's EEVDF).
pub(crate) const MIN_PAUSE: Duration = Duration::from_millis(3);
/// The longest pause by other work on a machine that is normal: nothing is concluded from it.
pub(crate) const MAX_PAUSE: Duration = Duration::from_millis(100);
/// For so long after a pause measurements are a lower bound: it is made up for at twice the rate, which takes as long as
/// the pause did.
pub(crate) const AFTER_PAUSE: Duration = Duration::from_nanos(2 * MAX_PAUSE.as_nanos());
