//! Texts for users about calibrations and lateness.

use std::fmt;

use crate::calibration::{Calibration, Load};
use crate::lateness::Lateness;

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} flow{}: {:.2} Gb/s of {:.2} offered, {:.0} packets/s, late by {:.0} us (half), {:.0} us (99 %), {:.0} % \
             of a processor",
            self.flows,
            if self.flows == 1 { "" } else { "s" },
            self.carried_bps / 1e9,
            self.offered_bps / 1e9,
            self.packets_per_s,
            self.late_half_us,
            self.late_p99_us,
            self.relay_cpu * 100.0
        )
    }
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "calibration: {}; {}", self.one_flow, self.twenty_flows)
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "lateness: {:.0} us (half), {:.0} us (99 %), {:.0} us (99.9 %); programs were stalled for at most {:.0} ms \
             ({}); {} overflows; the relay took {:.0} % of a processor",
            self.late_half_us,
            self.late_p99_us,
            self.late_p999_us,
            self.standstill_ms,
            self.standstill_at,
            self.overflows,
            self.relay_cpu * 100.0
        )
    }
}
