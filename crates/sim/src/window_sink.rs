//! The sink of a window-based sender: it acknowledges what arrives.

use fairwave_scenario::TraceKind;
use fairwave_schemes::header::{CongestionHeader, EcnCode};
use fairwave_units::Time;

use crate::event::SimEvent;
use crate::flow::AckBlocks;
use crate::packet::{SimPacket, SimPacketKind};
use crate::transit::Transit;

/// A data packet arrives.
pub(crate) fn arrive(transit: &mut Transit<'_>, packet: SimPacket) {
    let now = transit.now();
    let flow = &transit.flows[packet.flow];
    let is_in_order = flow.delayed_ack.is_some() && flow.receiver.expects(packet.number);
    transit.receive(packet, now);
    let mut stamp = packet.stamp;
    let (mut header, _) = transit.contents.headers.take(packet.kind);
    let flow = &mut transit.flows[packet.flow];
    flow.counts.marked += u64::from(header == Some(CongestionHeader::Ecn(EcnCode::Experienced)));
    if let Some(delayed) = &mut flow.delayed_ack {
        if let Some(header) = header {
            delayed.hold(header);
        }
        let Some(echo) = delayed.on_data(now, stamp, is_in_order) else { return arm(transit, packet.flow) };
        stamp = echo;
        header = delayed.take_header();
    }
    acknowledge(transit, packet.flow, stamp, header);
}

#[inline]
fn acknowledge(transit: &mut Transit<'_>, index: u32, stamp: Time, header: Option<CongestionHeader>) {
    let flow = &mut transit.flows[index];
    let contents = &mut transit.contents;
    let blocks = match flow.options.blocks {
        AckBlocks::None => None,
        AckBlocks::Sack => flow.receiver.blocks(),
        AckBlocks::SackAndDuplicate => flow.receiver.blocks_and_duplicate(),
    };
    let header = header.map(|header| match header {
        CongestionHeader::Ecn(_) => CongestionHeader::EcnEcho { marked_packets: flow.counts.marked },
        _ => header,
    });
    let plain = blocks.map_or(SimPacketKind::PLAIN_ACK, |blocks| contents.blocks.keep(blocks));
    let ack = SimPacket {
        number: flow.receiver.next(),
        stamp,
        flow: index,
        bytes: flow.ack_bytes,
        stage: flow.routes[1].begin,
        kind: header.map_or(plain, |header| contents.headers.keep_ack(header, plain)),
    };
    transit.launch(ack, TraceKind::Sent);
}

/// Schedules the event of a delayed acknowledgement if none is pending.
fn arm(transit: &mut Transit<'_>, index: u32) {
    if let Some(at) = transit.flows[index].delayed_ack.as_mut().and_then(|delayed| delayed.arm()) {
        transit.agenda.schedule(at, SimEvent::AckTimer(index));
    }
}

/// The time of a delayed acknowledgement has come, or was moved.
pub(crate) fn on_ack_timer(transit: &mut Transit<'_>, index: u32) {
    let now = transit.now();
    let Some(delayed) = &mut transit.flows[index].delayed_ack else { return };
    match delayed.on_timer(now) {
        Some(stamp) => {
            let header = delayed.take_header();
            acknowledge(transit, index, stamp, header);
        }
        None => arm(transit, index),
    }
}
