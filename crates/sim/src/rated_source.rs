//! The part of the loop for sessions that set their own rate.

use fairwave_scenario::{LossKind, TraceKind};
use fairwave_schemes::header::CongestionHeader;

use crate::packet::{SimPacket, SimPacketKind};
use crate::rated::{Input, Out};
use crate::transit::Transit;

/// Passes an event to a session that sets its own rate, and processes its output.
pub(crate) fn drive(transit: &mut Transit<'_>, index: u32, input: Input) {
    let now = transit.now();
    let flow = &mut transit.flows[index];
    let Some(session) = flow.source.rated_mut() else { return };
    let mut out = std::mem::take(&mut transit.outbox);
    match input {
        Input::Wake => session.on_wake(now, &flow.receiver, &mut out),
        Input::Data(number) => session.on_data(now, number, &flow.receiver, &mut out),
        Input::AtSource(message) => session.at_source(now, message, &flow.receiver, &mut out),
        Input::AtSink(message) => session.at_sink(now, message, &flow.receiver, &mut out),
    }
    let wake = session.wake();
    for wanted in out.drain(..) {
        match wanted {
            Out::Data { number, is_again } => send(transit, index, number, is_again, None),
            Out::Ranked { number, is_again, level } => {
                send(transit, index, number, is_again, Some(CongestionHeader::Priority(level)));
            }
            Out::Wake { flow, at } => transit.arm_at(flow, at),
            Out::ToSource { message, bytes } => transit.send_message(index, message, bytes, true),
            Out::ToSink { message, bytes } => transit.send_message(index, message, bytes, false),
            Out::Loss => transit.flows[index].losses.push((now, LossKind::Loss)),
        }
    }
    transit.outbox = out;
    if let Some(wake) = wake {
        transit.arm_at(index, wake);
    }
}

fn send(transit: &mut Transit<'_>, index: u32, number: u64, is_again: bool, header: Option<CongestionHeader>) {
    transit.flows[index].counts.resent += u64::from(is_again);
    transit.send_headed(index, number, if is_again { TraceKind::Resent } else { TraceKind::Sent }, header);
}

/// A data packet reaches its sink.
pub(crate) fn arrive(transit: &mut Transit<'_>, packet: SimPacket) {
    let now = transit.now();
    transit.contents.headers.take(packet.kind);
    transit.receive(packet, now);
    if let Some(delays) = &mut transit.flows[packet.flow].delays {
        delays.on_data(now, packet.stamp);
    }
    drive(transit, packet.flow, Input::Data(packet.number));
}

/// A message reaches its end.
pub(crate) fn arrive_message(transit: &mut Transit<'_>, packet: SimPacket) {
    let now = transit.now();
    let flow = &mut transit.flows[packet.flow];
    flow.counts.acks_arrived += 1;
    let to_sink = packet.kind == SimPacketKind::NOTICE;
    if let Some(delays) = flow.delays.as_mut().filter(|_| !to_sink) {
        delays.on_message(now, packet.stamp);
    }
    let input = if to_sink { Input::AtSink(packet.number) } else { Input::AtSource(packet.number) };
    drive(transit, packet.flow, input);
}
