//! Sessions of a constant rate, and their part of the loop.

use fairwave_scenario::{TraceKind, random};
use fairwave_schemes::session::DITHER;

use crate::constant::Constant;
use crate::event::SimEvent;
use crate::flow::FlowOptions;
use crate::kind::SourceKind;
use crate::transit::Transit;

/// Sessions that send at their demand. Their sinks do not answer.
pub(crate) const KIND: SourceKind = SourceKind::new(
    |scheme| scheme.name == "cbr",
    |transit, _, new| {
        let is_dithered = DITHER.of(&new.choice.options);
        let name = format!("dither {}", new.session.name);
        let stream = is_dithered.then(|| random::stream(new.scenario.seed, &name));
        let source = Constant::new(&new.session.demand, new.session.stop, new.size_packets, stream);
        transit.add_session(source.into(), [new.data_bytes, 0], None, new.active(), FlowOptions::default());
        Ok(())
    },
);

/// A source of a constant rate sends its next packet.
pub(crate) fn send(transit: &mut Transit<'_>, index: u32) {
    let now = transit.now();
    let flow = &mut transit.flows[index];
    let Some(constant) = flow.source.constant_mut() else { return };
    let (number, again) = constant.poll_send(now, flow.data_bytes);
    if let Some(number) = number {
        transit.send(index, number, TraceKind::Sent);
    }
    if let Some(again) = again {
        transit.agenda.schedule(again, SimEvent::Offer(index));
    }
}
