//! Ticks by hand, in virtual time: no thread, no socket, and ways that the test looks up.

mod guest;
mod hostile_members;
mod sharing;

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;

use arc_swap::ArcSwap;
use crossbeam_channel::{Sender, bounded, unbounded};
use fairwave_host::{Capacity, CapacityOrigin};
use fairwave_node::{CardId, Terms};
use fairwave_table::{DaemonSegment, GrantState, ProcessRow, ProcessSegment, RowPlace};
use fairwave_units::{Bytes, Rate};

use super::*;

/// A daemon without `--capacity`, and its lookups of cards.
struct World {
    ticker: Ticker,
    now: Time,
    events: Sender<TickerEvent>,
    asked: Receiver<IpAddr>,
    found: Sender<(IpAddr, Capacity)>,
}

struct Guest {
    segment: ProcessSegment,
    rows: Vec<(RowPlace, IpAddr)>,
}

impl World {
    fn new() -> Self {
        let settings = Settings::at("nowhere".into());
        let (events, news) = unbounded();
        let ((asks, asked), (found, answers)) = (bounded(1024), unbounded());
        let shared = Arc::new(Shared {
            tick_reports: ArcSwap::default(),
            view: ArcSwap::from_pointee(MachineView::default()),
            is_wanted: AtomicBool::new(false),
        });
        let cards = Cards::with(&settings, asks, answers);
        let now = now();
        let ticker = Ticker::with(settings, now, 1, news, shared, Box::new(|| {}), cards);
        Self { ticker, now, events, asked, found }
    }

    fn come(&self, visitor: u64, user: u32) -> Guest {
        let (segment, memory) = DaemonSegment::make().unwrap();
        let segment_of_guest = ProcessSegment::map(memory).unwrap();
        let (visitor, command) = (VisitorId(visitor), "guest".into());
        self.events.send(TickerEvent::Joined { visitor, user, pid: 1, command, segment }).unwrap();
        Guest { segment: segment_of_guest, rows: Vec::new() }
    }

    fn tick(&mut self) {
        self.now = self.now.saturating_add(Duration::from_millis(20));
        assert!(self.ticker.take_news(self.now));
        self.ticker.tick(self.now);
    }

    /// All ways that were asked for lead through this card.
    fn answer(&self, card: &str, rate: Rate) -> Vec<IpAddr> {
        let asked: Vec<_> = self.asked.try_iter().collect();
        let capacity = Capacity { rate: Some(rate), origin: CapacityOrigin::Card(card.to_owned()) };
        for peer in &asked {
            self.found.send((*peer, capacity.clone())).unwrap();
        }
        asked
    }
}

impl Guest {
    fn open(&mut self, peer: IpAddr) {
        let place = self.segment.take_row().unwrap();
        self.rows.push((place, peer));
        self.write();
    }

    /// Says of all its sessions that they use 10 Mb/s.
    fn write(&self) {
        for (at, (place, peer)) in self.rows.iter().enumerate() {
            assert!(self.segment.set_row(*place, &row(at as u64, *peer)));
        }
    }

    /// The grant state of a session; `None`, and it keeps its rate, until the daemon has seen it.
    fn state(&self, at: usize) -> Option<GrantState> {
        self.segment.grant(self.rows[at].0).map(|grant| grant.state)
    }
}

fn row(session: u64, peer: IpAddr) -> ProcessRow {
    ProcessRow {
        generation: 0,
        session,
        receives: false,
        measured: Rate::mbps(10.0),
        measured_at: now(),
        terms: Terms::default(),
        rtt: Duration::from_millis(1),
        waiting: None,
        start: Rate::mbps(10.0),
        path: None,
        remote: None,
        limited_by: 1,
        peer,
        wire_bytes: Bytes::ZERO,
        lost: 0,
        holding: None,
    }
}

fn peer(at: u32) -> IpAddr {
    std::net::Ipv4Addr::from_bits(0x0a00_0000 + at).into()
}

