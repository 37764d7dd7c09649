//! The event loop.

use fairwave_scenario::TraceKind;
use fairwave_units::Time;

use crate::background;
use crate::constant_source;
use crate::event::SimEvent;
use crate::event_queue::EventTime;
use crate::gtp::GtpHosts;
use crate::packet::SimPacket;
use crate::rated::Input;
use crate::rated_source;
use crate::route::{Network, RouteStep};
use crate::source::TrafficSource;
use crate::transit::Transit;
use crate::{window_sink, window_source};

/// A simulation: the packets in the network, and what is at its ends.
pub(crate) struct Simulator<'a> {
    pub(crate) transit: Transit<'a>,
    pub(crate) gtp: GtpHosts,
}

impl Simulator<'_> {
    pub(crate) fn new(network: Network, is_naive: bool) -> Self {
        Self { transit: Transit::new(network, is_naive), gtp: GtpHosts::default() }
    }

    /// Arms the rules of all links.
    pub(crate) fn arm_links(&mut self) {
        for link in 0..self.transit.network.links.len() {
            if let Some(at) = self.transit.network.links[link].control().map(|control| control.next_timer()) {
                self.transit.agenda.schedule(at, SimEvent::Control(link as u32));
            }
        }
    }

    /// Runs all events up to and including `end`; calls `on_step` every few milliseconds of work.
    pub(crate) fn run_until(&mut self, end: Time, on_step: &mut dyn FnMut(Time)) {
        let end_key = EventTime::after(end);
        while let Some(event) = self.transit.agenda.next(end_key, on_step) {
            match event {
                SimEvent::Arrival(line) => {
                    let packet = self.transit.take_arrival(line);
                    match self.transit.network.stages[packet.stage as usize] {
                        RouteStep::End => self.arrive(packet),
                        step => self.transit.forward(packet, step),
                    }
                }
                SimEvent::Timer(flow) => self.on_timer(flow),
                SimEvent::AckTimer(flow) => window_sink::on_ack_timer(&mut self.transit, flow),
                SimEvent::Pace(flow) => window_source::on_pace(&mut self.transit, flow),
                SimEvent::Start(flow) => self.send_all(flow),
                SimEvent::Offer(flow) => {
                    if let Some(offer) = &mut self.transit.flows[flow].offer {
                        offer.is_waiting = false;
                    }
                    self.send_all(flow);
                }
                SimEvent::Background(table) => background::on_event(&mut self.transit, table),
                SimEvent::Departure(link) => self.transit.depart(link),
                SimEvent::Control(link) => self.on_control(link),
                SimEvent::Host(host) => self.gtp.on_timer(&mut self.transit, host),
                SimEvent::Demand(flow) => self.gtp.change_demand(&mut self.transit, flow),
                SimEvent::Stop(flow) => self.stop(flow),
            }
        }
        self.transit.agenda.advance(end);
        for line in 0..self.transit.network.lines.len() {
            self.transit.deliver_quietly(line as u32);
        }
    }

    /// A packet reaches the end of its path.
    #[inline]
    fn arrive(&mut self, packet: SimPacket) {
        let transit = &mut self.transit;
        transit.trace(packet, TraceKind::Arrived, None);
        let flow = &transit.flows[packet.flow];
        match &flow.source {
            TrafficSource::Gtp(_) => self.gtp.arrive(transit, packet),
            TrafficSource::Window(_) if packet.kind.is_data() => window_sink::arrive(transit, packet),
            TrafficSource::Window(_) => window_source::arrive(transit, packet),
            TrafficSource::Rated(_) if packet.kind.is_data() => rated_source::arrive(transit, packet),
            TrafficSource::Rated(_) => rated_source::arrive_message(transit, packet),
            TrafficSource::Constant(_) | TrafficSource::OnOff(_) => transit.receive(packet, transit.now()),
        }
    }

    /// Sends all that the source has to send now, and schedules its next event.
    fn send_all(&mut self, index: u32) {
        let transit = &mut self.transit;
        match &transit.flows[index].source {
            TrafficSource::Window(_) => window_source::send(transit, index),
            TrafficSource::Constant(_) => constant_source::send(transit, index),
            TrafficSource::OnOff(_) => background::send_on_off(transit, index),
            TrafficSource::Rated(_) => rated_source::drive(transit, index, Input::Wake),
            TrafficSource::Gtp(_) => self.gtp.start(transit, index),
        }
    }

    /// A flow's timer.
    fn on_timer(&mut self, index: u32) {
        let now = self.transit.now();
        let flow = &mut self.transit.flows[index];
        if !flow.timer.fires(now) {
            return;
        }
        match &flow.source {
            TrafficSource::Window(_) => window_source::on_timer(&mut self.transit, index),
            TrafficSource::Rated(_) => rated_source::drive(&mut self.transit, index, Input::Wake),
            TrafficSource::Constant(_) | TrafficSource::OnOff(_) | TrafficSource::Gtp(_) => {}
        }
    }

    /// A session stops: no new packets.
    fn stop(&mut self, index: u32) {
        match &mut self.transit.flows[index].source {
            TrafficSource::Window(sender) => sender.stop(),
            TrafficSource::Rated(session) => session.stop(),
            TrafficSource::Constant(_) | TrafficSource::OnOff(_) => {}
            TrafficSource::Gtp(_) => self.gtp.stop(&mut self.transit, index),
        }
        self.transit.note_end(index, self.transit.now());
    }

    fn on_control(&mut self, link: u32) {
        let transit = &mut self.transit;
        let Some(control) = transit.network.links[link as usize].control() else { return };
        control.on_timer(transit.agenda.now(), &mut transit.contents.headers);
        let next = control.next_timer();
        transit.agenda.schedule(next, SimEvent::Control(link));
    }
}
