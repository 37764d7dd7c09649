//! Background traffic: flows without results, which share queues and losses with the sessions.
//!
//! A web flow has the same sender and receiver as a session. It reuses the slot of a finished flow once none of that
//! one's packets are in the network: so there are as many slots as there were simultaneous flows, in a run of any
//! length.

use fairwave_scenario::{BackgroundKind, Scenario, TraceKind, random};
use fairwave_schemes::scheme::{Options, find};
use fairwave_schemes::session::{CongestionController, controller};
use fairwave_units::{Duration, Time};

use crate::event::SimEvent;
use crate::on_off::OnOff;
use crate::sender::{Repair, SenderConfig, WindowSender};
use crate::transit::Transit;
use crate::web::Web;
use crate::window_source::{self, initial_rto, min_rto};
use table::BackgroundTable;

pub(crate) mod table;

/// The scheme of web flows.
const WEB_SCHEME: &str = "sack";

/// Adds all background traffic of a scenario, after its sessions.
pub(crate) fn add(transit: &mut Transit<'_>, scenario: &Scenario) {
    let bytes = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    let routes = std::mem::take(&mut transit.network.background_routes);
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
        match table.kind {
            BackgroundKind::Web { mean_size, shape } => {
                let wire_bytes = background.bytes[0];
                let stream = random::stream(scenario.seed, &name);
                let (rate, sources) = (table.rate, table.sources);
                let mut web = Web::new(rate, sources, mean_size, shape, packet.payload, wire_bytes, stream);
                let first = web.next(table.start);
                background.web = Some(web);
                // Flows arrive later, on any of the paths.
                for route in background.routes.iter().flatten() {
                    transit.network.open(*route, true);
                }
                let index = transit.flows.add_table(background);
                transit.agenda.schedule(first.min(stop), SimEvent::Background(index));
            }
            BackgroundKind::OnOff { on, off } => {
                let share = on.as_secs_f64() / (on.as_secs_f64() + off.as_secs_f64());
                let peak_bps = table.rate.as_bps() / share / f64::from(table.sources);
                let interval_s = f64::from(background.bytes[0]) * 8.0 / peak_bps;
                let span = (table.start, stop.min(scenario.end().saturating_add(Duration::from_nanos(1))));
                let index = transit.flows.add_table(background);
                for source in 0..table.sources {
                    let stream = random::stream(scenario.seed, &format!("{name} {}", source + 1));
                    let traffic = OnOff::new(interval_s, on, off, span, stream);
                    let first = traffic.next();
                    let flow = transit.add_background(index, source, traffic.into());
                    if let Some(first) = first {
                        transit.agenda.schedule(first, SimEvent::Offer(flow));
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
        repair: Repair::default(),
        max_ack_delay: Duration::ZERO,
    };
    WindowSender::new(controller, config)
}

/// An event of a table of web traffic: a flow arrives, or all stop.
pub(crate) fn on_event(transit: &mut Transit<'_>, index: u32) {
    let now = transit.now();
    let table = transit.flows.table_mut(index);
    if now >= table.stop {
        for flow in table.flows.clone() {
            if let Some(sender) = transit.flows[flow].source.sender_mut() {
                sender.stop();
            }
        }
        return;
    }
    let Some(web) = &mut table.web else { return };
    let arrival = web.arrival();
    let next = web.next(now).min(table.stop);
    let (sender, routes) = (web_sender(table.bytes[0], arrival.packets), table.way(arrival.source));
    let flow = match table.idle.pop() {
        Some(flow) => {
            let delivered = transit.flows[flow].begin_again(routes, sender.into());
            transit.flows.table_mut(index).delivered_before += delivered;
            flow
        }
        None => transit.add_background(index, arrival.source, sender.into()),
    };
    transit.agenda.schedule(next, SimEvent::Background(index));
    window_source::send(transit, flow);
}

/// An on-off source sends its next packet.
pub(crate) fn send_on_off(transit: &mut Transit<'_>, index: u32) {
    let Some(source) = transit.flows[index].source.on_off_mut() else { return };
    let number = source.send();
    let again = source.next();
    transit.send(index, number, TraceKind::Sent);
    if let Some(again) = again {
        transit.agenda.schedule(again, SimEvent::Offer(index));
    }
}

#[cfg(test)]
mod tests {
    use fairwave_scenario::{Document, Selection};

    use super::*;
    use crate::route;
    use crate::simulator::Simulator;

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
        simulator.transit.network.routes.clear();
        add(&mut simulator.transit, &scenario);
        let places = instants_s.iter().map(|at| {
            simulator.run_until(Time::from_secs(*at), &mut |_| {});
            let background = &simulator.transit.flows.tables()[0];
            (background.flows.len(), background.idle.len())
        });
        let places = places.collect();
        simulator.transit.count_in_flight();
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
