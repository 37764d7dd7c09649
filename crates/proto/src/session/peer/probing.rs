//! What an end asks the other one: whether it lives, where it is, and which datagrams its path takes.

use std::collections::VecDeque;
use std::net::SocketAddr;

use fairwave_units::{Duration, Time};

use super::Peer;
use crate::path::mtu::{Mtu, MtuProbe};
use crate::session::rtt::Rtt;
use crate::wire::codec::{Frame, SessionId};
use crate::wire::packet::{CONTROL_OVERHEAD, Transmit, frames};

/// What an answer of a peer shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Echo {
    /// It is at another address; and the largest datagram to go there for now, if data take the path from here.
    Moved(Option<u32>),
    /// Its path takes datagrams of so many bytes.
    Size(u32),
    /// Its round-trip time: smoothed, and the least of the last ten to twenty seconds.
    Rtt(Duration, Duration),
    /// Nothing: a late answer.
    Late,
}

/// Interval of probes while data flow: five round-trip samples a second.
pub(crate) const PROBE_EVERY: Duration = Duration::from_millis(200);
/// Interval of probes while no data flow: a sixth of the silence that ends a session by default (30 s).
const IDLE_PROBE_EVERY: Duration = Duration::from_secs(5);
/// A probe that is not answered for this long is given up for the next: longer than round trips are.
const PROBE_PATIENCE: Duration = Duration::from_secs(1);
/// Measured rates decay and never reach zero: below this a session is idle, bit/s. One packet of 1500 bytes in 12 s.
const IDLE_BPS: f64 = 1000.0;
/// Bytes of a probe's frame: its kind and eight bytes of value.
const PROBE_BYTES: u32 = 9;
/// Probes in a row without an answer that are unlikely to be chance: at 30 % loss both ways, 1 of 15 times.
const UNHEARD_PROBES: u32 = 4;

impl<K> Peer<K> {
    /// Whether it is to be asked for an answer now.
    pub(crate) fn takes_probe(&mut self, now: Time) -> bool {
        // A responder knows that it has a session from the first packet on: one has to arrive.
        let patience = if self.is_heard { PROBE_PATIENCE } else { PROBE_EVERY };
        let is_due = self.probe.map_or(now >= self.probe_at, |(_, sent)| now.since(sent) >= patience);
        if is_due {
            let is_active = self.rates.iter().any(|rates| rates.measured.as_bps() > IDLE_BPS);
            let every = if is_active || self.rtt.known().is_none() { PROBE_EVERY } else { IDLE_PROBE_EVERY };
            self.probe_at = now.saturating_add(every);
        }
        is_due
    }

    /// A probe goes to it.
    pub(crate) fn on_probe(&mut self, now: Time, value: u64) {
        self.probe = Some((value, now));
        self.unanswered.get_or_insert(now);
        let (_, probes) = self.unheard.get_or_insert((now, 0));
        *probes = probes.saturating_add(1);
    }

    /// It answers from an address.
    pub(crate) fn on_echo(&mut self, now: Time, from: SocketAddr, value: u64) -> Echo {
        // Any answer, however late, proves that this end's messages arrive.
        self.unheard = None;
        if self.place.as_mut().is_some_and(|place| place.on_echo(now, from, value)) {
            self.opened.address = from;
            self.rtt = Rtt::default();
            self.probe_at = now;
            let restart = |mtu: &mut Mtu| {
                mtu.restart(now);
                mtu.size()
            };
            return Echo::Moved(self.mtu.as_mut().map(restart));
        }
        if let Some(mtu) = self.mtu.as_mut()
            && mtu.on_echo(now, value)
        {
            return Echo::Size(mtu.size());
        }
        let Some((_, sent)) = self.probe.take_if(|(probe, _)| *probe == value) else { return Echo::Late };
        self.rtt.on_sample(now, now.since(sent));
        Echo::Rtt(self.rtt.smoothed(), self.rtt.min())
    }

    /// Asks the places where it may be, and the path for the datagrams that it takes; when to do so again.
    pub(crate) fn explore(
        &mut self,
        now: Time,
        session: SessionId,
        lower_bytes: u32,
        random: impl FnMut() -> u64,
        transmits: &mut VecDeque<Transmit>,
    ) -> Time {
        let mut again = Time::MAX;
        if let Some(place) = &mut self.place {
            let probe = place.poll_probe(now, lower_bytes + CONTROL_OVERHEAD + PROBE_BYTES);
            again = again.min(place.next_at().unwrap_or(Time::MAX));
            if let Some((to, value)) = probe {
                let packet = self.packet(session, frames(&[Frame::Probe(value)]));
                transmits.push_back(Transmit { to, ..packet });
            }
        }
        let rtt = self.rtt.smoothed();
        if let Some(mtu) = &mut self.mtu {
            let probe = mtu.poll_probe(now, rtt, random);
            again = again.min(mtu.next_at(rtt));
            if let Some(MtuProbe { size, value }) = probe {
                let mut frames = frames(&[Frame::Probe(value)]);
                frames.resize(size.saturating_sub(CONTROL_OVERHEAD) as usize, 0);
                transmits.push_back(self.packet(session, frames));
            }
        }
        again
    }

    /// For how long it has owed an answer, and has been silent. A peer that owes no answer may be silent.
    pub(crate) fn unanswered_for(&self, now: Time) -> Duration {
        self.unanswered.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// For how long it has answered nothing that it was asked, though it may be heard: after some questions, since each
    /// of them may get lost.
    pub(crate) fn unheard_for(&self, now: Time) -> Duration {
        let unheard = |(since, probes)| if probes < UNHEARD_PROBES { Duration::ZERO } else { now.since(since) };
        self.unheard.map_or(Duration::ZERO, unheard)
    }
}
