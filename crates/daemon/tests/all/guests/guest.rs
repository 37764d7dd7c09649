//! A process at the table without a network: what it sends is what it is granted.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration as StdDuration, Instant};

use fairwave_host::door::{DOOR_VERSION, DoorStream, Question, monotonic_ns};
use fairwave_table::{Ask, GrantState, ProcessRow, ProcessSegment, RowPlace, SegmentMemory, VERSION};
use fairwave_units::{Bytes, Duration, Rate, Time};

/// A process, and its sessions.
pub(crate) struct Guest {
    pub(crate) stream: DoorStream,
    pub(crate) segment: ProcessSegment,
    /// Another descriptor of what it writes, to write rubbish by.
    pub(crate) raw: OwnedFd,
    pub(crate) sessions: Vec<GuestSession>,
    pulse: u64,
}

pub(crate) struct GuestSession {
    pub(crate) place: RowPlace,
    pub(crate) receives: bool,
    /// What it can use at the most, Mb/s.
    pub(crate) limit: f64,
    /// What it uses, Mb/s.
    pub(crate) rate: f64,
    /// By how much it exaggerates.
    pub(crate) lies: f64,
    pub(crate) state: Option<GrantState>,
    pub(crate) minimum: f64,
    pub(crate) weight: f64,
}

pub(crate) fn join(socket: &Path) -> Question {
    let _ = socket;
    Question::Join { version: DOOR_VERSION, layout: VERSION, clock_ns: monotonic_ns(), command: "guest".to_owned() }
}

impl Guest {
    pub(crate) fn come(socket: &Path) -> Self {
        let mut stream = DoorStream::connect(socket).unwrap();
        let [rows, grants] = stream.ask_for_seat(&join(socket)).unwrap();
        let raw = rows.try_clone().unwrap();
        let segment = ProcessSegment::map(SegmentMemory { rows, grants }).unwrap();
        Self { stream, segment, raw, sessions: Vec::new(), pulse: 0 }
    }

    /// A session that uses all that it gets, and has something already.
    pub(crate) fn open(&mut self, rate: f64) -> usize {
        let place = self.segment.take_row().unwrap();
        let session = GuestSession {
            place,
            receives: false,
            limit: f64::INFINITY,
            rate,
            lies: 1.0,
            state: None,
            minimum: 0.0,
            weight: 1.0,
        };
        self.sessions.push(session);
        self.write();
        self.sessions.len() - 1
    }

    pub(crate) fn close(&mut self, at: usize) {
        let session = self.sessions.remove(at);
        assert!(self.segment.give_back(session.place));
    }

    /// Takes what it is granted, if the daemon has ticked: whether it has.
    pub(crate) fn turn(&mut self) -> bool {
        let pulse = self.segment.pulse();
        if pulse == self.pulse {
            return false;
        }
        self.pulse = pulse;
        for session in &mut self.sessions {
            let Some(grant) = self.segment.grant(session.place) else { continue };
            session.state = Some(grant.state);
            if matches!(grant.state, GrantState::Granted | GrantState::Exceeds) {
                session.rate = grant.expected.as_mbps().min(session.limit);
            }
        }
        self.write();
        true
    }

    pub(crate) fn write(&self) {
        for (at, session) in self.sessions.iter().enumerate() {
            assert!(self.segment.set_row(session.place, &row(at as u64, session)));
        }
    }

    pub(crate) fn rates(&self) -> Vec<f64> {
        self.sessions.iter().map(|session| session.rate).collect()
    }
}

pub(crate) fn row(session: u64, of: &GuestSession) -> ProcessRow {
    ProcessRow {
        generation: 0,
        session,
        receives: of.receives,
        measured: Rate::mbps(of.rate * of.lies),
        measured_at: Time::from_nanos(monotonic_ns()),
        ask: Ask {
            desired: None,
            weight: of.weight,
            minimum: Rate::mbps(of.minimum),
            maximum: None,
            alpha: 0.1,
            beta: 0.2,
        },
        rtt: Duration::from_millis(1),
        waiting: None,
        start: Rate::mbps(of.rate),
        path: None,
        remote: None,
        limited_by: 1,
        peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
        wire_bytes: Bytes::ZERO,
        lost: 0,
        holding: None,
    }
}

/// Processes go on until something holds at 20 ticks in a row. It comes to that in seconds; only a machine that stands
/// still needs longer.
pub(crate) fn until(guests: &mut [&mut Guest], mut holds: impl FnMut(&[&mut Guest]) -> bool) {
    let begun = Instant::now();
    let mut ticks = 0;
    while ticks < 20 {
        let mut has_ticked = false;
        for guest in guests.iter_mut() {
            has_ticked |= guest.turn();
        }
        if has_ticked {
            ticks = if holds(guests) { ticks + 1 } else { 0 };
        }
        let rates: Vec<_> = guests.iter().map(|guest| guest.rates()).collect();
        assert!(begun.elapsed() < StdDuration::from_secs(60), "it does not come to hold: {rates:?} Mb/s");
        std::thread::sleep(StdDuration::from_micros(300));
    }
}

/// Whether all these rates are within a share of what they are to be.
pub(crate) fn near(rates: &[f64], fair: &[f64], share: f64) -> bool {
    rates.len() == fair.len() && rates.iter().zip(fair).all(|(rate, fair)| (rate - fair).abs() <= share * fair)
}
