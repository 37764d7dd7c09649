//! Reporting packet events to an observer.

use fairwave_scenario::{TraceContent, TraceEvent, TraceKind, TraceLink, TraceOwner, TracePacket};

use crate::packet::{SimPacket, SimPacketKind};
use crate::simulator::Simulator;

/// Called for all events of packets.
pub(crate) type Observer<'a> = dyn FnMut(&TraceEvent<'_>) + 'a;

impl Simulator<'_> {
    /// Reports an event of a packet. Without an observer this is one test of a pointer; the packet is passed by value,
    /// as a reference would keep it out of registers everywhere.
    #[expect(clippy::inline_always, reason = "a call a hop would cost what the observer must not")]
    #[inline(always)]
    pub(crate) fn trace(&mut self, packet: SimPacket, what: TraceKind, link: Option<u32>) {
        if self.observer.is_some() {
            self.tell(packet, what, link);
        }
    }

    #[cold]
    #[inline(never)]
    fn tell(&mut self, packet: SimPacket, what: TraceKind, link: Option<u32>) {
        let time = self.now();
        let Self { observer: Some(observer), flows, sessions, owners, .. } = self else { return };
        let network = &self.network;
        let flow = &flows[packet.flow as usize];
        let owner = match (packet.flow as usize).checked_sub(*sessions) {
            None => TraceOwner::Session(packet.flow),
            Some(place) => TraceOwner::Background { table: owners[place], place: place as u32, life: flow.life },
        };
        let number =
            if flow.source.is_between_hosts() { self.gtp.parcels.number(packet.number) } else { packet.number };
        let absolute = |number: u32| packet.number + u64::from(number);
        let content = if packet.kind.is_data() {
            TraceContent::Data(number)
        } else if flow.source.has_messages() {
            TraceContent::Message { number, to_sink: packet.kind == SimPacketKind::NOTICE }
        } else {
            let blocks = self.blocks.get(self.headers.plain(packet.kind)).copied().unwrap_or_default();
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
                name: &network.names[index as usize],
                capacity_bps: network.rates[index as usize].as_bps(),
            }),
            owner,
            packet: TracePacket { bytes: packet.bytes, is_acknowledged: flow.source.is_acknowledged(), content },
        });
    }
}
