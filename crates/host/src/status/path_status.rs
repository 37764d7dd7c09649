//! Facts about a session's path, as processes exchange them.

use fairwave_proto::PathFacts;
use fairwave_units::{Duration, Rate};
use serde::{Deserialize, Serialize};

/// Facts about a session's path: at a source of the data that it sends, at a sink of the data that arrive. Shares are
/// of packets, over the last ten seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PathStatus {
    /// Min round-trip time, seconds, since the session started, or since its other end moved.
    pub least_rtt_s: Option<f64>,
    /// The last sample of the round-trip time.
    pub latest_rtt_s: Option<f64>,
    /// For how long packets wait in queues there and back: the smoothed round-trip time above the least.
    pub queueing_s: Option<f64>,
    /// At a sink: min queueing delay of packets in the last control interval, seconds.
    pub waiting_s: Option<f64>,
    /// Period that the shares cover, seconds: ten, or less if the session is younger.
    pub span_s: f64,
    /// Packets whose fate became known in that time.
    pub packets: u64,
    /// The share of packets lost.
    pub loss_share: Option<f64>,
    /// The share of packets lost since the session started.
    pub loss_share_all: Option<f64>,
    /// Packets that arrived later than one that was sent after them, since the session started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_packets: Option<u64>,
    /// The share of packets that came so.
    pub late_share: Option<f64>,
    /// At a source: how late, of the last ten to twenty seconds. The most that is known for certain.
    pub lateness_s: Option<f64>,
    /// Packets that arrived with a router's mark of congestion (ECN), since the session started.
    pub marked_packets: u64,
    /// The share of packets that came so.
    pub marked_share: Option<f64>,
    /// Rate of arrivals in the last second, as IP packets, bit/s.
    pub delivery_rate_bps: Option<f64>,
}

/// Min queueing delay to report a queue, seconds, together with a share of the min round-trip time. Clocks and hosts
/// differ by less.
const QUEUE_S: f64 = 0.004;
const QUEUE_SHARE: f64 = 0.1;
/// One packet in a thousand.
const SOME_LOSS: f64 = 0.001;

impl PathStatus {
    pub(super) fn of(facts: &PathFacts) -> Self {
        let seconds = |span: Option<Duration>| span.map(Duration::as_secs_f64);
        Self {
            least_rtt_s: seconds(facts.least_rtt),
            latest_rtt_s: seconds(facts.latest_rtt),
            queueing_s: seconds(facts.queueing()),
            waiting_s: seconds(facts.waiting),
            span_s: facts.recent_span.as_secs_f64(),
            packets: facts.recent.arrived.saturating_add(facts.recent.lost),
            loss_share: facts.recent.loss(),
            loss_share_all: facts.all.loss(),
            late_packets: facts.late_packets,
            late_share: facts.recent.late_share(),
            lateness_s: seconds(facts.lateness),
            marked_packets: facts.all.marked,
            marked_share: facts.recent.marks(),
            delivery_rate_bps: facts.delivery_rate.map(Rate::as_bps),
        }
    }

    /// Whether packets wait in a queue.
    pub fn has_queue(&self) -> bool {
        let (Some(queueing), Some(least)) = (self.queueing_s, self.least_rtt_s) else { return false };
        queueing > QUEUE_S && queueing > QUEUE_SHARE * least
    }

    /// A description of the path: round-trip times, queue, loss, late packets and marks.
    pub(super) fn words(&self, rtt_s: Option<f64>) -> Option<String> {
        let mut words = vec![self.rtt_words(rtt_s)?];
        words.extend(self.loss_words());
        words.extend(self.late_words());
        let marked = self.marked_share.filter(|marked| *marked > 0.0);
        words.extend(marked.map(|marked| format!("{} marked by routers", percent(marked))));
        Some(words.join(", "))
    }

    fn rtt_words(&self, rtt_s: Option<f64>) -> Option<String> {
        let (now, least) = (rtt_s?, self.least_rtt_s?);
        let queue = self.queueing_s.filter(|_| self.has_queue());
        let queue = queue.map_or_else(|| ", no queue".to_owned(), |queue| format!(", {} of it in queues", ms(queue)));
        Some(format!("RTT {} (minimum {}){queue}", ms(now), ms(least)))
    }

