//! Formulas that claims evaluate by name.

use fairwave_schemes::link::{
    AecpConfig, XcpConfig, XcpEquilibrium, aecp_delay_margin_s, aecp_efficiency_s, aecp_fairness_printed_s,
    aecp_fairness_s, logistic, xcp_control, xcp_equilibrium,
};
use fairwave_schemes::response::{
    aimd_on_ack, aimd_on_loss, aimd_utilisation, bandwidth_delay_bytes, bandwidth_delay_packets, error_spacing_s,
    packet_spacing_s, reno, reno_loss_rate_for, reno_rate_bps, reno_recovery_s, rtt_of_recovery_s,
};
use fairwave_schemes::session::{
    AecpSourceConfig, BicConfig, HighSpeed, HighSpeedConfig, ScalableConfig, Udt, UdtAck, UdtConfig, Vegas,
};
use fairwave_units::{Bytes, Duration, Rate, Time};
use serde::Deserialize;

use crate::printed_bic;
use crate::response_curve::ResponseCurve;
use crate::stated_quantity::Quantity;
use crate::unit::Dimension;

/// A formula with its arguments; windows are in packets.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Formula {
    /// Bytes in transit (Wu 2007, Eq. II.1).
    BandwidthDelay { rate: Quantity<Rate>, rtt: Quantity<Duration> },
    /// Packets in transit.
    BandwidthDelayPackets { rate: Quantity<Rate>, rtt: Quantity<Duration>, packet: Quantity<Bytes> },
    /// Ratio of the ramp times of two paths.
    RampRatio { rate: Quantity<Rate>, rtt: Quantity<Duration>, base_rate: Quantity<Rate>, base_rtt: Quantity<Duration> },
    /// Time between bit errors.
    ErrorSpacing { rate: Quantity<Rate>, bit_error_rate: f64 },
    /// Time between bit errors in round trips.
    ErrorSpacingRtts { rate: Quantity<Rate>, rtt: Quantity<Duration>, bit_error_rate: f64 },
    /// Time between packets.
    PacketSpacing { rate: Quantity<Rate>, packet: Quantity<Bytes> },
    /// Mean rate of Reno (Wu 2007, Eq. II.2).
    RenoRate { packet: Quantity<Bytes>, rtt: Quantity<Duration>, loss_rate: f64 },
    /// Packets per loss at which Reno sustains a rate.
    RenoPacketsPerLoss { rate: Quantity<Rate>, packet: Quantity<Bytes>, rtt: Quantity<Duration> },
    /// Time after a loss at full rate to recover that rate (Wu 2007, Table II.1).
    RenoRecovery { rate: Quantity<Rate>, packet: Quantity<Bytes>, rtt: Quantity<Duration> },
    /// Time from zero to full rate at one packet per RTT.
    RenoClimb { rate: Quantity<Rate>, packet: Quantity<Bytes>, rtt: Quantity<Duration> },
    /// The RTT for which the recovery takes a given time.
    RenoRttOfRecovery { rate: Quantity<Rate>, packet: Quantity<Bytes>, recovery: Quantity<Duration> },
    /// Reno's window at a loss rate.
    RenoWindow { loss_rate: f64 },
    /// Window after the acknowledgements of one window, additive increase (Wu 2007, Eq. II.3).
    AimdRound { window: f64, increase: f64 },
    /// Window after a loss (Wu 2007, Eq. II.4).
    AimdLoss { window: f64, decrease: f64 },
    /// Utilisation of a sawtooth without buffer.
    AimdUtilisation { window: f64, increase: f64, decrease: f64 },
    /// HSTCP's a(w).
    HstcpIncrease { window: f64 },
    /// HSTCP's b(w).
    HstcpDecrease { window: f64 },
    /// Window after the acknowledgements of one window under HSTCP (Wu 2007, Eq. II.5).
    HstcpRound { window: f64 },
    /// Window after a loss under HSTCP (Wu 2007, Eq. II.6, corrected).
    HstcpLoss { window: f64 },
    /// HSTCP's p(w).
    HstcpLossRate { window: f64 },
    /// HSTCP's window at a loss rate.
    HstcpWindow { loss_rate: f64 },
    /// Window after the acknowledgements of one window under Scalable TCP (Wu 2007, Eq. II.7).
    StcpRound { window: f64 },
    /// Window after a loss under Scalable TCP (Wu 2007, Eq. II.8).
    StcpLoss { window: f64 },
    /// Scalable TCP's loss rate at a window.
    StcpLossRate { window: f64 },
    /// Scalable TCP's recovery, in round trips.
    StcpRecoveryRtts {},
    /// Window after a loss under BIC (Wu 2007, Eq. II.9).
    BicLoss { window: f64 },
    /// BIC's loss rate at a window.
    BicLossRate { window: f64 },
    /// Packets between losses of AIMD, if the window before a loss is known: b (2 - b) w^2 / (2 a).
    AimdPacketsPerLoss { window: f64, increase: f64, decrease: f64 },
    /// Round trips after a loss at full rate to recover that rate, one packet each.
    RenoRecoveryRtts { rate: Quantity<Rate>, packet: Quantity<Bytes>, rtt: Quantity<Duration> },
    /// Mean window of a session that loses once per `1 / loss_rate` packets and once per `between_losses` (Xu 2004, Eq.
    /// 1).
    EpochWindow { rtt: Quantity<Duration>, between_losses: Quantity<Duration>, loss_rate: f64 },
    /// Exponent of the RTT unfairness of a response function c / p^d under synchronised loss, 1 / (1 - d) (Xu 2004,
    /// section IV).
    UnfairnessExponent { d: f64 },
    /// Mean window at a loss rate.
    ResponseWindow { response: ResponseCurve, loss_rate: f64 },
    /// Loss rate at which the mean window is `window` packets.
    ResponseLossRate { response: ResponseCurve, window: f64 },
    /// Exponent d of a response function at a loss rate.
    ResponseExponent { response: ResponseCurve, loss_rate: f64 },
    /// Mean window at which a response function crosses TCP's.
    CrossingWindow { response: ResponseCurve },
    /// Loss rate at which a response function crosses TCP's.
    CrossingLossRate { response: ResponseCurve },
    /// Largest loss rate up to which the window stays within a share of another's.
    MeetingLossRate { response: ResponseCurve, other: ResponseCurve, within: f64 },
    /// Ratio of the rate to that of a session with a longer RTT, both losing at the same instants.
    SynchronisedRatio { response: ResponseCurve, rtt_ratio: f64, window: f64 },
    /// Mean window of the rule itself under a loss after every 1 / p packets.
    RuleWindow { response: ResponseCurve, loss_rate: f64 },
    /// [`Formula::RuleWindow`] relative to the response function.
    RuleOverResponse { response: ResponseCurve, loss_rate: f64 },
    /// Packets that Vegas estimates to be queued: w - w RTTmin / RTT (Wu 2007, Eqs. II.10 and II.11).
    VegasQueued { window: f64, base: Quantity<Duration>, rtt: Quantity<Duration> },
    /// Window of UDT's rule after an acknowledgement with an arrival rate (Wu 2007, Eq. II.14, in equilibrium).
    UdtWindow { arrival: Quantity<Rate>, packet: Quantity<Bytes>, rtt: Quantity<Duration> },
    /// Total change of the rates that an XCP link computes, before it shuffles (Wu 2007, Eq. II.15).
    XcpChange { capacity: Quantity<Rate>, input: Quantity<Rate>, queue: Quantity<Bytes>, rtt: Quantity<Duration> },
    /// BIC's largest window if its epoch has rounds of additive increase (Xu 2004, Eq. 4).
    BicEq4 { loss_rate: f64 },
    /// BIC's mean window in that case (Xu 2004, Eq. 5).
    BicEq5 { loss_rate: f64 },
    /// BIC's mean window for very large windows (Xu 2004, Eq. 6).
    BicEq6 { loss_rate: f64 },
    /// BIC's largest window if its epoch is only a search (Xu 2004, before Eq. 7, instead of Lambert's W).
    BicEq7 { loss_rate: f64 },
    /// Packets of BIC's rounds of additive increase in an epoch with this largest window (Xu 2004, Eq. 2).
    BicEq2 { window: f64 },
    /// Packets of BIC's rounds of binary search (Xu 2004, Eq. 3).
    BicEq3 { window: f64 },
    /// Bytes that a loss bitmap covers (Wu 2007, section IX.1.C).
    BitmapCovers { bitmap: Quantity<Bytes>, packet: Quantity<Bytes> },
    /// Ratio of a header's bytes to a packet's.
    HeaderShare { header: Quantity<Bytes>, packet: Quantity<Bytes> },
    /// Rate of the one session that an XCP link limits, next to others of `external` in total that are limited
    /// elsewhere (Low, Andrew & Wydrowski 2005).
    XcpEquilibriumRate { capacity: Quantity<Rate>, external: Quantity<Rate>, sessions: u32 },
    /// Utilisation of that link.
    XcpEquilibriumUtilisation { capacity: Quantity<Rate>, external: Quantity<Rate>, sessions: u32 },
    /// The logistic curve (Huang et al. 2010, Eq. 1).
    Logistic { start: Quantity<Rate>, most: Quantity<Rate>, growth_per_s: f64, at: Quantity<Duration> },
    /// The earliest time to a utilisation from a start with a share of the capacity (Huang et al. 2010, Theorem 2).
    AecpEfficiencyFrom { start_share: f64, efficiency: f64 },
    /// The latest time to a utilisation from such a start.
    AecpEfficiencyTo { start_share: f64, efficiency: f64 },
    /// Time until a newcomer has a share of the others' rate (Huang et al. 2010, Theorem 3, corrected).
    AecpFairness { start_share: f64, fairness: f64 },
    /// Theorem 3 as printed.
    AecpFairnessPrinted { start_share: f64, fairness: f64 },
    /// The delay at which AECP's loop becomes unstable.
    AecpDelayMargin {},
    /// Damping ratio of AECP's rate near the capacity, without delay or queue. Below 1 a rate passes the capacity.
    AecpDamping {},
    /// Rate of each of `sessions` that fill a link next to `others`, if as many fill the return path: the
    /// acknowledgements of either direction take a part of the other.
    LeftForEach {
        capacity: Quantity<Rate>,
        others: Quantity<Rate>,
        sessions: u32,
        packet: Quantity<Bytes>,
        ack: Quantity<Bytes>,
    },
}

