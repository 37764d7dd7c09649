//! States of a model, and their gains.

use super::config::{STARTUP_PACING, WINDOW_GAIN};

/// State of a model (BBR s5.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BbrState {
    /// Doubles the rate each round trip until the path is full.
    Startup,
    /// Drains the queue that startup made.
    Drain,
    /// Sends slightly less than the path takes, until its own queue has drained.
    ProbeDown,
    /// Sends as much as the path takes.
    ProbeCruise,
    /// Fills the path before a probe.
    ProbeRefill,
    /// Probes: sends more than the path is known to take.
    ProbeUp,
    /// Sends little, so that the round-trip time shows without a queue.
    ProbeRtt,
}

impl BbrState {
    /// Gain of the rate relative to the bandwidth (BBR s5.6.1).
    pub(crate) fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => STARTUP_PACING,
            Self::Drain => 0.5,
            Self::ProbeDown => 0.9,
            Self::ProbeCruise | Self::ProbeRefill | Self::ProbeRtt => 1.0,
            Self::ProbeUp => 1.25,
        }
    }

    /// Gain of the window relative to the bandwidth-delay product (BBR s5.6.1).
    pub(crate) fn window_gain(self) -> f64 {
        match self {
            Self::ProbeUp => 2.25,
            Self::ProbeRtt => 0.5,
            _ => WINDOW_GAIN,
        }
    }

    /// Whether it is one of the four states of the probing cycle.
    pub(crate) fn is_probe_bw(self) -> bool {
        matches!(self, Self::ProbeDown | Self::ProbeCruise | Self::ProbeRefill | Self::ProbeUp)
    }

    /// Whether more is sent to probe the path (BBR s5.3.3.9, IsProbingBW).
    pub(crate) fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::ProbeRefill | Self::ProbeUp)
    }

    /// In words: "startup", "drain", "probe down" and so on.
    pub fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Drain => "drain",
            Self::ProbeDown => "probe down",
            Self::ProbeCruise => "cruise",
            Self::ProbeRefill => "refill",
            Self::ProbeUp => "probe up",
            Self::ProbeRtt => "probe rtt",
        }
    }
}
