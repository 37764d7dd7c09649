//! The part of a capacity that a row of Tally holds, as far as its process is believed.

use std::collections::VecDeque;

use fairwave_schemes::node::tally::{Standing, TallyOptions};
use fairwave_units::{Duration, Rate, Time};

use crate::flow_table::EXCESS;
use crate::granted::Granted;

/// A member's report of a row of Tally.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineStanding {
    /// Its session's reservation, by the ledger of its process.
    pub standing: Standing,
    /// The last tick ([`Machine::ticks`](super::Machine::ticks)) whose grants are in that; zero for none.
    pub taken: u64,
}

/// The part of a capacity that a row of Tally holds.
///
/// The reservation that its process reports counts up to what was granted to it here: an honest ledger holds nothing
/// else for longer than four leases. Rates that it brought from a time without a machine or with another one, and a
/// little beyond its grants, count as well, up to its part.
#[derive(Clone, Debug)]
pub(super) struct Held {
    said: MachineStanding,
    /// Grants by the machine.
    given: Granted,
    /// Grants that its process had not taken when it last said where it stands, by their ticks.
    under_way: VecDeque<(u64, Rate)>,
    /// Its rate when it came, and until when that counts.
    brought: (Rate, Time),
    silent_since: Option<Time>,
    /// Of what the machine granted it, as it counted at the last tick.
    pub(super) proven: Rate,
}

/// The rates of a row that count at a tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Counted {
    pub(super) granted: Rate,
    /// The machine's last grant: a silent process keeps that, and not the largest recent one.
    pub(super) last: Rate,
    /// Of what the machine granted.
    pub(super) proven: Rate,
    /// Its report beyond that: what it brought, and what came beyond its grants.
    pub(super) beyond: Rate,
    pub(super) is_silent: bool,
}

/// Max number of grants that were not taken; of more the oldest count as the largest of them. At 20 ms a tick they are
/// those of a third of a second, and a process takes grants each tick.
const MAX_UNDER_WAY: usize = 16;

/// The longest that a reservation is held without news of its owner.
pub(super) fn two_leases() -> Duration {
    TallyOptions::default().lease * 2
}

impl Held {
    pub(super) fn new(now: Time, said: MachineStanding) -> Self {
        let until = now.saturating_add(two_leases()).saturating_add(two_leases());
        let brought = (said.standing.reserved.max(said.standing.granted), until);
        let (given, under_way) = (Granted::new(Rate::ZERO), VecDeque::new());
        let silent_since = said.standing.is_silent.then_some(now);
        Self { said, given, under_way, brought, silent_since, proven: Rate::ZERO }
    }

    pub(super) fn standing(&self) -> &Standing {
        &self.said.standing
    }

    /// Its process reports its reservation.
    pub(super) fn say(&mut self, now: Time, said: MachineStanding) {
        self.said = said;
        while self.under_way.front().is_some_and(|(tick, _)| *tick <= said.taken) {
            self.under_way.pop_front();
        }
        if !said.standing.is_silent {
            self.silent_since = None;
        } else if self.silent_since.is_none() {
            self.silent_since = Some(now);
        }
    }

    /// For a while the process may have been uncontrolled: its next report counts again.
    pub(super) fn bring(&mut self, now: Time) {
        self.brought = Self::new(now, self.said).brought;
    }

    /// The rates that count of it at a tick. A process that is silent for two leases grants nothing: its reservation
    /// has expired.
    pub(super) fn count(&mut self, now: Time, changed: Time) -> Option<Counted> {
        let two = two_leases();
        let is_over = |since: Time| now.since(since) >= two;
        if is_over(changed) || self.silent_since.is_some_and(is_over) {
            self.under_way.clear();
            self.proven = Rate::ZERO;
            return None;
        }
        let standing = &self.said.standing;
        let said = standing.reserved.max(standing.granted);
        let given = self.given.largest(now, two * 2);
        // One that never reports accepting a grant holds no more than that, either.
        let under_way = self.under_way.iter().map(|(_, rate)| *rate).fold(Rate::ZERO, Rate::max).min(given);
        let proven = said.min(given).max(under_way);
        let brought = if now < self.brought.1 { said.min(self.brought.0) } else { Rate::ZERO };
        // A session that uses more for long is closed; what exceeds the grant counts only up to the row's part.
        let most = brought.max(said.min(given * EXCESS));
        let last = self.given.current().max(under_way);
        let granted = self.under_way.back().map_or(standing.granted, |(_, rate)| *rate);
        let beyond = Rate::nearest_bps((most.as_bps() - proven.as_bps()).max(0.0));
        self.proven = proven;
        Some(Counted { granted, last, proven, beyond, is_silent: standing.is_silent })
    }

    /// It is granted a rate at a tick.
    pub(super) fn grant(&mut self, now: Time, tick: u64, rate: Rate) {
        self.proven = self.proven.max(rate);
        self.given.grant(now, rate);
        let last = self.under_way.back().map_or(self.said.standing.granted, |(_, rate)| *rate);
        if last == rate {
            return;
        }
        self.under_way.push_back((tick, rate));
        if self.under_way.len() > MAX_UNDER_WAY
            && let Some((_, oldest)) = self.under_way.pop_front()
            && let Some((_, next)) = self.under_way.front_mut()
        {
            *next = oldest.max(*next);
        }
    }
}