impl Formula {
    /// Dimension of the value.
    pub(crate) fn dimension(&self) -> Dimension {
        match self {
            Self::BandwidthDelay { .. } | Self::BitmapCovers { .. } => Dimension::Size,
            Self::ErrorSpacing { .. }
            | Self::PacketSpacing { .. }
            | Self::RenoRecovery { .. }
            | Self::RenoClimb { .. }
            | Self::RenoRttOfRecovery { .. }
            | Self::AecpEfficiencyFrom { .. }
            | Self::AecpEfficiencyTo { .. }
            | Self::AecpFairness { .. }
            | Self::AecpFairnessPrinted { .. }
            | Self::AecpDelayMargin {} => Dimension::Time,
            Self::RenoRate { .. }
            | Self::XcpChange { .. }
            | Self::XcpEquilibriumRate { .. }
            | Self::LeftForEach { .. }
            | Self::Logistic { .. } => Dimension::Rate,
            _ => Dimension::Number,
        }
    }

    /// The value, in bit/s, seconds, bytes or plain.
    pub(crate) fn evaluate(&self) -> f64 {
        match *self {
            Self::BandwidthDelay { rate, rtt } => bandwidth_delay_bytes(rate.0, rtt.0),
            Self::BandwidthDelayPackets { rate, rtt, packet } => bandwidth_delay_packets(rate.0, rtt.0, packet.0),
            Self::RampRatio { rate, rtt, base_rate, base_rtt } => {
                bandwidth_delay_bytes(rate.0, rtt.0) / bandwidth_delay_bytes(base_rate.0, base_rtt.0)
            }
            Self::ErrorSpacing { rate, bit_error_rate } => error_spacing_s(rate.0, bit_error_rate),
            Self::ErrorSpacingRtts { rate, rtt, bit_error_rate } => {
                error_spacing_s(rate.0, bit_error_rate) / rtt.0.as_secs_f64()
            }
            Self::PacketSpacing { rate, packet } => packet_spacing_s(rate.0, packet.0),
            Self::RenoRate { packet, rtt, loss_rate } => reno_rate_bps(packet.0, rtt.0, loss_rate),
            Self::RenoPacketsPerLoss { rate, packet, rtt } => 1.0 / reno_loss_rate_for(rate.0, packet.0, rtt.0),
            Self::RenoRecovery { rate, packet, rtt } => reno_recovery_s(rate.0, packet.0, rtt.0),
            Self::RenoClimb { rate, packet, rtt } => {
                bandwidth_delay_packets(rate.0, rtt.0, packet.0) * rtt.0.as_secs_f64()
            }
            Self::RenoRttOfRecovery { rate, packet, recovery } => rtt_of_recovery_s(rate.0, packet.0, recovery.0),
            Self::RenoWindow { loss_rate } => reno(loss_rate),
            Self::AimdRound { window, increase } => round(window, |w| aimd_on_ack(w, increase)),
            Self::AimdLoss { window, decrease } => aimd_on_loss(window, decrease),
            Self::AimdUtilisation { window, increase, decrease } => aimd_utilisation(window, increase, decrease),
            Self::HstcpIncrease { window } => hstcp().increase_packets(window),
            Self::HstcpDecrease { window } => hstcp().decrease_share(window),
            Self::HstcpRound { window } => {
                let rule = hstcp();
                round(window, |w| aimd_on_ack(w, rule.increase_packets(w)))
            }
            Self::HstcpLoss { window } => aimd_on_loss(window, hstcp().decrease_share(window)),
            Self::HstcpLossRate { window } => hstcp().loss_rate(window),
            Self::HstcpWindow { loss_rate } => hstcp().mean_window_packets(loss_rate),
            Self::StcpRound { window } => round(window, |w| ScalableConfig::default().window_after_ack(w)),
            Self::StcpLoss { window } => ScalableConfig::default().window_after_loss(window),
            Self::StcpLossRate { window } => ScalableConfig::default().loss_rate(window),
            Self::StcpRecoveryRtts {} => ScalableConfig::default().recovery_rtts(),
            Self::BicLoss { window } => aimd_on_loss(window, BicConfig::default().beta),
            Self::BicLossRate { window } => BicConfig::default().loss_rate(window),
            Self::AimdPacketsPerLoss { window, increase, decrease } => {
                decrease * (2.0 - decrease) / (2.0 * increase) * window * window
            }
            Self::RenoRecoveryRtts { rate, packet, rtt } => bandwidth_delay_packets(rate.0, rtt.0, packet.0) / 2.0,
            Self::EpochWindow { rtt, between_losses, loss_rate } => {
                rtt.0.as_secs_f64() / (between_losses.0.as_secs_f64() * loss_rate)
            }
            Self::UnfairnessExponent { d } => 1.0 / (1.0 - d),
            Self::ResponseWindow { response, loss_rate } => response.window(loss_rate),
            Self::ResponseLossRate { response, window } => response.loss_rate(window),
            Self::ResponseExponent { response, loss_rate } => response.exponent(loss_rate),
            Self::CrossingWindow { response } => reno(response.crossing()),
            Self::CrossingLossRate { response } => response.crossing(),
            Self::MeetingLossRate { response, other, within } => response.meets(other, within),
            Self::SynchronisedRatio { response, rtt_ratio, window } => response.synchronised_ratio(rtt_ratio, window),
            Self::RuleWindow { response, loss_rate } => response.rule_window(loss_rate),
            Self::RuleOverResponse { response, loss_rate } => {
                response.rule_window(loss_rate) / response.window(loss_rate)
            }
            Self::VegasQueued { window, base, rtt } => Vegas::queued_packets(window, base.0, rtt.0.as_secs_f64()),
            Self::UdtWindow { arrival, packet, rtt } => udt_window(arrival.0.as_bps() / packet.0.as_bits_f64(), rtt.0),
            Self::XcpChange { capacity, input, queue, rtt } => {
                let [rtt_s, input_bytes] = [rtt.0.as_secs_f64(), input.0.as_bps() * rtt.0.as_secs_f64() / 8.0];
                // Without the shuffle the pools are just the change.
                let config = XcpConfig { gamma: 0.0, ..XcpConfig::default() };
                let queue_bytes = queue.0.get() as f64;
                let pools = xcp_control(&config, capacity.0.as_bps(), rtt_s, input_bytes, queue_bytes, rtt_s);
                pools.positive_bps - pools.negative_bps
            }
            Self::BicEq2 { window } => printed_bic::additive_packets(window),
            Self::BicEq3 { window } => printed_bic::search_packets(window),
            Self::BicEq4 { loss_rate } => BicConfig::default().largest_window_of_large_packets(loss_rate),
            Self::BicEq5 { loss_rate } => BicConfig::default().mean_window_of_large_packets(loss_rate),
            Self::BicEq6 { loss_rate } => BicConfig::default().mean_window_asymptote_packets(loss_rate),
            Self::BicEq7 { loss_rate } => BicConfig::default().largest_window_of_search_packets(loss_rate),
            Self::BitmapCovers { bitmap, packet } => bitmap.0.as_bits_f64() * packet.0.get() as f64,
            Self::HeaderShare { header, packet } => header.0.get() as f64 / packet.0.get() as f64,
            Self::XcpEquilibriumRate { capacity, external, sessions } => {
                at_rest(capacity, external, sessions).local_bps
            }
            Self::XcpEquilibriumUtilisation { capacity, external, sessions } => {
                at_rest(capacity, external, sessions).utilisation
            }
            Self::Logistic { start, most, growth_per_s, at } => {
                logistic(start.0.as_bps(), most.0.as_bps(), growth_per_s, at.0.as_secs_f64())
            }
            Self::AecpEfficiencyFrom { start_share, efficiency } => efficiency_s(start_share, efficiency).0,
            Self::AecpEfficiencyTo { start_share, efficiency } => efficiency_s(start_share, efficiency).1,
            Self::AecpFairness { start_share, fairness } => {
                aecp_fairness_s(&AecpSourceConfig::default(), start_share, fairness)
            }
            Self::AecpFairnessPrinted { start_share, fairness } => {
                aecp_fairness_printed_s(&AecpSourceConfig::default(), start_share, fairness)
            }
            Self::AecpDelayMargin {} => aecp_delay_margin_s(&AecpSourceConfig::default(), &AecpConfig::default()),
            // Eqs. 2 and 3 of Huang et al. 2010 give s^2 + alpha s + alpha beta there.
            Self::AecpDamping {} => {
                (AecpSourceConfig::default().alpha_per_s / AecpConfig::default().beta_per_s).sqrt() / 2.0
            }
            Self::LeftForEach { capacity, others, sessions, packet, ack } => {
                let acks = ack.0.get() as f64 / packet.0.get() as f64;
                left_bps(capacity.0.as_bps(), others.0.as_bps(), acks) / f64::from(sessions)
            }
        }
    }
}

