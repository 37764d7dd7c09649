//! Processes at the table without a network: what they send is what they are granted.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arc_swap::ArcSwap;
use crossbeam_channel::{Sender, unbounded};
use fairwave_node::{CardCapacity, Terms};
use fairwave_table::{DaemonSegment, GrantState, ProcessRow, ProcessSegment, RowPlace, SegmentMemory};
use fairwave_units::{Bytes, Duration, Rate, Time};

use crate::news::{Shared, TickerEvent, VisitorId};
use crate::settings::Settings;
use crate::shown::snapshot;
use crate::ticker::Ticker;
use crate::view::MachineView;
use fairwave_host::machine::MachineSnapshot;

/// A daemon of a machine of 700 Mb/s each way that ticks each 5 ms.
pub(super) struct Table {
    pub(super) ticker: Ticker,
    pub(super) now: Time,
    events: Sender<TickerEvent>,
    newest: u64,
}

/// A process with sessions.
pub(super) struct Guest {
    visitor: VisitorId,
    segment: ProcessSegment,
    /// A second descriptor of the memory that it writes.
    pub(super) raw: OwnedFd,
    pub(super) sessions: Vec<GuestSession>,
}

pub(super) struct GuestSession {
    pub(super) place: RowPlace,
    pub(super) receives: bool,
    /// Upper bound of its rate, Mb/s.
    pub(super) limit: f64,
    /// Its rate, Mb/s.
    pub(super) rate: f64,
    /// Reported rate relative to its rate.
    pub(super) lies: f64,
    pub(super) state: Option<GrantState>,
}

/// The number of ticks within which shares settle: 25 s.
const MAX_TICKS: usize = 5000;

impl Table {
    pub(super) fn new() -> Self {
        Self::at(crate::ticker::now(), 1)
    }

    /// The `number`-th daemon of this machine, from a time on.
    fn at(started: Time, number: u64) -> Self {
        let capacity = Some(Rate::mbps(700.0));
        let everything = Some(CardCapacity { send: capacity, receive: capacity });
        let interval = Duration::from_millis(5);
        let settings = Settings { interval, everything, ..Settings::at("nowhere".into()) };
        let (events, news) = unbounded();
        let shared = Arc::new(Shared {
            tick_reports: ArcSwap::default(),
            view: ArcSwap::from_pointee(MachineView::default()),
            is_wanted: AtomicBool::new(false),
        });
        let (asks, answers) = (crossbeam_channel::bounded(1).0, unbounded().1);
        let cards = crate::cards::Cards::with(&settings, asks, answers);
        let ticker = Ticker::with(settings, started, number, news, shared, Box::new(|| {}), cards);
        Self { ticker, now: started, events, newest: 0 }
    }

    /// The daemon ends, and another one starts.
    pub(super) fn restart(&mut self) {
        *self = Self::at(self.now, self.ticker.daemon + 1);
    }

    pub(super) fn come(&mut self) -> Guest {
        let (segment, memory) = DaemonSegment::make().unwrap();
        let raw = memory.rows.try_clone().unwrap();
        let handed = SegmentMemory { rows: memory.rows, grants: memory.grants };
        self.newest += 1;
        let (visitor, command) = (VisitorId(self.newest), "guest".into());
        self.events.send(TickerEvent::Joined { visitor, user: 1000, pid: 1, command, segment }).unwrap();
        Guest { visitor, segment: ProcessSegment::map(handed).unwrap(), raw, sessions: Vec::new() }
    }

    /// A process ends without a word: the daemon sees the end of its connection.
    #[expect(clippy::needless_pass_by_value, reason = "the process is gone afterwards")]
    pub(super) fn leave(&self, guest: Guest) {
        self.events.send(TickerEvent::Gone(guest.visitor)).unwrap();
    }

    /// The next tick of the daemon, for which all processes write their rows.
    pub(super) fn tick(&mut self, guests: &mut [&mut Guest]) {
        self.now = self.ticker.machine.next_tick();
        for guest in guests.iter() {
            guest.write(self.now);
        }
        assert!(self.ticker.take_news(self.now));
        self.ticker.tick(self.now);
        for guest in guests.iter_mut() {
            guest.take_grants();
        }
    }

    /// Ticks until a condition holds at 20 ticks in a row.
    pub(super) fn until(&mut self, guests: &mut [&mut Guest], mut holds: impl FnMut(&mut [&mut Guest]) -> bool) {
        let mut in_a_row = 0;
        for _ in 0..MAX_TICKS {
            self.tick(guests);
            in_a_row = if holds(guests) { in_a_row + 1 } else { 0 };
            if in_a_row == 20 {
                return;
            }
        }
        let rates: Vec<_> = guests.iter().map(|guest| guest.rates()).collect();
        panic!("not after {MAX_TICKS} ticks: {rates:?} Mb/s");
    }

    pub(super) fn snapshot(&self) -> MachineSnapshot {
        snapshot(&self.ticker.view(self.now), None)
    }
}

impl Guest {
    /// A session that uses all that it is granted, and starts with a rate, Mb/s.
    pub(super) fn open(&mut self, rate: f64) {
        let place = self.segment.take_row().unwrap();
        let limit = f64::INFINITY;
        self.sessions.push(GuestSession { place, receives: false, limit, rate, lies: 1.0, state: None });
    }

    pub(super) fn close(&mut self, at: usize) {
        let session = self.sessions.remove(at);
        assert!(self.segment.give_back(session.place));
    }

    fn take_grants(&mut self) {
        for session in &mut self.sessions {
            let Some(grant) = self.segment.grant(session.place) else { continue };
            session.state = Some(grant.state);
            if matches!(grant.state, GrantState::Granted | GrantState::Exceeds) {
                session.rate = grant.expected.as_mbps().min(session.limit);
            }
        }
    }

    fn write(&self, now: Time) {
        for (number, session) in self.sessions.iter().enumerate() {
            assert!(self.segment.set_row(session.place, &row(number as u64, session, now)));
        }
    }

    pub(super) fn rates(&self) -> Vec<f64> {
        self.sessions.iter().map(|session| session.rate).collect()
    }
}

fn row(number: u64, session: &GuestSession, now: Time) -> ProcessRow {
    ProcessRow {
        generation: 0,
        session: number,
        receives: session.receives,
        measured: Rate::mbps(session.rate * session.lies),
        measured_at: now,
        terms: Terms::default(),
        rtt: Duration::from_millis(1),
        waiting: None,
        start: Rate::mbps(session.rate),
        path: None,
        remote: None,
        limited_by: 1,
        peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
        wire_bytes: Bytes::ZERO,
        lost: 0,
        holding: None,
    }
}

/// Whether all rates are within a share of the expected ones.
pub(super) fn near(rates: &[f64], expected: &[f64], share: f64) -> bool {
    rates.len() == expected.len() && rates.iter().zip(expected).all(|(rate, fair)| (rate - fair).abs() <= share * fair)
}
