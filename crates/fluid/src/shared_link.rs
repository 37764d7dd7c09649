//! One link, round trip by round trip: a learner's window next to the window of a built-in scheme, for policy search.
//!
//! Both windows share one FIFO queue as fluids. A round is the round-trip time that they then have; losses of a round
//! are known at its end. Draws of links are seeded, so episodes are a function of seed and actions.

use fairwave_scenario::random::{RandomStream, stream};
use fairwave_schemes::scheme::Options;
use fairwave_schemes::session::{RuleError, Solo, controller_from};
use fairwave_units::{Duration, Time};

/// Data of a packet, bits.
pub const PACKET_BITS: f64 = 12_000.0;
/// First window of the learner, packets (RFC 6928).
const FIRST_WINDOW_PACKETS: f64 = 10.0;
/// Largest window of the learner, packets: 2^20.
pub const MAX_WINDOW_PACKETS: f64 = 1_048_576.0;
/// Weight of the lost share in the reward.
const LOSS_WEIGHT: f64 = 10.0;

/// Ranges that each episode draws its link from, and the scheme of the other session.
#[derive(Clone, Debug)]
pub struct LinkDraws {
    /// Capacity, bit/s, log-uniform.
    pub capacity_bps: (f64, f64),
    /// Round-trip time without a queue, seconds, log-uniform.
    pub rtt_s: (f64, f64),
    /// Size of the queue in bandwidth-delay products, uniform.
    pub queue_bdp: (f64, f64),
    /// Share of packets lost at random, uniform.
    pub loss: (f64, f64),
    /// Scheme of the other session; `None` without another session.
    pub rival: Option<&'static str>,
    /// Rounds of an episode.
    pub rounds: u32,
}

/// Measurements of the learner at the end of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Base-2 logarithm of its window in packets.
    pub log2_window: f64,
    /// Round-trip time over the least of the episode, minus one.
    pub rtt_excess: f64,
    /// Delivered rate over the largest of the episode.
    pub delivered: f64,
    /// Share of its packets that were lost.
    pub lost: f64,
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// The learner's observation.
    pub observation: Observation,
    /// -|log2(rate / fair rate)| - queueing delay / RTT without a queue - 10 x lost share: at most 0.
    pub reward: f64,
    /// Whether the episode has all its rounds.
    pub is_last: bool,
    /// Delivered rate of the learner, bit/s.
    pub rate_bps: f64,
    /// Its fair share of the capacity, bit/s.
    pub fair_bps: f64,
}

/// A link with its sessions.
pub struct SharedLink {
    draws: LinkDraws,
    random: RandomStream,
    episode: Option<Episode>,
}

struct Episode {
    capacity: f64,
    rtt_s: f64,
    bdp: f64,
    queue: f64,
    loss: f64,
    window: f64,
    rival: Option<Solo>,
    clock_s: f64,
    least_rtt_s: f64,
    most_delivered: f64,
    round: u32,
}

impl SharedLink {
    /// A link without an episode yet.
    ///
    /// # Errors
    /// If the other session's scheme has no window rule.
    pub fn new(draws: LinkDraws, seed: u64) -> Result<Self, RuleError> {
        draws.rival.map(rival).transpose()?;
        Ok(Self { random: stream(seed, "shared-link"), draws, episode: None })
    }

    /// Starts an episode with the next draws, after a first round of ten packets.
    pub fn begin(&mut self) -> Observation {
        let Self { draws, random, .. } = self;
        let log_uniform = |random: &mut RandomStream, (least, most): (f64, f64)| {
            (least * libm::pow(most / least, random.unit())).clamp(least, most)
        };
        let capacity = log_uniform(random, draws.capacity_bps) / PACKET_BITS;
        let rtt_s = log_uniform(random, draws.rtt_s);
        let bdp = capacity * rtt_s;
        let episode = Episode {
            capacity,
            rtt_s,
            bdp,
            queue: bdp * random.uniform(draws.queue_bdp.0, draws.queue_bdp.1),
            loss: random.uniform(draws.loss.0, draws.loss.1),
            window: FIRST_WINDOW_PACKETS,
            rival: draws.rival.and_then(|name| rival(name).ok()),
            clock_s: 0.0,
            least_rtt_s: f64::INFINITY,
            most_delivered: 0.0,
            round: 0,
        };
        self.episode.insert(episode).round(random).observation
    }

    /// Multiplies the learner's window by 2^`action` and lets a round trip pass. The step after the last one of an
    /// episode starts the next: its action is ignored, and its reward is 0.
    pub fn step(&mut self, action: f64) -> Round {
        let rounds = self.draws.rounds;
        let Some(episode) = self.episode.as_mut().filter(|episode| episode.round <= rounds) else {
            let observation = self.begin();
            return Round { observation, reward: 0.0, is_last: false, rate_bps: 0.0, fair_bps: self.fair_bps() };
        };
        episode.window = (episode.window * libm::exp2(action)).clamp(1.0, MAX_WINDOW_PACKETS);
        let round = episode.round(&mut self.random);
        Round { is_last: episode.round > rounds, ..round }
    }

    fn fair_bps(&self) -> f64 {
        self.episode.as_ref().map_or(0.0, |episode| episode.fair() * PACKET_BITS)
    }
}

