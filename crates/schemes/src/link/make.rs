//! Link rules by name, with the options that a scenario names.

use super::{
    AecpConfig, AecpLink, LinkController, LinkSetup, RcpConfig, RcpLink, VcpConfig, VcpLink, XcpConfig, XcpKind,
    XcpLink,
};
use crate::scheme::Options;

/// The rule of a discipline ("xcp", "ixcp", "pxcp", "aecp", "vcp", "rcp") with the options that were named for it; the others have the
/// scheme's defaults. `None` for a discipline that has none.
pub fn link_controller(discipline: &str, options: &Options, setup: &LinkSetup) -> Option<Box<dyn LinkController>> {
    let xcp = |kind| Box::new(XcpLink::new(kind, XcpConfig::from_options(options), setup));
    Some(match discipline {
        "xcp" => xcp(XcpKind::Plain),
        "ixcp" => xcp(XcpKind::Improved),
        "pxcp" => xcp(XcpKind::Scaled),
        "aecp" => Box::new(AecpLink::new(AecpConfig::from_options(options), setup)),
        "vcp" => Box::new(VcpLink::new(VcpConfig::from_options(options), setup)),
        "rcp" => Box::new(RcpLink::new(RcpConfig::from_options(options), setup)),
        _ => return None,
    })
}

impl XcpConfig {
    /// The constants that were named, else the defaults.
    pub fn from_options(options: &Options) -> Self {
        let default = Self::default();
        Self {
            alpha: options.number("alpha").unwrap_or(default.alpha),
            beta: options.number("beta").unwrap_or(default.beta),
            gamma: options.number("gamma").unwrap_or(default.gamma),
        }
    }
}

impl AecpConfig {
    /// The constants that were named, else the defaults.
    pub fn from_options(options: &Options) -> Self {
        let default = Self::default();
        Self {
            beta_per_s: options.number("beta").unwrap_or(default.beta_per_s),
            t: options.time("t").unwrap_or(default.t),
            first_share: options.number("first_share").unwrap_or(default.first_share),
            q0_packets: options.packets("q0").map_or(default.q0_packets, |packets| packets as f64),
            ..default
        }
    }
}

impl VcpConfig {
    /// The constants that were named, else the defaults.
    pub fn from_options(options: &Options) -> Self {
        let default = Self::default();
        Self {
            t_rho: options.time("t_rho").unwrap_or(default.t_rho),
            target: options.number("target").unwrap_or(default.target),
            ..default
        }
    }
}

impl RcpConfig {
    /// The constants that were named, else the defaults.
    pub fn from_options(options: &Options) -> Self {
        let default = Self::default();
        Self {
            alpha: options.number("alpha").unwrap_or(default.alpha),
            beta: options.number("beta").unwrap_or(default.beta),
            ..default
        }
    }
}

#[cfg(test)]
mod tests {
    use fairwave_units::{Duration, Rate, Time};
    use proptest::prelude::*;

    use super::*;
    use crate::header::{AecpHeader, CongestionHeader, LinkId, LoadCode, RcpHeader};
    use crate::link::Passage;

    const NAMES: [&str; 3] = ["aecp", "vcp", "rcp"];

    fn header(name: &str, value: u64) -> CongestionHeader {
        match name {
            "vcp" => CongestionHeader::Vcp([LoadCode::Low, LoadCode::High, LoadCode::Overload][value as usize % 3]),
            "rcp" => {
                let rtt = (!value.is_multiple_of(5)).then(|| Duration::from_nanos(value % 2_000_000_000));
                CongestionHeader::Rcp(RcpHeader { rate_bps: f64::INFINITY, rtt })
            }
            _ => CongestionHeader::Aecp(AecpHeader { rate_factor_bps: f64::INFINITY }),
        }
    }

    /// Whether a link left a header that a source can go by.
    fn is_sound(header: &CongestionHeader) -> bool {
        match header {
            CongestionHeader::Aecp(header) => header.rate_factor_bps > 0.0 && header.rate_factor_bps.is_finite(),
            CongestionHeader::Vcp(_) => true,
            CongestionHeader::Rcp(header) => header.rate_bps > 0.0 && header.rate_bps.is_finite(),
            CongestionHeader::Xcp(_) => false,
        }
    }

    proptest! {
        /// Whatever passes and whenever: the clock goes on, and headers say something.
        #[test]
        fn link_controller__takes_whatever_comes(
            name in 0..NAMES.len(),
            mbps in 0.001..100_000.0_f64,
            phase in 0.0..1.0_f64,
            steps in proptest::collection::vec(
                (0_u8..4, 0_u64..500_000_000, 0_u32..70_000, 0_u64..10_000_000_000, any::<u64>()), 1..200,
            ),
        ) {
            let setup = LinkSetup { id: LinkId::of(0), capacity: Rate::mbps(mbps), packet_bytes: 1000, phase };
            let mut link = link_controller(NAMES[name], &Options::default(), &setup).unwrap();
            let mut now = Time::ZERO;
            for (what, wait, bytes, queue_bytes, value) in steps {
                now += Duration::from_nanos(wait);
                while link.next_timer() <= now {
                    let at = link.next_timer();
                    link.on_timer(at, queue_bytes);
                    prop_assert!(link.next_timer() > at, "{}", NAMES[name]);
                }
                let passage = Passage { now, bytes, is_data: what < 3, queue_bytes };
                let mut header = header(NAMES[name], value);
                let is_headed = what < 2;
                link.on_arrival(&passage, is_headed.then_some(&header));
                link.on_departure(&passage, is_headed.then_some(&mut header));
                prop_assert!(!is_headed || is_sound(&header), "{header:?}");
            }
        }
    }
}
