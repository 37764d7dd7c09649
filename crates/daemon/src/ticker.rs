//! The thread that ticks.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossbeam_channel::Receiver;
use fairwave_host::control_socket::monotonic_ns;
use fairwave_node::{CardId, Direction, Machine, MachineConfig, MachineNode, MemberId, ShareBy};
use fairwave_schemes::Others;
use fairwave_table::TickReport;
use fairwave_units::{Duration, Rate, Time};
use rustix::time::{ClockId, Timespec};

use crate::card_traffic::{Moved, Neighbours};
use crate::cards::{Cards, Leads};
use crate::member_process::{MemberProcess, machine_row};
use crate::news::{InitialReports, Shared, TickerEvent, VisitorId};
use crate::settings::Settings;
use crate::view::{MachineView, MemberView};
use fairwave_host::machine::DaemonCounts;

/// The machine, and the processes at its table.
pub(crate) struct Ticker {
    settings: Settings,
    machine: Machine,
    started: Time,
    processes: BTreeMap<MemberId, MemberProcess>,
    members: BTreeMap<VisitorId, MemberId>,
    cards: Cards,
    /// Other traffic of the cards, if it has a part.
    neighbours: Neighbours,
    news: Receiver<TickerEvent>,
    shared: Arc<Shared>,
    /// Another after each start.
    daemon: u64,
    tick: u64,
    /// Cost of a tick, smoothed.
    cost: Duration,
    counts: DaemonCounts,
    /// Rows that were refused at the last tick.
    refused: usize,
    /// Notifies the control socket's thread of a view.
    seen: Box<dyn Fn() + Send>,
}

/// The group of a process without one yet.
const NEWCOMER: u32 = u32::MAX;
const BOTH: [Direction; 2] = [Direction::Sending, Direction::Receiving];

pub(crate) fn now() -> Time {
    Time::from_nanos(monotonic_ns())
}

impl Ticker {
    pub(crate) fn new(
        settings: Settings,
        daemon: u64,
        news: Receiver<TickerEvent>,
        shared: Arc<Shared>,
        seen: Box<dyn Fn() + Send>,
    ) -> std::io::Result<Self> {
        let cards = Cards::new(&settings)?;
        Ok(Self::with(settings, now(), daemon, news, shared, seen, cards))
    }

    fn with(
        settings: Settings,
        started: Time,
        daemon: u64,
        news: Receiver<TickerEvent>,
        shared: Arc<Shared>,
        seen: Box<dyn Fn() + Send>,
        cards: Cards,
    ) -> Self {
        let Settings { interval, share_by, limits, drain, fair_start, .. } = settings;
        let machine = Machine::new(started, MachineConfig { interval, share_by, limits, drain, fair_start });
        let mut ticker = Self {
            settings: settings.clone(),
            machine,
            started,
            processes: BTreeMap::new(),
            members: BTreeMap::new(),
            cards,
            neighbours: Neighbours::default(),
            news,
            shared,
            daemon,
            tick: 0,
            cost: Duration::ZERO,
            counts: DaemonCounts::default(),
            refused: 0,
            seen,
        };
        ticker.set(started, settings);
        ticker
    }

    /// Initial contents of segments that are handed out before the next tick.
    pub(crate) fn tick_reports(&self) -> InitialReports {
        let newcomer = match self.settings.share_by {
            ShareBy::User | ShareBy::Process => NEWCOMER,
            ShareBy::Session => 0,
        };
        let mut of_users = BTreeMap::new();
        if self.settings.share_by == ShareBy::User {
            let users: BTreeSet<u32> = self.processes.values().map(|process| process.user).collect();
            of_users.extend(users.into_iter().map(|user| (user, self.tick_report(user))));
        }
        InitialReports::new(of_users, self.tick_report(newcomer))
    }

