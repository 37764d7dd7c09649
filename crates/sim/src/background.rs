//! Background traffic: flows without results, which share queues and losses with the sessions.
//!
//! A web flow has the same sender and receiver as a session. It reuses the slot of a finished flow once none of that
//! one's packets are in the network: so there are as many slots as there were simultaneous flows, in a run of any
//! length.

use fairwave_scenario::{BackgroundKind, Scenario, random};
use fairwave_schemes::scheme::{Options, find};
use fairwave_schemes::session::{CongestionController, controller};
use fairwave_units::{Duration, Time};

use crate::flow::SimFlow;
use crate::on_off::OnOff;
use crate::route::Route;
use crate::sender::{SenderConfig, WindowSender};
use crate::simulator::{SimEvent, Simulator};
use crate::source::TrafficSource;
use crate::web::Web;
use crate::window_source::{initial_rto, min_rto};

/// The scheme of web flows.
const WEB_SCHEME: &str = "sack";

/// A table of background traffic.
pub(crate) struct BackgroundTable {
    /// Draws the flows of web traffic; on-off sources draw for themselves.
    web: Option<Web>,
    /// Paths in both directions: one for all sources, or one for each.
    routes: Vec<[Route; 2]>,
    /// Bytes of a data packet and of an acknowledgement on the wire.
    bytes: [u32; 2],
    stop: Time,
    /// Indices of its flows in the simulator: one per source, or one per simultaneous web flow.
    flows: Vec<u32>,
    /// Those of `flows` that are finished, with no packet in the network.
    idle: Vec<u32>,
    /// Packets delivered by earlier flows of reused slots.
    delivered_before: u64,
}

/// Running totals of a table of background traffic, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BackgroundCounts {
    /// Packets delivered for the first time.
    pub(crate) delivered: u64,
    /// Packets that arrived, including duplicates.
    pub(crate) arrived: u64,
    pub(crate) dropped: u64,
}

/// Adds all background traffic of a scenario, after its sessions.
pub(crate) fn add(simulator: &mut Simulator<'_>, scenario: &Scenario) {
    let bytes = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    let routes = std::mem::take(&mut simulator.network_mut().background_routes);
    for (table, routes) in scenario.background.iter().zip(routes) {
        let packet = scenario.packet;
        let stop = table.stop.unwrap_or(Time::MAX);
        let name = format!("background {}", table.name);
        let of_scheme = match table.kind {
            BackgroundKind::Web { .. } => find(WEB_SCHEME).map_or(0, |scheme| scheme.header.get()),
            BackgroundKind::OnOff { .. } => 0,
        };
        let header = packet.header.get() + of_scheme;
        let mut background = BackgroundTable {
            web: None,
            routes,
            bytes: [bytes(packet.payload.get() + header), bytes(header)],
            stop,
            flows: Vec::new(),
            idle: Vec::new(),
            delivered_before: 0,
        };
        let index = u32::try_from(simulator.backgrounds.len()).expect("a scenario has at most 10^7 elements");
        match table.kind {
            BackgroundKind::Web { mean_size, shape } => {
                for route in background.routes.iter().flatten() {
                    simulator.network_mut().open(*route, true);
                }
                let wire_bytes = background.bytes[0];
                let stream = random::stream(scenario.seed, &name);
                let (rate, sources) = (table.rate, table.sources);
                let mut web = Web::new(rate, sources, mean_size, shape, packet.payload, wire_bytes, stream);
                let first = web.next(table.start);
                background.web = Some(web);
                // Flows arrive later, on any of the paths.
                for route in background.routes.iter().flatten() {
                    simulator.network_mut().open(*route, true);
                }
                simulator.schedule(first.min(stop), SimEvent::Background(index));
                simulator.backgrounds.push(background);
            }
            BackgroundKind::OnOff { on, off } => {
                let share = on.as_secs_f64() / (on.as_secs_f64() + off.as_secs_f64());
                let peak_bps = table.rate.as_bps() / share / f64::from(table.sources);
                let interval_s = f64::from(background.bytes[0]) * 8.0 / peak_bps;
                let span = (table.start, stop.min(scenario.end().saturating_add(Duration::from_nanos(1))));
                simulator.backgrounds.push(background);
                for source in 0..table.sources {
                    let stream = random::stream(scenario.seed, &format!("{name} {}", source + 1));
                    let traffic = OnOff::new(interval_s, on, off, span, stream);
                    let first = traffic.next();
                    let flow = simulator.add_background_flow(index, source, traffic.into());
                    if let Some(first) = first {
                        simulator.schedule(first, SimEvent::Offer(flow));
                    }
                }
            }
        }
    }
}

fn web_sender(packet_bytes: u32, size_packets: u64) -> WindowSender {
    let controller: Box<dyn CongestionController> =
        controller(WEB_SCHEME, &Options::default()).expect("the scheme of web flows is a window rule");
    let scheme = find(WEB_SCHEME).expect("the scheme of web flows is listed");
    let config = SenderConfig {
        sack: true,
        max_window_packets: u64::MAX,
        min_rto: min_rto(scheme, &Options::default()),
        initial_rto: initial_rto(scheme, &Options::default()),
        // A web flow never pauses.
        restart_window_packets: None,
        size_packets,
        pacing: false,
        packet_bytes,
    };
    WindowSender::new(controller, config)
}

