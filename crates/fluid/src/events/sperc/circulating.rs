//! The control packet of a session, which visits every capacity on its path and comes back.

use fairwave_scenario::random::{self, RandomStream};
use fairwave_schemes::node::sperc::{CONTROL_LATE, CONTROL_LOSS, ControlPacket};
use fairwave_units::Duration;

use crate::events::mail::Mail;
use crate::plan::FluidPlan;

/// The control packet of a session.
pub(super) struct Circulating {
    /// The rows with a meter, in the order of the path.
    pub(super) rows: Vec<u32>,
    /// The packet as it last came back.
    pub(super) held: ControlPacket,
    /// The packet on its way, its number, and its fate on this way.
    pub(super) flying: ControlPacket,
    pub(super) number: u64,
    pub(super) fate: Fate,
    /// Whether it is the last one.
    pub(super) leaves: bool,
    pub(super) rate_bps: f64,
    mail: Mail,
    random: RandomStream,
    pub(super) loses: bool,
    pub(super) late_ns: u64,
}

/// Fate of a packet on one way, at one of its steps.
#[derive(Clone, Copy, Default)]
pub(super) struct Fate {
    pub(super) at_step: usize,
    /// Extra delay; `None` if it is lost.
    pub(super) late_ns: Option<u64>,
}

impl Circulating {
    pub(super) fn new(plan: &FluidPlan<'_>, k: usize) -> Self {
        let session = &plan.scenario.sessions[k];
        let has_meter = |row: &&u32| plan.resources[plan.rows[**row as usize].resource as usize].allocatable.is_some();
        let rows: Vec<u32> = plan.rows_of(k).iter().filter(has_meter).copied().collect();
        let packet = ControlPacket::new(rows.len(), session.weight, f64::INFINITY);
        let options = &plan.scenario.scheme_of(session).options;
        let (loss, late) = (CONTROL_LOSS.of(options), CONTROL_LATE.of(options));
        let stream = |what: &str| random::stream(plan.scenario.seed, &format!("{what} of session {}", session.name));
        Self {
            rows,
            held: packet.clone(),
            flying: packet,
            number: 0,
            fate: Fate::default(),
            leaves: false,
            rate_bps: 0.0,
            mail: Mail::new(loss, late, stream("control packets")),
            random: stream("steps"),
            loses: loss > 0.0,
            late_ns: late.as_nanos(),
        }
    }

    /// Draws the fate of one way, which has as many steps as there are meters.
    pub(super) fn draw(&mut self) {
        let late_ns = self.mail.fate();
        let is_usual = late_ns == Some(0);
        let at_step = if is_usual { 0 } else { self.random.below(self.rows.len() as u64) as usize };
        self.fate = Fate { at_step, late_ns };
    }

    /// Time from the departure to a step: a meter on the way there, a meter on the way back, or the return.
    pub(super) fn offset(&self, plan: &FluidPlan<'_>, k: usize, step: usize) -> u64 {
        let count = self.rows.len();
        if step < count {
            return plan.rows[self.rows[step] as usize].forward_ns;
        }
        let end = &plan.rows[plan.sink_row(k)];
        let left = if step + 1 == 2 * count { 0 } else { plan.rows[self.rows[2 * count - 2 - step] as usize].back_ns };
        // A loop without delay would never let time pass.
        (end.forward_ns + end.back_ns).max(1) - left
    }

    /// Longest time that a packet takes.
    pub(super) fn longest_ns(&self, rtt: Duration) -> u64 {
        rtt.as_nanos() + 2 * self.late_ns
    }
}
