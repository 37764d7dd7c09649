//! Max cost of a stalled sink and of a path that fails for a second: `examples/hardships` in short.

use fairwave_units::{Duration, Time};

use crate::lane::{Hardship, Lane, Meter, jain};

fn stalls(meter: Meter, stall_ms: u64) -> Lane {
    let hardship = Hardship { stall: Duration::from_millis(stall_ms), ..Hardship::default() };
    Lane::run(meter, hardship, 1, Time::from_secs(5))
}

#[test]
fn meter__does_not_take_a_stalled_reader_for_slow_sources() {
    // Below the patience of a source with a short round trip, 80 ms, nothing is lost at all; a sink that counts what it
    // reads loses a tenth.
    let [sent, read] = [Meter::Sent, Meter::Read].map(|meter| stalls(meter, 50));
    assert!(sent.used(1, 5) > 0.995 && jain(&sent.goodputs(1, 5)) > 0.999, "{}", sent.used(1, 5));
    assert!(read.used(1, 5) < 0.98, "{}", read.used(1, 5));
    assert_eq!(sent.lost(), 0);
}

#[test]
fn sources__lose_little_more_than_their_silence_to_a_stall() {
    // 200 ms of two seconds, of which the first 80 to 180 are not yet a silence; then a patience at half of the rate.
    let outcome = stalls(Meter::Sent, 200);
    assert!(outcome.used(1, 5) > 0.9, "{}", outcome.used(1, 5));
}

#[test]
fn sources__are_back_within_half_a_second_of_a_blackhole() {
    let hardship = Hardship { blackhole: Some((Time::from_secs(2), Time::from_secs(3))), ..Hardship::default() };
    let outcome = Lane::run(Meter::Sent, hardship, 1, Time::from_secs(6));
    assert!(outcome.full_after_s(3).is_some_and(|after_s| after_s <= 0.6), "{:?}", outcome.full_after_s(3));
    // No breaker opens for what the silence has lost.
    assert!(outcome.used(4, 6) > 0.99, "{}", outcome.used(4, 6));
    assert_eq!(outcome.lost(), 0);
}
