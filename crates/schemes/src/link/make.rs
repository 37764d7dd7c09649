//! Link rules by name, with the options that a scenario names.

use super::{AecpConfig, AecpLink, LinkController, LinkSetup, VcpConfig, VcpLink, XcpConfig, XcpKind, XcpLink};
use crate::scheme::Options;

/// The rule of a discipline ("xcp", "ixcp", "pxcp", "aecp", "vcp") with the options that were named for it; the others have the
/// scheme's defaults. `None` for a discipline that has none.
pub fn link_controller(discipline: &str, options: &Options, setup: &LinkSetup) -> Option<Box<dyn LinkController>> {
    let xcp = |kind| Box::new(XcpLink::new(kind, XcpConfig::from_options(options), setup));
    Some(match discipline {
        "xcp" => xcp(XcpKind::Plain),
        "ixcp" => xcp(XcpKind::Improved),
        "pxcp" => xcp(XcpKind::Scaled),
        "aecp" => Box::new(AecpLink::new(AecpConfig::from_options(options), setup)),
        "vcp" => Box::new(VcpLink::new(VcpConfig::from_options(options), setup)),
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
