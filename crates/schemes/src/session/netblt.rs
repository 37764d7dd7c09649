//! NETBLT, bulk data in numbered buffers at a fixed rate (Clark, Lambert & Zhang, RFC 998): its declaration and its
//! arithmetic. The protocol around them belongs to the simulator that drives it.
//!
//! The RFC leaves the change of rates to both ends and states no rule, so the rate is the session's demand.

use crate::scheme::option::{Domain, OptionSpec, TypedOption, number, packets_only};
use crate::scheme::{Model, Scheme, entry};

/// Packets per burst.
pub const BURST: TypedOption<u64> =
    packets_only("burst", "8 packets", "packets sent at once, at intervals of the rate");
/// Packets per buffer.
pub const BUFFER: TypedOption<u64> = packets_only("buffer", "1000 packets", "packets of a buffer, the unit of repair");
/// Buffers that may be outstanding.
pub const BUFFERS: TypedOption<f64> =
    number("buffers", Domain::Number { least: 1.0, most: 1e6, open: false }, "2", "buffers that may be outstanding");

const OPTIONS: [OptionSpec; 3] = [BURST.spec(), BUFFER.spec(), BUFFERS.spec()];

/// Throughput without losses in bit/s: `buffers` of `buffer_bits` outstanding at a rate. A buffer takes its time at the
/// rate and a round trip until the next one may replace it.
pub fn netblt_bps(rate_bps: f64, buffer_bits: f64, buffers: f64, rtt_s: f64) -> f64 {
    rate_bps.min(buffers * buffer_bits / (buffer_bits / rate_bps + rtt_s))
}

/// Expected rounds until a buffer is complete, if each packet is lost with this probability: the mean of the largest of
/// as many geometric numbers.
pub fn netblt_rounds(packets: f64, loss: f64) -> f64 {
    let unfinished = |round: u32| 1.0 - libm::pow(1.0 - libm::pow(loss, f64::from(round)), packets);
    1.0 + (1..1000).map(unfinished).take_while(|share| *share > 1e-12).sum::<f64>()
}

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = Scheme {
    models: &[Model::Packet],
    options: &OPTIONS,
    needs: "a demand (its rate)",
    ..entry::session("netblt", "sends numbered buffers at a fixed rate and resends what each one lacks", "RFC 998")
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn netblt_bps__needs_as_many_buffers_as_cover_a_round_trip() {
        // 64 Mb at 8 Mb/s take 8 s, and 1 s until the next one may follow: 64 / 9.
        assert!((netblt_bps(8e6, 64e6, 1.0, 1.0) - 64e6 / 9.0).abs() < 1e-6);
        assert_eq!(netblt_bps(8e6, 64e6, 2.0, 1.0), 8e6);
        // 1 + R r / S: a buffer of a round trip's data needs two.
        assert_eq!([1.0, 2.0].map(|buffers| netblt_bps(8e6, 8e6, buffers, 1.0)), [4e6, 8e6]);
    }

    #[test]
    fn netblt_rounds__grow_with_the_logarithm() {
        // 1 + (1 - 0.99^1000) + (1 - 0.9999^1000) + ...; ln 1000 / ln 100 = 1.5 rounds leave one packet.
        assert!((netblt_rounds(1000.0, 0.01) - 2.0961).abs() < 1e-4, "{}", netblt_rounds(1000.0, 0.01));
        assert!((netblt_rounds(1.0, 0.5) - 2.0).abs() < 1e-9);
        assert_eq!(netblt_rounds(1000.0, 0.0), 1.0);
    }
}
