//! Sessions that set their own rate, with a protocol of their own between their two ends: what the loop needs of them.

use fairwave_scenario::{LossKind, TraceKind};
use fairwave_units::Time;

use crate::receiver::WindowReceiver;
use crate::simulator::Simulator;

/// Both ends of such a session. Whatever happens to one of them, it may send, by way of `out`. Messages are small
/// packets; who gets one finds its contents by its number. None overtakes another of the same direction.
pub(crate) trait Rated {
    /// Packets to deliver.
    fn size_packets(&self) -> u64;

    /// No new packets from here on.
    fn stop(&mut self);

    /// The session starts, or the time of [`Rated::wake`] has come. Harmless too early.
    fn on_wake(&mut self, now: Time, receiver: &WindowReceiver, out: &mut Vec<Out>);

    /// When to come with [`Rated::on_wake`].
    fn wake(&self) -> Option<Time>;

    /// A data packet reached the sink; `receiver` has taken it.
    fn on_data(&mut self, now: Time, number: u64, receiver: &WindowReceiver, out: &mut Vec<Out>);

    /// A message reached the source.
    fn at_source(&mut self, now: Time, message: u64, receiver: &WindowReceiver, out: &mut Vec<Out>);

    /// A message reached the sink.
    fn at_sink(&mut self, now: Time, message: u64, receiver: &WindowReceiver, out: &mut Vec<Out>);
}

/// What a session wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Out {
    /// The source sends a data packet, for the first time or again.
    Data { number: u64, is_again: bool },
    /// The sink sends a message.
    ToSource { message: u64, bytes: u32 },
    /// The source sends a message.
    ToSink { message: u64, bytes: u32 },
    /// The source slowed down for a loss.
    Loss,
}

/// What happened to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Wake,
    Data(u64),
    AtSource(u64),
    AtSink(u64),
}

impl Simulator<'_> {
    /// Tells a session that sets its own rate what happened, and does what it wants.
    pub(crate) fn drive(&mut self, index: u32, input: Input) {
        let now = self.now();
        let flow = &mut self.flows[index as usize];
        let Some(session) = flow.source.rated_mut() else { return };
        let mut out = std::mem::take(&mut self.outbox);
        match input {
            Input::Wake => session.on_wake(now, &flow.receiver, &mut out),
            Input::Data(number) => session.on_data(now, number, &flow.receiver, &mut out),
            Input::AtSource(message) => session.at_source(now, message, &flow.receiver, &mut out),
            Input::AtSink(message) => session.at_sink(now, message, &flow.receiver, &mut out),
        }
        let wake = session.wake();
        for wanted in out.drain(..) {
            match wanted {
                Out::Data { number, is_again } => {
                    self.flows[index as usize].counts.resent += u64::from(is_again);
                    self.send(index, number, if is_again { TraceKind::Resent } else { TraceKind::Sent });
                }
                Out::ToSource { message, bytes } => self.send_message(index, message, bytes, true),
                Out::ToSink { message, bytes } => self.send_message(index, message, bytes, false),
                Out::Loss => self.flows[index as usize].losses.push((now, LossKind::Loss)),
            }
        }
        self.outbox = out;
        if let Some(wake) = wake {
            self.arm_at(index, wake);
        }
    }
}
