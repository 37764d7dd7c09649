//! Processing of a packet at the end of its path: the acknowledgement at its sink, further packets at its source.

use fairwave_scenario::{LossKind, TraceKind};
use fairwave_schemes::header::{CongestionHeader, EcnCode};
use fairwave_units::Time;

use super::{SimEvent, Simulator};
use crate::packet::{SimPacket, SimPacketKind};
use crate::rated::Input;

impl Simulator<'_> {
    #[inline]
    pub(super) fn arrive(&mut self, packet: SimPacket) {
        self.trace(packet, TraceKind::Arrived, None);
        if self.flows[packet.flow as usize].source.is_between_hosts() {
            self.arrive_gtp(packet);
        } else if packet.kind.is_data() {
            self.arrive_data(packet, self.now);
        } else {
            self.arrive_ack(packet);
        }
    }

    pub(super) fn arrive_data(&mut self, packet: SimPacket, at: Time) {
        let flow = &mut self.flows[packet.flow as usize];
        flow.counts.arrived += 1;
        if !flow.source.is_received() {
            return;
        }
        let is_in_order = flow.delayed_ack.is_some() && flow.receiver.expects(packet.number);
        flow.receiver.on_data(packet.number);
        if flow.completed.is_none() && flow.receiver.next() >= flow.source.size_packets() {
            flow.completed = Some(at);
            self.note_end(packet.flow, at);
        }
        let flow = &mut self.flows[packet.flow as usize];
        if !flow.source.is_acknowledged() {
            if flow.source.has_messages() {
                if let Some(delays) = &mut flow.delays {
                    delays.on_data(at, packet.stamp);
                }
                self.drive(packet.flow, Input::Data(packet.number));
            }
            return;
        }
        let mut stamp = packet.stamp;
        let (mut header, _) = self.headers.take(packet.kind);
        flow.counts.marked += u64::from(header == Some(CongestionHeader::Ecn(EcnCode::Experienced)));
        if let Some(delayed) = &mut flow.delayed_ack {
            if let Some(header) = header {
                delayed.hold(header);
            }
            let Some(echo) = delayed.on_data(self.now, stamp, is_in_order) else {
                return self.arm_ack(packet.flow);
            };
            stamp = echo;
            header = delayed.take_header();
        }
        self.acknowledge(packet.flow, stamp, header);
    }

    fn arrive_ack(&mut self, packet: SimPacket) {
        let flow = &mut self.flows[packet.flow as usize];
        flow.counts.acks_arrived += 1;
        let (header, plain) = self.headers.take(packet.kind);
        let blocks = self.blocks.take(plain).unwrap_or_default();
        if let Some(sender) = flow.source.sender_mut() {
            if let Some(delays) = &mut flow.delays {
                delays.on_ack(self.now, packet.stamp);
            }
            if let Some(header) = header {
                sender.on_header(header);
            }
            if sender.on_ack(self.now, packet.number, &blocks, packet.stamp) {
                flow.losses.push((self.now, LossKind::Loss));
            }
            if let Some(header) = header {
                sender.on_feedback(self.now, header);
            }
            self.send_all(packet.flow);
            if packet.flow as usize >= self.sessions {
                self.free_if_over(packet.flow);
            }
        } else {
            let to_sink = packet.kind == SimPacketKind::NOTICE;
            if let Some(delays) = flow.delays.as_mut().filter(|_| !to_sink) {
                delays.on_message(self.now, packet.stamp);
            }
            let input = if to_sink { Input::AtSink(packet.number) } else { Input::AtSource(packet.number) };
            self.drive(packet.flow, input);
        }
    }

    /// Sends a message of a session that sets its own rate.
    pub(crate) fn send_message(&mut self, index: u32, message: u64, bytes: u32, to_source: bool) {
        let kind = if to_source { SimPacketKind::PLAIN_ACK } else { SimPacketKind::NOTICE };
        let stage = self.flows[index as usize].routes[usize::from(to_source)].begin;
        let packet = SimPacket { number: message, stamp: self.now, flow: index, bytes, stage, kind };
        self.trace(packet, TraceKind::Sent, None);
        self.forward(packet);
    }

    #[inline]
    fn acknowledge(&mut self, index: u32, stamp: Time, header: Option<CongestionHeader>) {
        let flow = &self.flows[index as usize];
        let blocks = if flow.options.sack { flow.receiver.blocks() } else { None };
        let plain = blocks.map_or(SimPacketKind::PLAIN_ACK, |blocks| self.blocks.keep(blocks));
        let ack = SimPacket {
            number: flow.receiver.next(),
            stamp,
            flow: index,
            bytes: flow.ack_bytes,
            stage: flow.routes[1].begin,
            kind: header.map_or(plain, |header| self.headers.keep_ack(header, plain)),
        };
        self.trace(ack, TraceKind::Sent, None);
        self.forward(ack);
    }

    /// Schedules the event of a delayed acknowledgement if none is pending.
    fn arm_ack(&mut self, index: u32) {
        if let Some(at) = self.flows[index as usize].delayed_ack.as_mut().and_then(|delayed| delayed.arm()) {
            self.schedule(at, SimEvent::AckTimer(index));
        }
    }

    pub(super) fn on_ack_timer(&mut self, index: u32) {
        let Some(delayed) = &mut self.flows[index as usize].delayed_ack else { return };
        match delayed.on_timer(self.now) {
            Some(stamp) => {
                let header = delayed.take_header();
                self.acknowledge(index, stamp, header);
            }
            None => self.arm_ack(index),
        }
    }
}
