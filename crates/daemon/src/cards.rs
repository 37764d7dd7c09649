//! The network cards of a machine: what each carries, and by which a peer is reached.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::IpAddr;

use crossbeam_channel::{Receiver, Sender, bounded};
use fairwave_host::{Capacity, CapacityOrigin};
use fairwave_node::{CardCapacity, CardId, Machine};
use fairwave_units::{Duration, Time};

use crate::settings::Settings;

/// The known cards. The card to a peer is looked up on a separate thread: it takes system calls, and a tick never waits
/// for them.
pub(crate) struct Cards {
    settings: Settings,
    names: Vec<Option<String>>,
    peers: BTreeMap<IpAddr, Way>,
    asked: Sender<IpAddr>,
    found: Receiver<(IpAddr, Capacity)>,
    /// Pending lookups of each user.
    asking: BTreeMap<u32, usize>,
    /// When the last tick was.
    ticked: Time,
}

/// The card of the route to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leads {
    /// Not looked up yet: there may be a card.
    NotKnown,
    /// By none that has a capacity.
    Free,
    /// By this card.
    By(CardId),
}

struct Way {
    leads: Leads,
    looked: Time,
    /// When a row last named the peer.
    used: Time,
    /// The user whose row caused the pending lookup: until it ends the former card is valid.
    asked_by: Option<u32>,
}

/// Period of repeated lookups: a route may change.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Ways that wait for being looked up; more wait for the next tick.
const MAX_ASKED: usize = 1024;
/// Max pending lookups of a user: a user with a new peer in each row waits, and others do not.
const MAX_ASKED_OF_USER: usize = 16;
/// Ways that are remembered, as many as there may be rows: beyond that those are forgotten that no row names any more.
const MAX_WAYS: usize = 65_536;
/// The card if one capacity is for everything.
pub(crate) const EVERYTHING: CardId = CardId(0);

impl Cards {
    pub(crate) fn new(settings: &Settings) -> std::io::Result<Self> {
        let (asked, questions) = bounded::<IpAddr>(MAX_ASKED);
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

    /// With lookups that are requested and answered over these channels.
    pub(crate) fn with(settings: &Settings, asked: Sender<IpAddr>, found: Receiver<(IpAddr, Capacity)>) -> Self {
        Self {
            settings: settings.clone(),
            names: vec![None],
            peers: BTreeMap::new(),
            asked,
            found,
            asking: BTreeMap::new(),
            ticked: Time::ZERO,
        }
    }

    /// Applies new capacities.
    pub(crate) fn set(&mut self, now: Time, settings: &Settings, machine: &mut Machine) {
        self.settings = settings.clone();
        if let Some(everything) = settings.everything {
            machine.set_card(now, EVERYTHING, everything);
        }
        // Each route's card is reported again after its next lookup. Until then the former routes stay valid.
        for way in self.peers.values_mut() {
            way.looked = Time::ZERO;
        }
    }

    /// At the start of a tick: takes the finished lookups.
    pub(crate) fn take_found(&mut self, now: Time, machine: &mut Machine) {
        while let Ok((peer, capacity)) = self.found.try_recv() {
            let card = self.card(now, &capacity, machine);
            let Some(way) = self.peers.get_mut(&peer) else { continue };
            if let Some(user) = way.asked_by.take()
                && let Some(asking) = self.asking.get_mut(&user)
            {
                *asking -= 1;
                if *asking == 0 {
                    self.asking.remove(&user);
                }
            }
            (way.leads, way.looked) = (card.map_or(Leads::Free, Leads::By), now);
        }
        if self.peers.len() > MAX_WAYS {
            self.peers.retain(|_, way| way.used >= self.ticked || way.asked_by.is_some());
        }
        self.ticked = now;
    }

    /// The card by which a peer is reached that a user's row names.
    pub(crate) fn towards(&mut self, now: Time, user: u32, peer: IpAddr) -> Leads {
        if self.settings.everything.is_some() {
            return Leads::By(EVERYTHING);
        }
        let is_old = |way: &Way| way.looked == Time::ZERO || now.since(way.looked) > LOOK_EVERY;
        let wants = self.peers.get(&peer).is_none_or(|way| way.asked_by.is_none() && is_old(way));
        let is_asked = wants && self.ask(user, peer);
        let way = match self.peers.entry(peer) {
            Entry::Occupied(known) => known.into_mut(),
            // Nothing is kept of a peer that has to wait for being asked for.
            Entry::Vacant(_) if !is_asked => return Leads::NotKnown,
            Entry::Vacant(new) => {
                new.insert(Way { leads: Leads::NotKnown, looked: Time::ZERO, used: now, asked_by: None })
            }
        };
        way.used = now;
        if is_asked {
            way.asked_by = Some(user);
        }
        way.leads
    }

    /// Whether a way is looked up for a user.
    fn ask(&mut self, user: u32, peer: IpAddr) -> bool {
        let asking = self.asking.get(&user).copied().unwrap_or(0);
        if asking >= MAX_ASKED_OF_USER || self.asked.try_send(peer).is_err() {
            return false;
        }
        self.asking.insert(user, asking + 1);
        true
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

    /// Number of remembered routes.
    #[cfg(test)]
    pub(crate) fn ways(&self) -> usize {
        self.peers.len()
    }

    /// The cards' names, to be shown.
    pub(crate) fn names(&self) -> Vec<(CardId, Option<String>)> {
        (0..).map(CardId).zip(self.names.iter().cloned()).collect()
    }
}