    fn loss_words(&self) -> Option<String> {
        let loss = self.loss_share?;
        Some(if loss == 0.0 { "no loss".to_owned() } else { format!("{} lost", percent(loss)) })
    }

    /// Which packets came late; nothing where none did.
    fn late_words(&self) -> Option<String> {
        let late = self.late_share.filter(|late| *late > 0.0)?;
        let by = self.lateness_s.map(|by| format!(" by {}", ms(by)));
        Some(format!("{} late{}", percent(late), by.unwrap_or_default()))
    }

    /// Its problems, for a line with little room; `None` without problems.
    pub fn short(&self, rtt_s: Option<f64>) -> Option<String> {
        let mut parts = Vec::new();
        if let Some(loss) = self.loss_share.filter(|loss| *loss >= SOME_LOSS) {
            parts.push(format!("{} lost", percent(loss)));
        }
        if self.late_share.is_some_and(|late| late >= SOME_LOSS) {
            parts.extend(self.late_words());
        }
        if let Some(queue) = self.queueing_s.filter(|_| self.has_queue()) {
            parts.push(format!("{} in queues", ms(queue)));
        }
        if let Some(marked) = self.marked_share.filter(|marked| *marked >= SOME_LOSS) {
            parts.push(format!("{} marked", percent(marked)));
        }
        parts.extend(rtt_s.map(|rtt| format!("RTT {}", ms(rtt))));
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// Milliseconds for people.
fn ms(seconds: f64) -> String {
    let ms = seconds * 1e3;
    if ms < 10.0 { format!("{ms:.1} ms") } else { format!("{ms:.0} ms") }
}

/// A share for people.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        ..0.01 => "less than 0.01 %".to_owned(),
        ..1.0 => format!("{percent:.2} %"),
        _ => format!("{percent:.1} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> PathStatus {
        PathStatus {
            least_rtt_s: Some(0.060),
            latest_rtt_s: Some(0.061),
            queueing_s: Some(0.0005),
            span_s: 10.0,
            packets: 10_000,
            loss_share: Some(0.0),
            ..PathStatus::default()
        }
    }

    #[test]
    fn words__name_each_fact_that_there_is() {
        let plain = status();
        let words = |status: &PathStatus, rtt| status.words(Some(rtt)).unwrap();
        assert_eq!(words(&plain, 0.0605), "RTT 60 ms (minimum 60 ms), no queue, no loss");
        let bad = PathStatus {
            queueing_s: Some(0.045),
            loss_share: Some(0.0512),
            late_share: Some(0.031),
            lateness_s: Some(0.0198),
            marked_share: Some(0.004),
            ..plain
        };
        let expected = "RTT 105 ms (minimum 60 ms), 45 ms of it in queues, 5.1 % lost, 3.1 % late by 20 ms, 0.40 % marked \
                        by routers";
        assert_eq!(words(&bad, 0.105), expected);
        assert_eq!(
            bad.short(Some(0.105)).unwrap(),
            "5.1 % lost, 3.1 % late by 20 ms, 45 ms in queues, 0.40 % marked, RTT 105 ms"
        );
        // Before the first round trip there is nothing to say.
        assert_eq!(PathStatus::default().words(None), None);
        assert_eq!(PathStatus::default().short(None), None);
        // A loss of one in 20 000 limits nothing.
        assert_eq!(PathStatus { loss_share: Some(5e-5), ..plain }.short(Some(0.06)).unwrap(), "RTT 60 ms");
        assert_eq!(percent(5e-5), "less than 0.01 %");
    }

    #[test]
    fn has_queue__is_above_four_ms_and_a_tenth_of_the_least() {
        let with = |least: f64, queueing: f64| PathStatus {
            least_rtt_s: Some(least),
            queueing_s: Some(queueing),
            ..PathStatus::default()
        };
        assert!(!with(0.001, 0.0039).has_queue() && with(0.001, 0.0041).has_queue());
        assert!(!with(0.1, 0.0099).has_queue() && with(0.1, 0.0101).has_queue());
        assert!(!PathStatus::default().has_queue());
    }
}
