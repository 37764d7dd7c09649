//! All flows: the sessions, then those of background traffic.

use std::ops::{Index, IndexMut};

use fairwave_scenario::TraceOwner;

use crate::background::table::{BackgroundCounts, BackgroundTable};
use crate::flow::{FlowCounts, SimFlow};
use crate::packet::SimPacket;
use crate::route::Network;

/// The flows of a simulation.
#[derive(Default)]
pub(crate) struct Flows {
    /// The sessions, in the scenario's order, then the flows of background traffic.
    all: Vec<SimFlow>,
    /// Number of sessions.
    sessions: usize,
    tables: Vec<BackgroundTable>,
    /// By background flow: index of the table that it belongs to.
    owners: Vec<u32>,
}

impl Flows {
    /// The sessions, in the scenario's order.
    pub(crate) fn sessions(&self) -> &[SimFlow] {
        &self.all[..self.sessions]
    }

    /// The sessions, mutable.
    pub(crate) fn sessions_mut(&mut self) -> &mut [SimFlow] {
        &mut self.all[..self.sessions]
    }

    #[inline]
    pub(crate) fn is_session(&self, index: u32) -> bool {
        (index as usize) < self.sessions
    }

    /// Adds a session, and returns its index.
    pub(crate) fn add_session(&mut self, flow: SimFlow) -> u32 {
        self.sessions += 1;
        self.push(flow)
    }

    /// Adds a flow to a table of background traffic, and returns its index.
    pub(crate) fn add_background(&mut self, table: u32, flow: SimFlow) -> u32 {
        let index = self.push(flow);
        self.owners.push(table);
        self.tables[table as usize].flows.push(index);
        index
    }

    fn push(&mut self, flow: SimFlow) -> u32 {
        let index = u32::try_from(self.all.len()).expect("a scenario has at most 10^7 elements");
        self.all.push(flow);
        index
    }

    /// The tables of background traffic, in the scenario's order.
    pub(crate) fn tables(&self) -> &[BackgroundTable] {
        &self.tables
    }

    pub(crate) fn table_mut(&mut self, index: u32) -> &mut BackgroundTable {
        &mut self.tables[index as usize]
    }

    /// Adds a table of background traffic, and returns its index.
    pub(crate) fn add_table(&mut self, table: BackgroundTable) -> u32 {
        self.tables.push(table);
        u32::try_from(self.tables.len() - 1).expect("a scenario has at most 10^7 elements")
    }

    /// Totals of a table of background traffic so far.
    pub(crate) fn totals(&self, table: &BackgroundTable) -> BackgroundCounts {
        let mut counts = BackgroundCounts { delivered: table.delivered_before, ..BackgroundCounts::default() };
        for flow in &table.flows {
            let flow = &self[*flow];
            counts.arrived += flow.counts.arrived;
            counts.dropped += flow.counts.dropped;
            counts.delivered += flow.delivered();
        }
        counts
    }

    /// Frees the slot of a background flow if it is finished: it has nothing to send, and no packet in the network.
    #[inline]
    pub(crate) fn free_if_over(&mut self, index: u32) {
        let Some(place) = (index as usize).checked_sub(self.sessions) else { return };
        let flow = &self[index];
        let Some(sender) = flow.source.sender() else { return };
        if sender.is_done() && !flow.has_packets_under_way() {
            self.tables[self.owners[place] as usize].idle.push(index);
        }
    }

    /// The owner of a flow's packets, for users.
    pub(crate) fn owner(&self, index: u32) -> TraceOwner {
        match (index as usize).checked_sub(self.sessions) {
            None => TraceOwner::Session(index),
            Some(place) => {
                TraceOwner::Background { table: self.owners[place], place: place as u32, life: self[index].life }
            }
        }
    }

    /// Counts each flow's data packets in flight, and checks that packets are conserved.
    pub(crate) fn count_in_flight(&mut self, network: &Network) {
        let mut count = |packet: &SimPacket| {
            let counts = &mut self[packet.flow].counts;
            counts.in_flight += u64::from(packet.kind.is_data());
            counts.acks_in_flight += u64::from(!packet.kind.is_data());
        };
        for line in &network.lines {
            line.packets(&network.pool).for_each(&mut count);
        }
        for queued in network.links.iter().filter_map(|link| link.queued.as_ref()) {
            queued.visit(&mut count);
        }
        for (index, flow) in self.all.iter().enumerate() {
            let FlowCounts { sent, copied, arrived, dropped, in_flight, .. } = flow.counts;
            let FlowCounts { acks_copied, acks_arrived, acks_dropped, acks_in_flight, .. } = flow.counts;
            let all = arrived + dropped + in_flight;
            assert_eq!(sent + copied, all, "packets of flow {index} are conserved: {:?}", flow.counts);
            if flow.source.is_acknowledged() && flow.delayed_ack.is_none() {
                let acks = acks_arrived + acks_dropped + acks_in_flight;
                assert_eq!(
                    arrived + acks_copied,
                    acks,
                    "acknowledgements of flow {index} are conserved: {:?}",
                    flow.counts
                );
            }
        }
    }
}

impl Index<u32> for Flows {
    type Output = SimFlow;

    #[inline]
    fn index(&self, index: u32) -> &SimFlow {
        &self.all[index as usize]
    }
}

impl IndexMut<u32> for Flows {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut SimFlow {
        &mut self.all[index as usize]
    }
}