/// Rate that a link has left for data next to others, if acknowledgements of the return path, a share `acks` of its
/// data, pass through it: forward F = C - others - acks B, back B = C - acks F.
fn left_bps(capacity_bps: f64, others_bps: f64, acks: f64) -> f64 {
    (capacity_bps * (1.0 - acks) - others_bps) / (1.0 - acks * acks)
}

/// XCP with its paper's constants.
fn at_rest(capacity: Quantity<Rate>, external: Quantity<Rate>, sessions: u32) -> XcpEquilibrium {
    xcp_equilibrium(&XcpConfig::default(), capacity.0.as_bps(), external.0.as_bps(), sessions)
}

/// UDT's window after one acknowledgement, after slow start.
fn udt_window(receive_packets_per_s: f64, rtt: Duration) -> f64 {
    let mut rule = Udt::new(UdtConfig::default());
    rule.on_nak(1, 2, 0.0);
    let capacity_packets_per_s = receive_packets_per_s;
    rule.on_ack(&UdtAck { now: Time::ZERO, acked_packets: 1, receive_packets_per_s, capacity_packets_per_s, rtt });
    rule.window_packets()
}

/// Theorem 2 with the paper's constants.
fn efficiency_s(start_share: f64, efficiency: f64) -> (f64, f64) {
    aecp_efficiency_s(&AecpSourceConfig::default(), &AecpConfig::default(), start_share, efficiency)
}

