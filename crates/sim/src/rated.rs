//! Sessions that set their own rate, with a protocol between their two ends: their interface to the loop.

use fairwave_units::Time;

use crate::receiver::WindowReceiver;

/// Both ends of such a session. At any event they may send, by way of `out`. Messages are small packets; their
/// recipient looks up the contents by number. Messages of one direction do not overtake each other.
pub(crate) trait Rated {
    /// Packets to deliver.
    fn size_packets(&self) -> u64;

    /// Stops new packets.
    fn stop(&mut self);

    /// The session starts, or the time of [`Rated::wake`] has come. Harmless if too early.
    fn on_wake(&mut self, now: Time, receiver: &WindowReceiver, out: &mut Vec<Out>);

    /// Time for [`Rated::on_wake`].
    fn wake(&self) -> Option<Time>;

    /// A data packet reached the sink; `receiver` has recorded it.
    fn on_data(&mut self, now: Time, number: u64, receiver: &WindowReceiver, out: &mut Vec<Out>);

    /// A message reached the source.
    fn at_source(&mut self, now: Time, message: u64, receiver: &WindowReceiver, out: &mut Vec<Out>);

    /// A message reached the sink.
    fn at_sink(&mut self, now: Time, message: u64, receiver: &WindowReceiver, out: &mut Vec<Out>);
}

/// A session's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Out {
    /// The source sends a data packet, new or retransmitted.
    Data { number: u64, is_again: bool },
    /// The source sends a data packet at a level of priority.
    Ranked { number: u64, is_again: bool, level: u8 },
    /// Another session of the same host is to wake at a time.
    Wake { flow: u32, at: Time },
    /// The sink sends a message.
    ToSource { message: u64, bytes: u32 },
    /// The source sends a message.
    ToSink { message: u64, bytes: u32 },
    /// The source slowed down because of a loss.
    Loss,
}

/// An event of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Wake,
    Data(u64),
    AtSource(u64),
    AtSink(u64),
}
