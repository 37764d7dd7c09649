//! Both ends of an RBUDP session: blasts at a fixed rate, and the exchange between them.
//!
//! The paper's control connection is TCP. Here the source announces the end of a round with one small packet after it,
//! and the sink answers with its bitmap, in as many packets as necessary; lost packets of the exchange are requested
//! again when the timer of RFC 6298 expires. Its first round-trip time is that of the path: connection set-up has
//! measured it.

use fairwave_scenario::Demand;
use fairwave_schemes::session::Rbudp;
use fairwave_units::{Duration, Rate, Time};

use crate::error::SimError;
use crate::flow::FlowOptions;
use crate::gtp::GtpHosts;
use crate::kind::{NewSession, SourceKind};
use crate::rated::{Out, Rated};
use crate::receiver::WindowReceiver;
use crate::rtt::{MinRto, RttEstimator};
use crate::transit::Transit;
use crate::transmitter::Transmitter;

/// Sessions that send blasts at their demand.
pub(crate) const KIND: SourceKind = SourceKind::new(|scheme| scheme.name == "rbudp", add);

fn add(transit: &mut Transit<'_>, _: &GtpHosts, asked: &NewSession<'_>) -> Result<(), SimError> {
    let NewSession { session, choice, size_packets, data_bytes, message_bytes, .. } = *asked;
    let needs =
        |what, hint| SimError::Incomplete { session: session.name.clone(), scheme: choice.scheme.name, what, hint };
    if session.size.is_none() {
        return Err(needs("a size", "it blasts a whole object, then what was lost of it: size = \"1 GB\""));
    }
    if session.demand.at(session.start).is_none() {
        return Err(needs("a demand", "that is the rate of its blasts: demand = \"500 Mb/s\""));
    }
    let (rate, rtt) = (session.demand.clone(), session.rtt);
    let config = RbudpConfig { rate, size_packets, data_bytes, message_bytes, rtt };
    let source = RbudpSession::new(config, session.start);
    transit.add_session(source.into(), asked.bytes(), None, asked.active(), FlowOptions::default());
    Ok(())
}

/// Parameters of a session.
#[derive(Clone, Debug)]
pub(crate) struct RbudpConfig {
    /// The rate of the blasts.
    pub(crate) rate: Demand,
    pub(crate) size_packets: u64,
    /// Bytes on the wire: of a data packet, and of a message without its contents.
    pub(crate) data_bytes: u32,
    pub(crate) message_bytes: u32,
    pub(crate) rtt: Duration,
}

pub(crate) struct RbudpSession {
    config: RbudpConfig,
    transfer: Rbudp,
    rate: Option<Rate>,
    clock: Transmitter,
    /// Departure of the next data packet.
    due: Option<Time>,
    /// Number and time of the pending request.
    asked: Option<(u64, Time)>,
    /// Time at which it is repeated.
    deadline: Option<Time>,
    questions: u64,
    /// Packets of the answering bitmap that have arrived.
    parts: u64,
    rtt: RttEstimator,
    is_over: bool,
}

/// Minimum time-out of RFC 6298 with the default of all sessions.
const MIN_TIMEOUT: Duration = Duration::from_millis(200);

impl RbudpSession {
    pub(crate) fn new(config: RbudpConfig, start: Time) -> Self {
        let mut rtt = RttEstimator::new(MinRto::Whole(MIN_TIMEOUT), MIN_TIMEOUT);
        rtt.on_sample(config.rtt, true);
        Self {
            transfer: Rbudp::new(config.size_packets),
            config,
            rate: None,
            clock: Transmitter::new(1),
            due: Some(start),
            asked: None,
            deadline: None,
            questions: 0,
            parts: 0,
            rtt,
            is_over: false,
        }
    }

    /// Maximum contents of a packet of the bitmap, in bytes.
    fn part_bytes(&self) -> u64 {
        u64::from(self.config.data_bytes.saturating_sub(self.config.message_bytes)).max(1)
    }

    fn bitmap_parts(&self) -> u64 {
        Rbudp::bitmap_bytes(self.config.size_packets).div_ceil(self.part_bytes()).max(1)
    }

    fn ask(&mut self, now: Time, out: &mut Vec<Out>) {
        self.questions += 1;
        self.parts = 0;
        self.asked = Some((self.questions, now));
        self.deadline = Some(now.saturating_add(self.rtt.timeout()));
        out.push(Out::ToSink { message: self.questions, bytes: self.config.message_bytes });
    }
}

impl Rated for RbudpSession {
    fn size_packets(&self) -> u64 {
        self.config.size_packets
    }

    fn stop(&mut self) {
        self.is_over = true;
        (self.due, self.deadline) = (None, None);
    }

    fn on_wake(&mut self, now: Time, _: &WindowReceiver, out: &mut Vec<Out>) {
        if self.due.is_some_and(|due| due <= now) {
            let rate = self.config.rate.at(now).filter(|rate| *rate > Rate::ZERO);
            if rate != self.rate {
                self.rate = rate;
                self.clock = Transmitter::new(rate.map_or(1, |rate| rate.as_bps().round() as u64).max(1));
            }
            self.due = match rate {
                None => self.config.rate.next_change(now),
                Some(_) => self.transfer.next_packet().map(|number| {
                    out.push(Out::Data { number, is_again: self.transfer.round() > 1 });
                    self.clock.send(now, self.config.data_bytes)
                }),
            };
            // The round ends when the last packet's time at the rate has passed as well.
            if self.due.is_none() && rate.is_some() && !self.is_over && self.transfer.is_round_out() {
                self.ask(now, out);
            }
        }
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.rtt.on_timeout();
            self.ask(now, out);
        }
    }

    fn wake(&self) -> Option<Time> {
        self.due.into_iter().chain(self.deadline).min()
    }

    fn on_data(&mut self, _: Time, _: u64, _: &WindowReceiver, _: &mut Vec<Out>) {}

    fn at_sink(&mut self, _: Time, message: u64, _: &WindowReceiver, out: &mut Vec<Out>) {
        let mut left = Rbudp::bitmap_bytes(self.config.size_packets).max(1);
        while left > 0 {
            let part = left.min(self.part_bytes());
            left -= part;
            let bytes = self.config.message_bytes.saturating_add(part as u32);
            out.push(Out::ToSource { message, bytes });
        }
    }

    fn at_source(&mut self, now: Time, message: u64, receiver: &WindowReceiver, out: &mut Vec<Out>) {
        let Some((number, asked)) = self.asked else { return };
        if message != number || self.is_over {
            return;
        }
        self.parts += 1;
        if self.parts < self.bitmap_parts() {
            return;
        }
        // No packet was in flight to the sink when it answered, nor since: its bitmap is up to date.
        self.rtt.on_sample(now.since(asked), true);
        (self.asked, self.deadline) = (None, None);
        if self.transfer.begin_round(receiver.missing_below(self.config.size_packets)) {
            self.due = Some(now);
            self.on_wake(now, receiver, out);
        } else {
            self.is_over = true;
        }
    }
}