/// HighSpeed TCP as printed in RFC 3649.
fn hstcp() -> HighSpeed {
    HighSpeed::new(HighSpeedConfig::rfc_3649())
}

/// The window after as many acknowledgements as its packets; at most 10^7 of them.
fn round(window: f64, on_ack: impl Fn(f64) -> f64) -> f64 {
    let acks = window.clamp(0.0, 1e7) as u64;
    (0..acks).fold(window, |w, _| on_ack(w))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluate__an_rtt_of_reno_adds_one_packet() {
        let after = Formula::AimdRound { window: 100.0, increase: 1.0 }.evaluate();
        assert!((after - 101.0).abs() < 0.01, "{after}"); // 1/100 + 1/100.01 + ...: just below one
    }

    #[test]
    fn left_for_each__fills_both_directions() {
        let holder = r#"{ left-for-each = { capacity = "500 Mb/s", others = "240 Mb/s", sessions = 10, packet = "1000 B", ack = "40 B" } }"#;
        let formula: Formula = toml::from_str::<std::collections::BTreeMap<String, Formula>>(&format!("f = {holder}"))
            .unwrap()
            .remove("f")
            .unwrap();
        let there = 10.0 * formula.evaluate();
        let back = 500e6 - 0.04 * there;
        // Forward: data, the others, and acknowledgements of the return path use all of it.
        assert!((there + 240e6 + 0.04 * back - 500e6).abs() < 1.0, "{there}");
    }

    #[test]
    fn formula__rejects_unknown_arguments() {
        #[derive(Debug, Deserialize)]
        struct Holder {
            #[allow(dead_code)]
            formula: Formula,
        }
        let good = r#"formula = { packet-spacing = { rate = "1 Gb/s", packet = "1500 B" } }"#;
        assert!(toml::from_str::<Holder>(good).is_ok());
        for bad in [
            r#"formula = { packet-spacing = { rate = "1 Gb/s", packet = "1500 B", rtt = "1 ms" } }"#,
            r#"formula = { packet-spacing = { rate = "1 Gb/s" } }"#,
            "formula = { no-such = {} }",
            r#"formula = { packet-spacing = { rate = "fast", packet = "1500 B" } }"#,
        ] {
            assert!(toml::from_str::<Holder>(bad).is_err(), "{bad}");
        }
    }
}
