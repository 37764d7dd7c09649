//! `start_jitter`: sessions with equal start times in the file start slightly apart, differently with each seed.

use fairwave_units::{Duration, Time};

use super::mistake::ReadResult;
use super::reader::TableReader;
use super::tree::TomlValue;
use crate::{SessionSpec, limits, random};

/// Maximum of "auto": the largest round-trip time of the papers is not longer, so that sessions meet in any phase.
const USUAL: Duration = Duration::from_millis(100);
/// Maximum of "auto" as a fraction of the run, so that a short run is not distorted.
const PART_OF_RUN: u64 = 100;

/// The longest delay of a start; zero without jitter.
pub(super) fn most(top: &TableReader<'_>, duration: Duration) -> ReadResult<Duration> {
    let most = top.read("start_jitter", |field| match &field.item.value {
        TomlValue::Text(text) if **text == *"auto" => {
            Ok(USUAL.min(Duration::from_nanos(duration.as_nanos() / PART_OF_RUN)))
        }
        _ => field.span(limits::RUN),
    })?;
    Ok(most.unwrap_or(Duration::ZERO))
}

/// Delays each session's start by a draw from its own stream, uniform from zero to `most`. A session that would not
/// start before it stops keeps its start.
pub(super) fn spread_starts(sessions: &mut [SessionSpec], most: Duration, seed: u64) {
    if most.is_zero() {
        return;
    }
    for session in sessions {
        let share = random::stream(seed, &format!("start jitter {}", session.name)).unit();
        let start = session.start.saturating_add(Duration::from_nanos((share * most.as_nanos() as f64) as u64));
        if session.stop.is_none_or(|stop: Time| start < stop) {
            session.start = start;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Document, Scenario, Selection};
    use fairwave_units::{Duration, Time};

    const TEXT: &str = r#"
        name = "two"
        duration = "20 s"
        node = [{ name = "s{1..2}", capacity = "1 Gb/s" }, { name = "d", capacity = "1 Gb/s" }]
        session = [
            { from = "s1", to = "d", rtt = "20 ms" },
            { from = "s2", to = "d", rtt = "20 ms", start = "1 s", stop = "1001 ms" },
        ]
    "#;

    fn built(jitter: Option<&str>, seed: u64) -> Scenario {
        let set = jitter.map(|jitter| ("start_jitter".to_owned(), jitter.to_owned()));
        let selection = Selection { seed: Some(seed), set: set.into_iter().collect(), ..Selection::default() };
        let document = Document::parse("test.toml", TEXT.as_bytes()).unwrap();
        let case = document.cases(&selection).unwrap().remove(0);
        document.build(&case).unwrap().0
    }

    #[test]
    fn start_jitter__delays_starts_by_a_draw_of_the_seed() {
        let starts = |jitter, seed| built(jitter, seed).sessions.iter().map(|one| one.start).collect::<Vec<_>>();
        assert_eq!(starts(None, 1), [Time::ZERO, Time::from_secs(1)]);
        assert_eq!(starts(Some("0 s"), 1), starts(None, 1));
        let first = starts(Some("100 ms"), 1);
        assert_eq!(first, starts(Some("100 ms"), 1));
        assert_ne!(first, starts(Some("100 ms"), 2));
        let most = |seed| starts(Some("100 ms"), seed)[0];
        assert!((1..50).all(|seed| most(seed) < Time::ZERO + Duration::from_millis(100)));
        assert!((1..50).any(|seed| most(seed) > Time::ZERO + Duration::from_millis(80)));
        // The second one stops after 1 ms: a later start is not valid.
        assert!((1..50).all(|seed| starts(Some("100 ms"), seed)[1] < Time::from_nanos(1_001_000_000)));
    }

    #[test]
    fn start_jitter__auto_is_a_small_part_of_the_run() {
        let longest = (1..200).map(|seed| built(Some("auto"), seed).sessions[0].start).max().unwrap();
        let longest = longest.since(Time::ZERO);
        assert!(Duration::from_millis(90) < longest && longest < Duration::from_millis(100), "{longest}");
    }
}
