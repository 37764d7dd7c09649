//! Rate limit of opening sessions per ticket.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fairwave_proto::codec::TicketId;

/// Sessions that a ticket opens at once: as many as it may have open. Each costs this end threads and a walk through what
/// is served.
const BURST: u32 = 256;
/// One more may open after this time: 125 a second. A client that waits for its turn among others with the same ticket
/// has one within a second or two.
const PERIOD: Duration = Duration::from_millis(8);
/// Tickets that are remembered. A ticket that is forgotten has all of its burst again.
const MAX_TICKETS: usize = 4096;

/// For each ticket: when the last of the sessions that it opened would have opened, one in each period.
#[derive(Debug, Default)]
pub(crate) struct OpenRates {
    due: BTreeMap<TicketId, Instant>,
}

impl OpenRates {
    /// Whether a ticket may open another session now.
    pub(crate) fn has_room(&self, now: Instant, ticket: TicketId) -> bool {
        self.due.get(&ticket).is_none_or(|due| due.saturating_duration_since(now) <= PERIOD * (BURST - 1))
    }

    /// It has opened one.
    pub(crate) fn count(&mut self, now: Instant, ticket: TicketId) {
        if self.due.len() >= MAX_TICKETS && !self.due.contains_key(&ticket) {
            self.due.retain(|_, due| *due > now);
            // No remaining entry can be dropped before its time; the one that is due first is the cheapest.
            if self.due.len() >= MAX_TICKETS
                && let Some(first) = self.due.iter().min_by_key(|(_, due)| **due).map(|(ticket, _)| *ticket)
            {
                self.due.remove(&first);
            }
        }
        let due = self.due.entry(ticket).or_insert(now);
        *due = (*due).max(now) + PERIOD;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_room__a_burst_and_then_one_a_period() {
        let (mut rates, now) = (OpenRates::default(), Instant::now());
        let mut open = |now: Instant, ticket: u64| {
            let has_room = rates.has_room(now, TicketId(ticket));
            if has_room {
                rates.count(now, TicketId(ticket));
            }
            has_room
        };
        assert_eq!((0..1000).filter(|_| open(now, 1)).count(), BURST as usize);
        assert!(open(now, 2), "each ticket has its own");
        // 125 a second.
        let later = now + Duration::from_secs(1);
        assert_eq!((0..1000).filter(|_| open(later, 1)).count(), 125);
        let much_later = now + Duration::from_secs(3600);
        assert_eq!((0..1000).filter(|_| open(much_later, 1)).count(), BURST as usize);
    }

    #[test]
    fn count__remembers_so_many_tickets() {
        let (mut rates, now) = (OpenRates::default(), Instant::now());
        for ticket in 0..2 * MAX_TICKETS as u64 {
            rates.count(now, TicketId(ticket));
        }
        assert_eq!(rates.due.len(), MAX_TICKETS);
    }
}