impl Episode {
    /// Packets a second that are the learner's part.
    fn fair(&self) -> f64 {
        self.capacity / if self.rival.is_some() { 2.0 } else { 1.0 }
    }

    fn round(&mut self, random: &mut RandomStream) -> Round {
        let others = self.rival.as_ref().map_or(0.0, Solo::window_packets);
        let offered = self.window + others;
        let queued = (offered - self.bdp).clamp(0.0, self.queue);
        let rtt_s = self.rtt_s + queued / self.capacity;
        let overflow = (offered - self.bdp - self.queue).max(0.0) / offered;
        let lost = 1.0 - (1.0 - overflow) * (1.0 - self.loss);
        let rate = self.window * (1.0 - lost) / rtt_s;
        self.clock_s += rtt_s;
        self.round += 1;
        if let Some(rival) = &mut self.rival {
            let rtt = Duration::from_nanos((rtt_s * 1e9) as u64);
            rival.advance_to(Time::from_nanos((self.clock_s * 1e9) as u64));
            let is_whole = random.unit() < libm::exp(others * libm::log1p(-lost));
            if is_whole { rival.on_ack((others as u32).max(1), rtt) } else { rival.on_loss(None) }
        }
        self.least_rtt_s = self.least_rtt_s.min(rtt_s);
        self.most_delivered = self.most_delivered.max(rate);
        let away = libm::fabs(libm::log2(rate / self.fair()));
        Round {
            observation: Observation {
                log2_window: libm::log2(self.window),
                rtt_excess: rtt_s / self.least_rtt_s - 1.0,
                delivered: if self.most_delivered > 0.0 { rate / self.most_delivered } else { 0.0 },
                lost,
            },
            // A window of which nothing arrives is as far away as one packet in a million.
            reward: -away.min(20.0) - queued / self.bdp - LOSS_WEIGHT * lost,
            is_last: false,
            rate_bps: rate * PACKET_BITS,
            fair_bps: self.fair() * PACKET_BITS,
        }
    }
}

fn rival(name: &str) -> Result<Solo, RuleError> {
    Ok(Solo::new(controller_from(name, &Options::default(), Some(FIRST_WINDOW_PACKETS), f64::INFINITY)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 12 Mb/s and 100 ms: 1000 packets a second, a BDP of 100 packets, and a queue of as many.
    fn link(rival: Option<&'static str>, rounds: u32) -> SharedLink {
        let draws = LinkDraws {
            capacity_bps: (12e6, 12e6),
            rtt_s: (0.1, 0.1),
            queue_bdp: (1.0, 1.0),
            loss: (0.0, 0.0),
            rival,
            rounds,
        };
        SharedLink::new(draws, 1).unwrap()
    }

    #[test]
    fn step__window_fills_the_path_then_the_queue_then_loses() {
        let mut link = link(None, 100);
        let first = link.begin();
        assert_eq!((first.rtt_excess, first.delivered, first.lost), (0.0, 1.0, 0.0));
        let full = link.step(libm::log2(10.0)); // 100 packets are the BDP
        assert!((full.rate_bps - 12e6).abs() < 1.0 && full.reward.abs() < 1e-9, "{full:?}");
        let queueing = link.step(libm::log2(1.5)); // 50 packets wait: 150 ms
        assert!((queueing.observation.rtt_excess - 0.5).abs() < 1e-9 && (queueing.reward + 0.5).abs() < 1e-9);
        let losing = link.step(libm::log2(250.0 / 150.0)); // 200 of 250 fit
        assert!((losing.observation.lost - 0.2).abs() < 1e-9, "{losing:?}");
        assert!((losing.reward + 1.0 + 10.0 * 0.2).abs() < 1e-9);
        assert!((losing.rate_bps - 12e6).abs() < 1.0);
    }

    #[test]
    fn step__other_session_takes_what_the_learner_leaves() {
        let mut link = link(Some("newreno"), 100);
        link.begin();
        let rates: Vec<f64> = (0..60).map(|_| link.step(0.0).rate_bps).collect();
        // Ten packets next to NewReno, which keeps between a half and the whole of path and queue.
        assert!(rates[59] < 1.3e6 && rates[59] > 0.5e6, "{rates:?}");
        assert_eq!(link.step(0.0).fair_bps, 6e6);
    }

    #[test]
    fn step__episode_ends_and_the_next_starts() {
        let mut link = link(None, 2);
        link.begin();
        let lasts: Vec<bool> = (0..4).map(|_| link.step(0.0).is_last).collect();
        assert_eq!(lasts, [false, true, false, false]);
    }

    #[test]
    fn new__depends_on_the_seed() {
        let draws = || LinkDraws { capacity_bps: (5e6, 1e8), ..link(Some("cubic"), 50).draws };
        let run = |seed| {
            let mut link = SharedLink::new(draws(), seed).unwrap();
            link.begin();
            (0..200).map(|step| link.step(f64::from(step % 3) - 1.0)).collect::<Vec<_>>()
        };
        assert_eq!(run(3), run(3));
        assert_ne!(run(3), run(4));
        assert!(SharedLink::new(LinkDraws { rival: Some("gtp"), ..draws() }, 1).is_err());
    }
}
