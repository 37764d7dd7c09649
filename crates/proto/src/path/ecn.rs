//! Routers' marks of congestion (ECN, RFC 3168).

use std::cmp::Ordering;

/// The ECN field of an IP packet, as it came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Its sender takes no marks, or a node on the path clears the field.
    #[default]
    NotCapable,
    /// ECT(0): its sender takes marks, and no router has marked it.
    Capable,
    /// ECT(1): no packet of these hosts sets out so.
    CapableOne,
    /// CE: a router has marked it in place of dropping it.
    Marked,
}

/// Data packets that came for the first time, by their ECN field, as reported by the sink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnCounts {
    /// Those with ECT(0).
    pub capable: u64,
    /// Those with ECT(1).
    pub capable_one: u64,
    /// Those with CE.
    pub marked: u64,
}

/// A source's evaluation of its sink's counts: whether marks can be believed on this path, and which of them to pass to
/// the rate controller.
///
/// All data packets of a shared path are sent with ECT(0), until the sink's counts show that a hop clears or rewrites
/// the field (RFC 9000 s13.4.2.1). From then on packets are not ECT, and no mark counts. The same holds for a sink that
/// reports no counts. If nothing at all arrives, ECN may be the cause, and is turned off as well.
///
/// A sink can lie. One that hides marks still has losses and queues, which hold the session as they do on a path
/// without ECN; one that makes up marks slows its own session, and at most as many of them count as packets have
/// arrived.
#[derive(Clone, Debug)]
pub(crate) struct EcnValidation {
    is_on: bool,
    /// The highest that were heard.
    counts: EcnCounts,
    /// Packets that had arrived, as far as known, when they were heard.
    arrived: u64,
    is_heard: bool,
    /// Packets with reports that were read before any were heard.
    unheard: u32,
    /// Marks that were reported and that no arrived packet has been given.
    unreported: u64,
}

/// A sink whose reports have covered this many packets, in [`SILENT_REPORTS`] packets of reports, had the opportunity to
/// report its counts: each report starts with them, and may take several packets.
const SILENT_PACKETS: u64 = 100;
/// Packets of reports after which a sink without counts reports none: ten lost in a row are unlikely.
const SILENT_REPORTS: u32 = 10;
/// If at least this many packets are lost and no packet arrived, the field may be the cause: a session starts with this
/// many.
const FIRST_LOST: u64 = 10;

impl EcnCounts {
    /// One more has come.
    #[inline]
    pub(crate) fn count(&mut self, ecn: Ecn) {
        match ecn {
            Ecn::NotCapable => {}
            Ecn::Capable => self.capable += 1,
            Ecn::CapableOne => self.capable_one += 1,
            Ecn::Marked => self.marked += 1,
        }
    }

    /// All with any of them.
    pub(crate) fn sum(self) -> u64 {
        self.capable.saturating_add(self.capable_one).saturating_add(self.marked)
    }
}

impl EcnValidation {
    /// Of a session whose rate follows marks, or of one whose rate does not: that sends no packet that asks for them.
    pub(crate) fn new(follows_marks: bool) -> Self {
        Self {
            is_on: follows_marks,
            counts: EcnCounts::default(),
            arrived: 0,
            is_heard: false,
            unheard: 0,
            unreported: 0,
        }
    }

    /// Whether data packets set out with ECT(0).
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// The reported marks are inconsistent, or missing.
    fn turn_off(&mut self) {
        (self.is_on, self.unreported) = (false, 0);
    }

    /// The sink reports its counts, when `sent` packets had been sent, and `arrived` were known to have arrived.
    pub(crate) fn on_counts(&mut self, counts: EcnCounts, sent: u64, arrived: u64) {
        if !self.is_on {
            return;
        }
        let before = self.counts;
        let is_old = match counts.sum().cmp(&before.sum()) {
            Ordering::Less => true,
            // Of the last ones that came nothing had a field: that shows below.
            Ordering::Equal => false,
            Ordering::Greater => counts.capable < before.capable || counts.marked < before.marked,
        };
        if is_old {
            return;
        }
        // RFC 9000 s13.4.2.1: what is counted must be no less than what has newly arrived, each of which set out with
        // ECT(0). Counts are as of when they were made, and arrivals may be heard of later: those of the last time
        // count.
        let is_bleached = counts.capable.saturating_add(counts.marked) < self.arrived;
        let is_mangled = counts.capable_one > 0;
        if is_bleached || is_mangled || counts.sum() > sent {
            self.turn_off();
            return;
        }
        self.unreported = self.unreported.saturating_add(counts.marked.saturating_sub(before.marked));
        (self.counts, self.arrived, self.is_heard) = (counts, arrived, true);
    }