impl Simulator<'_> {
    /// An event of a table of web traffic: a flow arrives, or all stop.
    pub(crate) fn on_background(&mut self, index: u32) {
        let now = self.now();
        let background = &mut self.backgrounds[index as usize];
        if now >= background.stop {
            for flow in &background.flows {
                if let Some(sender) = self.flows[*flow as usize].source.sender_mut() {
                    sender.stop();
                }
            }
            return;
        }
        let Some(web) = &mut background.web else { return };
        let arrival = web.arrival();
        let next = web.next(now).min(background.stop);
        let sender = web_sender(background.bytes[0], arrival.packets);
        let flow = match background.idle.pop() {
            Some(flow) => {
                background.delivered_before += self.flows[flow as usize].begin_again(background.way(arrival.source));
                if let Some(place) = self.flows[flow as usize].source.sender_mut() {
                    *place = sender;
                }
                flow
            }
            None => self.add_background_flow(index, arrival.source, sender.into()),
        };
        self.schedule(next, SimEvent::Background(index));
        self.send_all(flow);
    }

    /// Adds a flow to a table of background traffic, and returns its index.
    fn add_background_flow(&mut self, index: u32, source: u32, sender: TrafficSource) -> u32 {
        let background = &self.backgrounds[index as usize];
        let flow = self.push_flow(sender, background.way(source), background.bytes);
        self.owners.push(index);
        self.backgrounds[index as usize].flows.push(flow);
        flow
    }

    /// Frees the slot of a background flow if it is finished: it has nothing to send, and no packet in the network.
    pub(crate) fn free_if_over(&mut self, index: u32) {
        let flow = &self.flows[index as usize];
        let Some(sender) = flow.source.sender() else { return };
        if sender.is_done() && !flow.has_packets_under_way() {
            let owner = self.owners[index as usize - self.sessions];
            self.backgrounds[owner as usize].idle.push(index);
        }
    }

    /// Totals of a table of background traffic so far.
    pub(crate) fn background_counts(&self, background: &BackgroundTable) -> BackgroundCounts {
        let mut counts = BackgroundCounts { delivered: background.delivered_before, ..BackgroundCounts::default() };
        for flow in &background.flows {
            let flow = &self.flows[*flow as usize];
            counts.arrived += flow.counts.arrived;
            counts.dropped += flow.counts.dropped;
            counts.delivered += flow.delivered();
        }
        counts
    }
}

impl BackgroundTable {
    /// Bytes of a data packet on the wire.
    pub(crate) fn data_bytes(&self) -> u32 {
        self.bytes[0]
    }

    fn way(&self, source: u32) -> [Route; 2] {
        self.routes[source as usize % self.routes.len()]
    }
}

impl SimFlow {
    /// Resets the flow for another life on these paths, and returns the packets that the last one delivered.
    fn begin_again(&mut self, routes: [Route; 2]) -> u64 {
        self.routes = routes;
        self.life += 1;
        self.completed = None;
        self.losses.clear();
        std::mem::take(&mut self.receiver).delivered_packets()
    }

    /// Whether any of its packets or acknowledgements is in the network. Every arrival is answered immediately.
    fn has_packets_under_way(&self) -> bool {
        let counts = &self.counts;
        counts.sent != counts.arrived + counts.dropped || counts.arrived != counts.acks_arrived + counts.acks_dropped
    }
}

#[cfg(test)]
mod tests {
    use fairwave_scenario::{Document, Selection};

    use super::*;
    use crate::route;

    /// 8 Mb/s of web traffic for 40 s next to an idle session, over links with loss in both directions; the number of
    /// slots at each of these instants, in seconds.
    fn places_at(instants_s: &[u64], loss: f64) -> Vec<(usize, usize)> {
        let text = format!(
            "name = \"places\"\nduration = \"200 s\"\nscheme = \"sack\"\n\
             [[node]]\nname = \"s\"\ncapacity = \"100 Mb/s\"\n\
             [[node]]\nname = \"d\"\ncapacity = \"100 Mb/s\"\nloss = {loss}\n\
             [[session]]\nfrom = \"s\"\nto = \"d\"\nrtt = \"20 ms\"\nsize = \"1 kB\"\n\
             [[background]]\nkind = \"web\"\nfrom = \"s\"\nto = \"d\"\nrate = \"8 Mb/s\"\nshape = 2.5\nstop = \"100 s\"\n\
             rtt = {{ uniform = [\"5 ms\", \"40 ms\"] }}\nsources = 7\n"
        );
        let document = Document::parse("test.toml", text.as_bytes()).unwrap();
        let case = document.cases(&Selection::default()).unwrap().remove(0);
        let scenario = document.build(&case).unwrap().0;
        let network = route::build(&scenario, (Time::ZERO, scenario.end()));
        let mut simulator = Simulator::new(network, false);
        // Background traffic only, without a session.
        simulator.network_mut().routes.clear();
        add(&mut simulator, &scenario);
        let places = instants_s.iter().map(|at| {
            simulator.run_until(Time::from_secs(*at), &mut |_| {});
            let background = &simulator.backgrounds[0];
            (background.flows.len(), background.idle.len())
        });
        let places = places.collect();
        simulator.count_in_flight();
        places
    }

    #[test]
    fn places__are_taken_again() {
        // 8 Mb/s in flows of 12.5 packets of 1040 B: 77 flows per second, each active for at most a few RTTs of 5 to 40
        // ms.
        let [early, late, after] = places_at(&[10, 100, 101], 0.0)[..] else { panic!("three instants") };
        assert!(early.0 >= 8 && late.0 <= early.0 + 10 && late.0 < 60, "{early:?} {late:?}");
        assert!(early.1 < early.0, "{early:?}");
        // Stopped at 100 s: a second later no packet is in the network.
        assert_eq!(after.0, after.1);
    }

    #[test]
    fn places__are_free_again_however_packets_were_lost() {
        // 10 % of packets and acknowledgements are lost: the timer ends flows that acknowledgements do not.
        let [during, after] = places_at(&[100, 200], 0.1)[..] else { panic!("two instants") };
        assert!(during.0 > during.1, "{during:?}");
        assert_eq!((after.0, after.1), (during.0, during.0));
    }
}