#[test]
fn tick__holds_a_session_whose_way_is_not_known_yet() {
    let mut world = World::new();
    let mut guest = world.come(1, 1000);
    guest.open(peer(1));
    for _ in 0..3 {
        world.tick();
        assert_eq!(guest.state(0), None, "not known is not free");
    }
    assert_eq!(world.answer("eth0", Rate::mbps(100.0)), [peer(1)]);
    world.tick();
    assert_eq!(guest.state(0), Some(GrantState::Granted));
    // A reload looks all routes up again. Until that is done the former ones are valid.
    world.events.send(TickerEvent::Reload(Box::new(Settings::at("nowhere".into())))).unwrap();
    world.tick();
    assert_eq!(guest.state(0), Some(GrantState::Granted));
    assert_eq!(world.ticker.machine.counts(), (1, 1));
    assert_eq!(world.answer("eth0", Rate::mbps(100.0)), [peer(1)]);
    world.tick();
    assert_eq!(guest.state(0), Some(GrantState::Granted));
    // If no card reports its speed nothing is limited.
    guest.open(peer(2));
    world.tick();
    assert_eq!(guest.state(1), None);
    let none = Capacity { rate: None, origin: CapacityOrigin::NoRoute };
    world.found.send((peer(2), none)).unwrap();
    world.tick();
    assert_eq!(guest.state(1), Some(GrantState::Free));
}

#[test]
fn beat__tells_the_capacity_of_all_cards_together() {
    let mut world = World::new();
    let mut guest = world.come(1, 1000);
    for (at, (card, rate)) in [("eth0", 100.0), ("eth1", 900.0)].into_iter().enumerate() {
        guest.open(peer(at as u32));
        world.tick();
        world.answer(card, Rate::mbps(rate));
        world.tick();
    }
    let tick_report = guest.segment.tick_report().unwrap();
    // 1000 = 100 + 900: a process with a session at each may be granted both.
    assert_eq!((tick_report.send, tick_report.receive), (Some(Rate::mbps(1000.0)), Some(Rate::mbps(1000.0))));
    // One session is at each, and a newcomer to either would be the second there.
    assert_eq!(tick_report.send_weights, 2.0);
}

#[test]
fn tick__who_names_new_peers_in_all_rows_makes_nobody_wait_and_is_not_remembered() {
    let mut world = World::new();
    let mut flood = world.come(1, 1000);
    (0..256).for_each(|at| flood.open(peer(at)));
    let mut other = world.come(2, 1001);
    other.open(peer(u32::MAX >> 8));
    world.tick();
    let asked = world.answer("eth0", Rate::mbps(100.0));
    // 16 of the flood's 256, and the other's one.
    assert_eq!((asked.len(), asked.last()), (17, Some(&other.rows[0].1)));
    world.tick();
    assert_eq!(other.state(0), Some(GrantState::Granted));
    // Years of a flood, and the other's way is still known.
    let mut new = 256;
    for _ in 0..5000 {
        for (place, to) in &mut flood.rows[..16] {
            new += 1;
            *to = peer(new);
            assert!(flood.segment.set_row(*place, &row(0, *to)));
        }
        let now = world.now.saturating_add(Duration::from_millis(1));
        world.now = now;
        world.ticker.cards.take_found(now, &mut world.ticker.machine);
        for (_, to) in &flood.rows[..16] {
            world.ticker.cards.towards(now, 1000, *to);
        }
        assert_eq!(world.ticker.cards.towards(now, 1001, other.rows[0].1), Leads::By(CardId(1)));
        world.answer("eth0", Rate::mbps(100.0));
    }
    assert!(world.ticker.cards.ways() <= 65_536 + 32, "{}", world.ticker.cards.ways());
}

#[test]
fn tick__of_a_process_that_is_gone_no_row_is_remembered() {
    let mut world = World::new();
    let settings = Settings { yields: Some(1.0), ..Settings::at("nowhere".into()) };
    world.events.send(TickerEvent::Reload(Box::new(settings))).unwrap();
    let mut guest = world.come(1, 1000);
    guest.open(peer(1));
    world.tick();
    world.answer("eth0", Rate::mbps(100.0));
    world.tick();
    assert_eq!(world.ticker.neighbours.rows(), 1);
    world.events.send(TickerEvent::Gone(VisitorId(1))).unwrap();
    world.tick();
    assert_eq!(world.ticker.neighbours.rows(), 0);
}