    /// Ticks until it is stopped.
    pub(crate) fn run(mut self) {
        // Sleeps end some 50 us later than asked for by default.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        loop {
            let due = self.machine.next_tick();
            sleep_until(due);
            let now = now();
            if now.since(due).as_nanos() > self.machine.interval().as_nanos() / 10 {
                self.counts.late_ticks += 1;
            }
            if !self.take_news(now) {
                return;
            }
            self.tick(now);
            self.show(now);
            let took = self::now().since(now);
            self.cost = Duration::from_nanos((self.cost.as_nanos() * 7 + took.as_nanos()) / 8);
            self.machine.set_cost(self.cost);
        }
    }

    /// Returns whether to continue.
    fn take_news(&mut self, now: Time) -> bool {
        while let Ok(news) = self.news.try_recv() {
            match news {
                TickerEvent::Joined { visitor, user, pid, command, segment } => {
                    // Promises of rates lift a whole group: root's processes may make them.
                    let is_privileged = user == 0;
                    match self.machine.join(user, is_privileged) {
                        Ok(member) => {
                            self.counts.joined += 1;
                            self.members.insert(visitor, member);
                            self.processes.insert(member, MemberProcess::new(member, (user, pid), command, segment));
                        }
                        // The control socket counts as well, and admits no more: its segment has no ticks, and its
                        // process treats the daemon as stalled.
                        Err(refusal) => tracing::warn!(user, %refusal, "process refused"),
                    }
                }
                TickerEvent::More { visitor, segment } => {
                    let process = self.members.get(&visitor).and_then(|member| self.processes.get_mut(member));
                    if let Some(process) = process {
                        process.add(segment);
                    }
                }
                TickerEvent::Gone(visitor) => {
                    if let Some(member) = self.members.remove(&visitor) {
                        // Rows that it gave back before it went are over, and leave nothing behind.
                        let machine = &mut self.machine;
                        if let Some(process) = self.processes.get_mut(&member) {
                            process.read(now, |row, said| {
                                if said.is_none() {
                                    machine.look(now, member, row, None);
                                }
                                None
                            });
                        }
                        self.machine.leave(member);
                        self.neighbours.forget(member);
                        self.processes.remove(&member);
                    }
                }
                TickerEvent::Refused(processes) => self.counts.refused_processes += processes,
                TickerEvent::Reload(settings) => self.set(now, *settings),
                TickerEvent::Stop => return false,
            }
        }
        true
    }

    /// The settings are these from now on, as far as they may change.
    fn set(&mut self, now: Time, settings: Settings) {
        let gone = self.settings.users.iter().filter(|user| settings.users.iter().all(|kept| kept.user != user.user));
        for user in gone {
            self.machine.set_user(user.user, None);
            self.machine.set_most_rows(user.user, None);
        }
        for user in &settings.users {
            self.machine.set_user(user.user, Some(user.terms));
            self.machine.set_most_rows(user.user, user.sessions);
        }
        self.cards.set(now, &settings, &mut self.machine);
        self.machine.set_yield(settings.yields);
        if settings.yields.is_none() {
            self.neighbours = Neighbours::default();
        }
        self.settings = settings;
    }

    /// Reads all rows, has the machine divide its capacities, and writes all grants.
    fn tick(&mut self, now: Time) {
        self.cards.take_found(now, &mut self.machine);
        let yields = self.settings.yields.is_some();
        let (machine, cards, neighbours) = (&mut self.machine, &mut self.cards, &mut self.neighbours);
        for process in self.processes.values_mut() {
            let (member, user) = (process.member, process.user);
            self.counts.unread_rows += process.read(now, |row, said| {
                // The card is not known yet: the row is not reported.
                let card = match said.map(|said| cards.towards(now, user, said.peer)) {
                    Some(Leads::NotKnown) => return None,
                    Some(Leads::By(card)) => Some(card),
                    Some(Leads::Free) | None => None,
                };
                if yields {
                    neighbours.see_row(member, row, said.map(|said| Moved::of(said, card)));
                }
                let said = said.map(|said| machine_row(said, card));
                Some((machine.look(now, member, row, said.as_ref()), card))
            });
        }
        if yields {
            self.neighbours.tell(now, &self.cards.names(), &mut self.machine);
        }
        for grant in self.machine.tick(now) {
            if let Some(process) = self.processes.get_mut(&grant.member) {
                self.counts.exceeded += u64::from(process.grant(grant));
            }
        }
        self.tick = self.machine.ticks();
        let mut refused = 0;
        let members: Vec<MemberId> = self.processes.keys().copied().collect();
        for member in members {
            let tick_report = self.tick_report(self.machine.group_of(member));
            if let Some(process) = self.processes.get_mut(&member) {
                refused += process.refused();
                process.end(&tick_report);
            }
        }
        self.counts.refused_rows += refused.saturating_sub(self.refused) as u64;
        self.refused = refused;
        self.shared.tick_reports.store(Arc::new(self.tick_reports()));
    }

    /// Publishes the machine, if a snapshot of it was asked for.
    fn show(&self, now: Time) {
        if self.shared.is_wanted.swap(false, Ordering::SeqCst) {
            self.shared.view.store(Arc::new(self.view(now)));
            (self.seen)();
        }
    }

    /// The tick's message to the members of a group.
    fn tick_report(&self, group: u32) -> TickReport {
        let node = |direction| {
            let nodes = || self.machine.nodes().filter(|node| node.direction == direction);
            // Of all cards together: a process's sessions use any of them, and it bounds the sum of their grants.
            let capacity = nodes().map(|node| node.capacity).reduce(|sum, capacity| sum + capacity);
            let weights = nodes().map(|node| self.machine.weights(group, node.card, direction)).sum();
            // Of any card: the card of a session is unknown before it opens.
            let start = nodes().map(|node| self.machine.start(node.card, direction)).reduce(Rate::min);
            (capacity, weights, start.unwrap_or(Rate::ZERO))
        };
        let [(send, send_weights, send_start), (receive, receive_weights, receive_start)] = BOTH.map(node);
        TickReport {
            tick: self.tick,
            next_tick: self.machine.next_tick(),
            interval: self.machine.interval(),
            send,
            receive,
            daemon: self.daemon,
            send_weights,
            receive_weights,
            send_start,
            receive_start,
        }
    }

    /// Other traffic of each node.
    fn others(&self) -> Vec<((CardId, Direction), Others)> {
        let Some(weight) = self.settings.yields else { return Vec::new() };
        let of = |node: MachineNode| {
            let measured = self.machine.other_traffic(node.card, node.direction)?;
            Some(((node.card, node.direction), Others { weight, measured }))
        };
        self.machine.nodes().filter_map(of).collect()
    }

    fn view(&self, at: Time) -> MachineView {
        let interval = self.machine.interval();
        let member = |process: &MemberProcess| MemberView {
            user: process.user,
            pid: process.pid,
            command: Arc::clone(&process.command),
            group: self.machine.group_of(process.member),
            terms: self.machine.terms(process.member),
            rows: process.rows(at, interval),
        };
        MachineView {
            daemon: self.daemon,
            tick: self.tick,
            at,
            started: self.started,
            interval,
            cost: self.cost,
            is_grace: self.machine.is_grace(at),
            share_by: self.settings.share_by,
            nodes: self.machine.nodes().collect(),
            others: self.others(),
            cards: self.cards.names(),
            members: self.processes.values().map(member).collect(),
            counts: self.counts,
        }
    }
}

fn sleep_until(at: Time) {
    let nanos = at.as_nanos();
    let (tv_sec, tv_nsec) = ((nanos / 1_000_000_000).cast_signed(), (nanos % 1_000_000_000).cast_signed());
    let timespec = Timespec { tv_sec, tv_nsec };
    // A signal that wakes it early makes no harm: an early tick is one.
    while rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &timespec) == Err(rustix::io::Errno::INTR) {}
}

#[cfg(test)]
mod tests;
