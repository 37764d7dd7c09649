//! Link rules by name, with a scenario's options.

use super::{LinkController, LinkSetup};
use crate::scheme::{Options, find};

/// The rule of a discipline (the name of a scheme that has one) with the given options; the others have the scheme's
/// defaults. `None` for a discipline without a rule.
pub fn link_controller(discipline: &str, options: &Options, setup: &LinkSetup) -> Option<Box<dyn LinkController>> {
    let make = find(discipline)?.link_controller?;
    Some(make(options, setup))
}

#[cfg(test)]
mod tests {
    use fairwave_units::{Duration, Rate, Time};
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::header::{CongestionHeader, LinkId, LoadCode, RcpHeader};
    use crate::link::Passage;
    use crate::scheme::{SchemeKind, schemes};
    use crate::session::{Sending, controller};

    /// The schemes whose rule a link may run.
    fn names() -> Vec<&'static str> {
        schemes().iter().filter(|scheme| scheme.link_controller.is_some()).map(|scheme| scheme.name).collect()
    }

    /// A header as the scheme's source sends it, or as other links may have left it.
    fn header(name: &str, value: u64) -> CongestionHeader {
        let smoothed_rtt = (!value.is_multiple_of(5)).then(|| Duration::from_nanos(1 + value % 2_000_000_000));
        let source = controller(name, &Options::default()).unwrap();
        match source.header(&Sending { smoothed_rtt, window_packets: value % 1000 }).unwrap() {
            CongestionHeader::Vcp(_) => {
                CongestionHeader::Vcp([LoadCode::Low, LoadCode::High, LoadCode::Overload][value as usize % 3])
            }
            CongestionHeader::Rcp(header) => CongestionHeader::Rcp(RcpHeader { rtt: smoothed_rtt, ..header }),
            header => header,
        }
    }

    #[test]
    fn link_controller__is_of_every_scheme_of_links_that_runs() {
        for scheme in schemes() {
            // endpoint-xcp is xcp at the node's access links.
            let wanted = scheme.kind == SchemeKind::Link && !scheme.models.is_empty() && scheme.name != "endpoint-xcp";
            assert_eq!(scheme.link_controller.is_some(), wanted, "{}", scheme.name);
        }
    }

    /// Whether a link left a header that a source can use.
    fn is_sound(header: &CongestionHeader) -> bool {
        match header {
            CongestionHeader::Aecp(header) => header.rate_factor_bps > 0.0 && header.rate_factor_bps.is_finite(),
            CongestionHeader::Vcp(_)
            | CongestionHeader::Priority(_)
            | CongestionHeader::Ecn(_)
            | CongestionHeader::EcnEcho { .. } => true,
            CongestionHeader::Rcp(header) => header.rate_bps > 0.0 && header.rate_bps.is_finite(),
            CongestionHeader::Xcp(header) => header.change_bps.is_finite(),
            CongestionHeader::Maxnet { price } => *price >= 0.0 && price.is_finite(),
            // Without a sample or an offer the fields are as sent.
            CongestionHeader::Mkc(header) => header.loss <= 1.0,
            CongestionHeader::Jetmax(header) => header.least_bps >= 0.0 && header.fair_bps >= 0.0,
        }
    }

    proptest! {
        /// Any packets at any times: the clock advances, and headers stay sound.
        #[test]
        fn link_controller__accepts_any_packets_and_times(
            name in select(names()),
            mbps in 0.001..100_000.0_f64,
            phase in 0.0..1.0_f64,
            steps in proptest::collection::vec(
                (0_u8..4, 0_u64..500_000_000, 0_u32..70_000, 0_u64..10_000_000_000, any::<u64>()), 1..200,
            ),
        ) {
            let setup = LinkSetup { id: LinkId::of(0), capacity: Rate::mbps(mbps), packet_bytes: 1000, phase };
            let mut link = link_controller(name, &Options::default(), &setup).unwrap();
            let mut now = Time::ZERO;
            for (what, wait, bytes, queue_bytes, value) in steps {
                now += Duration::from_nanos(wait);
                while link.next_timer() <= now {
                    let at = link.next_timer();
                    link.on_timer(at, queue_bytes);
                    prop_assert!(link.next_timer() > at, "{name}");
                }
                let passage = Passage { now, bytes, is_data: what < 3, queue_bytes };
                let mut header = header(name, value);
                let is_headed = what < 2;
                link.on_arrival(&passage, is_headed.then_some(&header));
                link.on_departure(&passage, is_headed.then_some(&mut header));
                prop_assert!(!is_headed || is_sound(&header), "{header:?}");
            }
        }
    }
}
