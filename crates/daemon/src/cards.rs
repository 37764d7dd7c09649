//! The network cards of a machine: what each carries, and by which a peer is reached.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crossbeam_channel::{Receiver, Sender, bounded};
use fairwave_host::{Capacity, CapacityOrigin};
use fairwave_proto::{CardCapacity, CardId, Machine};
use fairwave_units::{Duration, Time};

use crate::settings::Settings;

/// The cards that are known. Which of them leads to a peer is looked up on a thread of its own: it takes calls of the
/// system, and a tick waits for none.
pub(crate) struct Cards {
    settings: Settings,
    names: Vec<Option<String>>,
    peers: BTreeMap<IpAddr, Way>,
    asked: Sender<IpAddr>,
    found: Receiver<(IpAddr, Capacity)>,
}

struct Way {
    card: Option<CardId>,
    /// Whether it has been looked up: before that nobody can say that no card is there.
    is_known: bool,
    looked: Time,
    /// Until that comes the former way is good.
    is_asked: bool,
}

/// A way may change: it is looked up so often.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Ways that wait for being looked up; more wait for the next tick.
const MOST_ASKED: usize = 1024;
/// Ways that are remembered, as many as there may be rows.
const MOST_WAYS: usize = 65_536;
/// Where one capacity is for everything.
pub(crate) const EVERYTHING: CardId = CardId(0);

impl Cards {
    pub(crate) fn new(settings: &Settings) -> std::io::Result<Self> {
        let (asked, questions) = bounded::<IpAddr>(MOST_ASKED);
        let (answers, found) = crossbeam_channel::unbounded();
        let look_up = move || {
            for peer in questions {
                if answers.send((peer, Capacity::towards(peer))).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("fairwave-routes".to_owned()).spawn(look_up)?;
        Ok(Self::with(settings, asked, found))
    }

    /// Of ways that somebody looks up who is asked and answers by these.
    pub(crate) fn with(settings: &Settings, asked: Sender<IpAddr>, found: Receiver<(IpAddr, Capacity)>) -> Self {
        Self { settings: settings.clone(), names: vec![None], peers: BTreeMap::new(), asked, found }
    }

    /// What is said of capacities now.
    pub(crate) fn set(&mut self, now: Time, settings: &Settings, machine: &mut Machine) {
        self.settings = settings.clone();
        if let Some(everything) = settings.everything {
            machine.set_card(now, EVERYTHING, everything);
        }
        // Cards are said again when a way by them is looked up. Until then the former ways are good.
        for way in self.peers.values_mut() {
            way.looked = Time::ZERO;
        }
    }

    /// Takes what was looked up.
    pub(crate) fn take_found(&mut self, now: Time, machine: &mut Machine) {
        while let Ok((peer, capacity)) = self.found.try_recv() {
            let card = self.card(now, &capacity, machine);
            self.peers.insert(peer, Way { card, is_known: true, looked: now, is_asked: false });
        }
    }

    /// The card by which a peer is reached, if it has a capacity; none while that is not known yet.
    pub(crate) fn towards(&mut self, now: Time, peer: IpAddr) -> Option<Option<CardId>> {
        if self.settings.everything.is_some() {
            return Some(Some(EVERYTHING));
        }
        if self.peers.len() >= MOST_WAYS {
            self.peers.clear();
        }
        let way =
            self.peers.entry(peer).or_insert(Way { card: None, is_known: false, looked: Time::ZERO, is_asked: false });
        let is_old = way.looked == Time::ZERO || now.since(way.looked) > LOOK_EVERY;
        if is_old && !way.is_asked {
            way.is_asked = self.asked.try_send(peer).is_ok();
        }
        way.is_known.then_some(way.card)
    }

    /// The card that has this name, with the capacities that it has.
    fn card(&mut self, now: Time, found: &Capacity, machine: &mut Machine) -> Option<CardId> {
        let (CapacityOrigin::Card(name) | CapacityOrigin::NoSpeed(name)) = &found.origin else { return None };
        let said = self.settings.cards.iter().find(|card| card.name == *name);
        let share = said.map_or(1.0, |card| card.share);
        let of = |said: Option<fairwave_units::Rate>| said.or(found.rate).map(|rate| rate * share);
        let send = of(said.and_then(|card| card.send));
        let receive = of(said.and_then(|card| card.receive));
        if send.is_none() && receive.is_none() {
            return None;
        }
        let known = self.names.iter().position(|known| known.as_ref() == Some(name));
        let at = known.unwrap_or_else(|| {
            self.names.push(Some(name.clone()));
            self.names.len() - 1
        });
        let id = CardId(at as u32);
        machine.set_card(now, id, CardCapacity { send, receive });
        Some(id)
    }

    /// The cards' names, to be shown.
    pub(crate) fn names(&self) -> Vec<(CardId, Option<String>)> {
        (0..).map(CardId).zip(self.names.iter().cloned()).collect()
    }
}