    /// A packet with reports was read, after which `arrived` packets are known to have arrived, and `lost` to be lost.
    pub(crate) fn end_report(&mut self, arrived: u64, lost: u64) {
        if !self.is_on || self.is_heard {
            return;
        }
        // RFC 9000 s13.4.2: there are paths on which all that bears the field gets lost.
        if arrived == 0 && lost >= FIRST_LOST {
            self.turn_off();
        }
        self.unheard = self.unheard.saturating_add(1);
        if arrived >= SILENT_PACKETS && self.unheard >= SILENT_REPORTS {
            self.turn_off();
        }
    }

    /// A packet has arrived: whether it counts as a marked one. Each mark counts once.
    #[inline]
    pub(crate) fn take_mark(&mut self) -> bool {
        let is_marked = self.unreported > 0;
        self.unreported -= u64::from(is_marked);
        is_marked
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn counts(capable: u64, marked: u64) -> EcnCounts {
        EcnCounts { capable, capable_one: 0, marked }
    }

    /// The number of marked packets among `packets` arriving ones.
    fn taken(marks: &mut EcnValidation, packets: u64) -> u64 {
        (0..packets).map(|_| u64::from(marks.take_mark())).sum()
    }

    #[test]
    fn on_counts__each_mark_counts_once() {
        let mut marks = EcnValidation::new(true);
        marks.on_counts(counts(90, 10), 200, 0);
        assert_eq!((taken(&mut marks, 4), taken(&mut marks, 96)), (4, 6));
        marks.on_counts(counts(185, 15), 400, 100);
        // An older one comes late, and the same again.
        marks.on_counts(counts(90, 10), 400, 150);
        marks.on_counts(counts(185, 15), 400, 190);
        assert_eq!((taken(&mut marks, 100), marks.is_on()), (5, true));
        // A session whose rate follows no marks asks for none, and counts none.
        let mut none = EcnValidation::new(false);
        none.on_counts(counts(90, 10), 200, 0);
        assert_eq!((none.is_on(), taken(&mut none, 100)), (false, 0));
    }

    #[test]
    fn on_counts__a_path_that_takes_the_field_away_is_not_believed() {
        // From the beginning: the sink has nothing to tell.
        let mut marks = EcnValidation::new(true);
        (0..10).for_each(|_| marks.end_report(99, 5));
        assert!(marks.is_on());
        marks.end_report(100, 5);
        assert!(!marks.is_on());
        // One of its first packets got lost.
        let mut marks = EcnValidation::new(true);
        (0..9).for_each(|_| marks.end_report(1000, 0));
        marks.on_counts(counts(1500, 0), 2000, 1000);
        (0..9).for_each(|_| marks.end_report(2000, 0));
        assert!(marks.is_on());
        // Later on: 150 have arrived by the counts before, and 100 of them had a field.
        let mut marks = EcnValidation::new(true);
        marks.on_counts(counts(99, 1), 200, 100);
        marks.on_counts(counts(99, 1), 300, 150);
        assert!(marks.is_on());
        marks.on_counts(counts(99, 1), 400, 200);
        assert_eq!((marks.is_on(), taken(&mut marks, 10)), (false, 0));
    }

    #[test]
    fn end_report__a_path_that_lets_nothing_through_may_do_so_without_ecn() {
        let mut marks = EcnValidation::new(true);
        marks.end_report(0, 9);
        assert!(marks.is_on());
        marks.end_report(0, 10);
        assert!(!marks.is_on());
    }

    #[test]
    fn on_counts__a_path_that_writes_into_the_field_is_not_believed() {
        let mut marks = EcnValidation::new(true);
        marks.on_counts(EcnCounts { capable: 50, capable_one: 1, marked: 3 }, 100, 0);
        assert_eq!((marks.is_on(), taken(&mut marks, 10)), (false, 0));
    }

    #[test]
    fn on_counts__more_than_was_sent_is_not_believed() {
        let mut marks = EcnValidation::new(true);
        marks.on_counts(counts(50, 51), 100, 0);
        assert_eq!((marks.is_on(), taken(&mut marks, 10)), (false, 0));
    }

    proptest! {
        /// Whatever a sink reports: no packet is marked that has not arrived, and no more are than were sent.
        #[test]
        fn on_counts__of_anything(says in proptest::collection::vec((any::<[u64; 3]>(), 0_u64..50, 0_u32..64), 1..50)) {
            let (mut marks, mut sent, mut arrived, mut marked) = (EcnValidation::new(true), 0_u64, 0, 0);
            for (numbers, packets, shift) in says {
                let [capable, capable_one, reported] = numbers.map(|number| number >> shift);
                sent += packets;
                marks.on_counts(EcnCounts { capable, capable_one, marked: reported }, sent, arrived);
                marked += taken(&mut marks, packets);
                arrived += packets;
                marks.end_report(arrived, 0);
                prop_assert!(marked <= arrived && marked <= sent);
            }
        }
    }
}
