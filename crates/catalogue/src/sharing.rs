//! Processor sharing: transfers that arrive at one capacity and share it equally at each instant (Kleinrock 1976).

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use fairwave_scenario::{Run, SessionSummary};
use serde::Deserialize;

/// A statistic of completion times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Statistic {
    Mean,
    /// 99th percentile.
    P99,
}

/// A transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Job {
    /// Its arrival.
    pub(crate) start_s: f64,
    /// Its size on the wire.
    pub(crate) bits: f64,
}

/// Completion times of these sessions over those under processor sharing: the same transfers at `capacity_bps`, of whose
/// packets the share `payload` is data, and `round_trips` more for each. Infinite if one does not complete.
pub(crate) fn slowdown(
    run: &Run,
    sessions: &[usize],
    capacity_bps: f64,
    (payload, round_trips): (f64, f64),
    statistic: Statistic,
) -> f64 {
    let summaries = || sessions.iter().map(|&k| &run.summary.sessions[k]);
    let times: Option<Vec<[f64; 2]>> =
        summaries().map(|session| Some([session.completed_s?, session.completion_s?])).collect();
    let Some(times) = times else { return f64::INFINITY };
    let job = |(session, [completed_s, took_s]): (&SessionSummary, &[f64; 2])| Job {
        start_s: completed_s - took_s,
        bits: session.delivered_bytes as f64 * 8.0 / payload,
    };
    let jobs: Vec<Job> = summaries().zip(&times).map(job).collect();
    let mut shared = sojourns_s(capacity_bps, &jobs);
    shared.iter_mut().zip(summaries()).for_each(|(time_s, session)| *time_s += round_trips * session.rtt_s);
    let mut took: Vec<f64> = times.iter().map(|[_, took_s]| *took_s).collect();
    statistic.of(&mut took) / statistic.of(&mut shared)
}

impl Statistic {
    fn of(self, times_s: &mut [f64]) -> f64 {
        times_s.sort_by(f64::total_cmp);
        match self {
            Self::Mean => times_s.iter().sum::<f64>() / times_s.len() as f64,
            Self::P99 => times_s.get(times_s.len() * 99 / 100).copied().unwrap_or(f64::NAN),
        }
    }
}

/// A job under way: the bits that each job has carried once this one is done, and its index.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Open(f64, usize);

impl Eq for Open {}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Open {
    /// The first one done is the largest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.total_cmp(&self.0).then(other.1.cmp(&self.1))
    }
}

/// Time that each job takes, in seconds, if those under way share `capacity_bps` equally.
pub(crate) fn sojourns_s(capacity_bps: f64, jobs: &[Job]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by(|&a, &b| jobs[a].start_s.total_cmp(&jobs[b].start_s).then(a.cmp(&b)));
    let mut arrivals = order.into_iter().peekable();
    let mut sojourns = vec![0.0; jobs.len()];
    let mut open = BinaryHeap::new();
    // Bits that a job under way from the start would have carried.
    let (mut carried, mut now_s) = (0.0, 0.0);
    loop {
        let rate = capacity_bps / open.len().max(1) as f64;
        let ends_s = open.peek().map(|Open(end, _)| now_s + (end - carried) / rate);
        match (arrivals.peek(), ends_s) {
            (Some(&next), ends_s) if ends_s.is_none_or(|ends_s| jobs[next].start_s <= ends_s) => {
                if ends_s.is_some() {
                    carried += (jobs[next].start_s - now_s) * rate;
                }
                now_s = jobs[next].start_s;
                open.push(Open(carried + jobs[next].bits, next));
                arrivals.next();
            }
            (_, Some(ends_s)) => {
                let Some(Open(end, done)) = open.pop() else { break };
                (carried, now_s) = (end, ends_s);
                sojourns[done] = ends_s - jobs[done].start_s;
            }
            (_, None) => break,
        }
    }
    sojourns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(start_s: f64, bits: f64) -> Job {
        Job { start_s, bits }
    }

    #[test]
    fn sojourns__of_jobs_that_share() {
        assert_eq!(sojourns_s(10.0, &[]), Vec::<f64>::new());
        assert_eq!(sojourns_s(10.0, &[job(3.0, 20.0)]), [2.0]);
        // Both have 5 b/s from 1 s on. The first has 10 bits left then, the second is done 10 bits later.
        assert_eq!(sojourns_s(10.0, &[job(1.0, 20.0), job(0.0, 20.0)]), [3.0, 3.0]);
        // The short one ends at 1.5 s, with the long one at 7.5 of 20.
        assert_eq!(sojourns_s(10.0, &[job(0.0, 20.0), job(1.0, 2.5)]), [2.25, 0.5]);
        // They do not meet.
        assert_eq!(sojourns_s(10.0, &[job(0.0, 10.0), job(5.0, 10.0)]), [1.0, 1.0]);
    }

    /// M/G/1 processor sharing: the mean time of a job is size over capacity x (1 - load), whatever the sizes are.
    #[test]
    fn sojourns__of_random_arrivals_have_the_mean_of_theory() {
        let mut state = 1_u64;
        let mut unit = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        };
        let mut now_s = 0.0;
        let jobs: Vec<Job> = (0..200_000)
            .map(|_| {
                now_s -= unit().ln() / 0.5;
                job(now_s, -unit().ln())
            })
            .collect();
        let mean = sojourns_s(1.0, &jobs).iter().sum::<f64>() / jobs.len() as f64;
        assert!((1.95..2.05).contains(&mean), "{mean}");
    }
}
