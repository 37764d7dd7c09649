//! Completion times by the size of transfers.

use fairwave_schemes::scheme::Model;
use fairwave_units::Rate;
use serde::Serialize;

use crate::{CompletionSummary, Scenario, SessionSpec, SessionSummary};

/// Upper limits of the buckets in bytes, from Alizadeh et al. 2010, Fig. 22.
const LIMITS_BYTES: [u64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];

/// Completion times of the sessions whose sizes are within limits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CompletionBucket {
    /// Sizes are above this.
    pub above_bytes: u64,
    /// Sizes are at most this; `None` for no limit.
    pub up_to_bytes: Option<u64>,
    /// Number of sessions, completed or not.
    pub sessions: usize,
    /// Number of completed sessions.
    pub completed: usize,
    /// Completion times. Omitted from JSON if no session completed.
    #[serde(flatten)]
    pub completion: Option<CompletionSummary>,
    /// Slowdowns, the completion time relative to an idle network. Omitted from JSON likewise.
    #[serde(flatten)]
    pub slowdown: Option<SlowdownSummary>,
}

/// Mean and percentiles of slowdowns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SlowdownSummary {
    /// The mean.
    pub slowdown_mean: f64,
    /// The median.
    pub slowdown_p50: f64,
    /// 99th percentile.
    pub slowdown_p99: f64,
}

/// The buckets with sessions, by size; empty if all sizes are equal.
pub(crate) fn by_size(sessions: &[SessionSummary]) -> Vec<CompletionBucket> {
    let mut sizes = sessions.iter().filter_map(|session| session.size_bytes);
    let first = sizes.next();
    if sizes.all(|size| Some(size) == first) {
        return Vec::new();
    }
    let uppers = LIMITS_BYTES.into_iter().map(Some).chain([None]);
    let lowers = [0].into_iter().chain(LIMITS_BYTES);
    let bucket = |(above_bytes, up_to_bytes): (u64, Option<u64>)| {
        let fits = |size: u64| size > above_bytes && up_to_bytes.is_none_or(|most| size <= most);
        let members: Vec<_> = sessions.iter().filter(|session| session.size_bytes.is_some_and(fits)).collect();
        let times: Vec<f64> = members.iter().filter_map(|session| session.completion_s).collect();
        let slowdowns = CompletionSummary::of(members.iter().filter_map(|session| session.slowdown).collect());
        CompletionBucket {
            above_bytes,
            up_to_bytes,
            sessions: members.len(),
            completed: times.len(),
            completion: CompletionSummary::of(times),
            slowdown: slowdowns.map(|of| SlowdownSummary {
                slowdown_mean: of.completion_mean_s,
                slowdown_p50: of.completion_p50_s,
                slowdown_p99: of.completion_p99_s,
            }),
        }
    };
    lowers.zip(uppers).map(bucket).filter(|bucket| bucket.sessions > 0).collect()
}

/// Completion time of a session in an idle network: half the round-trip time, and the transmission of its size, with headers, at the
/// smallest capacity on its path.
pub(crate) fn alone_s(scenario: &Scenario, session: &SessionSpec, model: Model) -> Option<f64> {
    let payload_bytes = session.size?.get() as f64;
    let (from, to) = (&scenario.nodes[session.from as usize], &scenario.nodes[session.to as usize]);
    let links = session.path.iter().filter_map(|link| scenario.links[*link as usize].capacity);
    let capacity = links.chain(from.send).chain(to.receive).map(Rate::as_bps).fold(f64::INFINITY, f64::min);
    let full = scenario.packet.payload.get() as f64;
    let header = scenario.packet.on_link(scenario.scheme_of(session).scheme).get() as f64 - full;
    // The fluid model has no headers.
    let headers_bytes = if model == Model::Fluid { 0.0 } else { (payload_bytes / full).ceil() * header };
    Some(session.rtt.as_secs_f64() / 2.0 + (payload_bytes + headers_bytes) * 8.0 / capacity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, Selection};

    #[test]
    fn alone_s__is_of_the_slowest_link() {
        let text = "
            name = 'alone'
            duration = '1 s'
            scheme = 'cubic'
            packet = { payload = '1000 B', header = '40 B' }
            router = [{ name = 'r' }]
            node = [{ name = 'a', capacity = '1 Gb/s', router = 'r' }, { name = 'b', capacity = '50 Mb/s' }]
            link = [{ from = 'r', to = 'b', capacity = '10 Mb/s', delay = '20 ms', duplex = true }]
            session = [{ from = 'a', to = 'b', size = '2500 B' }]";
        let document = Document::parse("test.toml", text.as_bytes()).unwrap();
        let case = document.cases(&Selection::default()).unwrap().remove(0);
        let (scenario, _) = document.build(&case).unwrap();
        let alone = |model| alone_s(&scenario, &scenario.sessions[0], model).unwrap();
        // 2500 B and three headers of 40 B at 10 Mb/s, and 20 ms.
        assert!((alone(Model::Packet) - (0.02 + 2620.0 * 8.0 / 10e6)).abs() < 1e-12);
        assert!((alone(Model::Fluid) - (0.02 + 2500.0 * 8.0 / 10e6)).abs() < 1e-12);
    }
}
