//! The interface of a link's rule.

use fairwave_units::{Rate, Time};

use crate::header::{CongestionHeader, LinkId};
use crate::scheme::option::Options;

/// Makes the rule of a link, with the options of its scheme.
pub type MakeLinkController = fn(&Options, &LinkSetup) -> Box<dyn LinkController>;

/// The rule of one link.
pub trait LinkController: Send {
    /// A packet reaches the queue, whether or not it will be dropped.
    fn on_arrival(&mut self, passage: &Passage, header: Option<&CongestionHeader>);

    /// A packet leaves the queue, onto the wire.
    fn on_departure(&mut self, passage: &Passage, header: Option<&mut CongestionHeader>);

    /// Time of the next [`LinkController::on_timer`].
    fn next_timer(&self) -> Time;

    /// The time of [`LinkController::next_timer`] has come; `queue_bytes` are queued.
    fn on_timer(&mut self, now: Time, queue_bytes: u64);
}

/// A packet at a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passage {
    /// Time of the arrival or departure.
    pub now: Time,
    /// Its bytes on the wire.
    pub bytes: u32,
    /// Whether it is a data packet; acknowledgements only count as bytes.
    pub is_data: bool,
    /// Bytes in the queue: on arrival without the packet; on departure including it, zero if it did not wait.
    pub queue_bytes: u64,
}

/// The link that runs a rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSetup {
    /// Its name in headers.
    pub id: LinkId,
    /// Its capacity, finite and above zero.
    pub capacity: Rate,
    /// Bytes of a full packet on the wire, for rules that count in packets.
    pub packet_bytes: u32,
    /// Phase of the first timers, 0 <= phase < 1: links started together must not tick together.
    pub phase: f64,
}
