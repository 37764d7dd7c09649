//! Fewer bytes in a queue that others keep.

use fairwave_units::Duration;

/// Minimum window gain of a state that does not probe, if others keep a queue,
const GAIN: f64 = 1.25;
/// with room for packets to wait at least this long.
const WAIT: Duration = Duration::from_millis(20);

/// The window gain in down and cruise if others keep a queue: little more than fills the path.
///
/// With the draft's two, shares of models stay as they are: each has in the queue what its share allows, and a probe of
/// the smaller one, a quarter more, gains it next to nothing. On a short path a quarter is a shorter queue than that of a
/// neighbour with a longer round trip, against which the window would hold the model down.
pub(super) fn gain(min_rtt: Option<Duration>) -> f64 {
    let rtt = min_rtt.unwrap_or(Duration::ZERO).as_secs_f64();
    (1.0 + WAIT.as_secs_f64() / rtt).clamp(GAIN, DRAFT_GAIN)
}

/// The draft's.
pub(super) const DRAFT_GAIN: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gain__leaves_20_ms_or_a_quarter() {
        let gain_at = |ms| gain(Some(Duration::from_millis(ms)));
        assert_eq!([10, 20, 40, 80, 200].map(gain_at), [2.0, 2.0, 1.5, 1.25, 1.25]);
        assert_eq!(gain(None), 2.0);
    }
}
