//! Reporting packet events to an observer.

use fairwave_scenario::{TraceContent, TraceEvent, TraceKind, TraceLink, TracePacket};
use fairwave_units::Time;

use crate::contents::Contents;
use crate::flows::Flows;
use crate::packet::{SimPacket, SimPacketKind};
use crate::route::Network;

/// Called for all events of packets.
pub(crate) type Observer<'a> = dyn FnMut(&TraceEvent<'_>) + 'a;

/// A packet as an observer sees it.
pub(crate) struct Sight<'a> {
    pub(crate) network: &'a Network,
    pub(crate) flows: &'a Flows,
    pub(crate) contents: &'a Contents,
}

impl Sight<'_> {
    /// Reports an event of a packet, at a link if it is there.
    pub(crate) fn report(
        &self,
        observer: &mut Observer<'_>,
        time: Time,
        packet: SimPacket,
        what: TraceKind,
        link: Option<u32>,
    ) {
        let Contents { blocks, headers, parcels } = self.contents;
        let flow = &self.flows[packet.flow];
        let number = if flow.source.is_between_hosts() { parcels.number(packet.number) } else { packet.number };
        // A duplicate lies below the acknowledgement's number.
        let absolute = |number: u32| packet.number.saturating_add_signed(i64::from(number.cast_signed()));
        let content = if packet.kind.is_data() {
            TraceContent::Data(number)
        } else if flow.source.has_messages() {
            TraceContent::Message { number, to_sink: packet.kind == SimPacketKind::NOTICE }
        } else {
            let blocks = blocks.get(headers.plain(packet.kind)).copied().unwrap_or_default();
            TraceContent::Ack {
                next: packet.number,
                blocks: blocks.map(|block| (absolute(block.begin), absolute(block.end))),
            }
        };
        observer(&TraceEvent {
            time,
            what,
            link: link.map(|index| TraceLink {
                index,
                name: &self.network.names[index as usize],
                capacity_bps: self.network.rates[index as usize].as_bps(),
            }),
            owner: self.flows.owner(packet.flow),
            packet: TracePacket { bytes: packet.bytes, is_acknowledged: flow.source.is_acknowledged(), content },
        });
    }
}
