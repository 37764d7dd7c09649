//! The half of a source.

mod assigned;
mod driver;
mod promise;
mod remote;
mod row;

use fairwave_units::{Rate, Time};

use super::by_group::weigh_by_group;
use super::caps::caps;
use super::claimant::Capped;
use super::claimant::Claimant;
use super::fill::{Fill, Queries};
use super::headroom::head_bps;
use super::message::{ClaimTo, GrantMessage, MAX_NUMBER, SessionTerms, as_bps, as_limit};
use super::options::TallyOptions;
use super::rows::Rows;
use super::stamp::Stamp;
use remote::Speaks;
use row::SourceRow;

/// One sending capacity, the claims of its sessions and their send rates.
///
/// The driver delivers grants ([`on_grant`](Self::on_grant)) and reports sent data ([`sent`](Self::sent)), and calls
/// [`tick`](Self::tick) once per control interval; it carries the returned messages to the remote resources, and limits
/// each session to its [`rate`](Self::rate), which changes with a grant, with a tick, and when a session ends.
#[derive(Clone, Debug)]
pub struct SourceNode {
    capacity_bps: f64,
    options: TallyOptions,
    sessions: Rows<SourceRow>,
    has_news: bool,
    /// Start of the control interval.
    interval_from: Time,
    /// Set if newcomers were considered since the last tick, and no session has ended since.
    opening: Option<Box<Opening>>,
    /// Whether the capacity is divided elsewhere.
    is_assigned: bool,
}

/// A [`Fill`] of the sessions that existed when the first of several newcomers arrived, and the newcomers' sums:
/// opening a thousand sessions at once does not visit all sessions a thousand times.
#[derive(Clone, Debug)]
struct Opening {
    fill: Fill,
    weights: f64,
    minima_bps: f64,
    /// Capacity outside all caps: newcomers with a promise may use it.
    uncapped_bps: f64,
}

impl SourceNode {
    /// A node without sessions.
    pub fn new(capacity: Rate, options: TallyOptions) -> Self {
        Self {
            capacity_bps: capacity.as_bps(),
            options,
            sessions: Rows::new(),
            has_news: false,
            interval_from: Time::ZERO,
            opening: None,
            is_assigned: false,
        }
    }

    /// Changes the capacity from the next tick on.
    pub fn set_capacity(&mut self, capacity: Rate) {
        self.capacity_bps = capacity.as_bps();
        self.has_news = true;
    }

    /// Opens a session that crosses `remotes` remote resources; it claims immediately, and sends from the next tick
    /// after its first grants on. `declared` is its demand, if it has declared one. Identifiers are never reused.
    pub fn open(
        &mut self,
        now: Time,
        session: u64,
        terms: SessionTerms,
        declared: Option<Rate>,
        remotes: usize,
        out: &mut Vec<ClaimTo>,
    ) {
        let mut row = SourceRow::new(now, &terms, declared, remotes, self.options.lease);
        row.offer_bps = self.offer_to_newcomer(&row.claimant());
        row.send_changed_claims(now, session, &self.options, out);
        self.sessions.insert(session, row);
        self.has_news = true;
    }

    /// The rate that it could have next to all existing sessions.
    fn offer_to_newcomer(&mut self, newcomer: &Claimant) -> f64 {
        let opening = self.opening();
        let offer_bps = opening.fill.offer_with_newcomers_bps(newcomer, opening.weights, opening.minima_bps);
        opening.weights += newcomer.weight;
        opening.minima_bps += newcomer.minimum_bps;
        offer_bps
    }

    fn opening(&mut self) -> &mut Opening {
        let opening = self.opening.take().unwrap_or_else(|| Box::new(self.start_opening()));
        self.opening.insert(opening)
    }

    fn start_opening(&self) -> Opening {
        let rows: Vec<Claimant> = self.open_rows().map(SourceRow::claimant).collect();
        let capped: f64 = self.open_rows().map(|row| row.cap_bps).sum();
        let fill = Fill::for_queries(Queries::Newcomers, self.capacity_bps, &rows);
        // Use of the capacity by other processes is not known here.
        let uncapped_bps = if self.is_assigned { 0.0 } else { (self.capacity_bps - capped).max(0.0) };
        Opening { fill, weights: 0.0, minima_bps: 0.0, uncapped_bps }
    }

    /// Closes a session: it stops sending, and sends a bye.
    pub fn close(&mut self, now: Time, session: u64, out: &mut Vec<ClaimTo>) {
        let Some(row) = self.sessions.get_mut(session) else { return };
        if row.is_open() {
            row.start_byes();
            self.has_news = true;
            row.send_bye(now, session, out);
        }
    }

    /// Changes the declared demand; `None` if it is unknown.
    pub fn declare(&mut self, session: u64, declared: Option<Rate>) {
        if let Some(row) = self.sessions.get_mut(session) {
            row.set_declared(declared);
            self.has_news = true;
        }
    }

    /// Reports sent bits of a session, and whether any of its data waited during that time.
    pub fn sent(&mut self, session: u64, bits: f64, waited: bool) {
        if let Some(row) = self.sessions.get_mut(session) {
            row.on_sent(bits, waited);
        }
    }

    /// The current maximum send rate of a session.
    pub fn rate(&self, session: u64) -> Rate {
        self.sessions.get(session).map_or(Rate::ZERO, |row| Rate::nearest_bps(row.allowed_bps()))
    }

    /// A session's part of the sending capacity.
    pub fn cap(&self, session: u64) -> Rate {
        self.sessions.get(session).map_or(Rate::ZERO, |row| Rate::nearest_bps(row.cap_bps))
    }

    /// The smallest of a session's grants in force; `None` if it crosses no remote resource.
    pub fn granted(&self, session: u64) -> Option<Rate> {
        self.sessions.get(session).and_then(|row| as_limit(row.granted_bps()))
    }

    /// The rate that a session could have if it took as much as possible: the smallest offer of its own source and the
    /// remote resources; `None` if unlimited.
    pub fn offer(&self, session: u64) -> Option<Rate> {
        self.sessions.get(session).and_then(|row| as_limit(row.offer_bps.min(row.least_offer_bps())))
    }

    /// Whether a tick would process more than the elapsed time.
    pub fn has_news(&self) -> bool {
        self.has_news
    }

    /// A grant arrives. It takes effect immediately, if its number is higher than that of the grant in force.
    pub fn on_grant(&mut self, now: Time, session: u64, remote: usize, grant: &GrantMessage, out: &mut Vec<ClaimTo>) {
        let options = self.options;
        // Numbers that no honest end reaches are ignored.
        if grant.number.max(grant.claim_heard) > MAX_NUMBER {
            return;
        }
        let Some(row) = self.sessions.get_mut(session) else { return };
        let is_closing = !row.is_open();
        let Some(half) = row.remotes.get_mut(remote) else { return };
        half.heard = Stamp::of(now);
        half.answered = half.answered.max(grant.claim_heard as u32);
        if is_closing {
            half.is_over |= half.answered >= half.news;
            if row.remotes.iter().all(|half| half.is_over) {
                self.sessions.remove(session);
            }
            return;
        }
        let number = grant.number as u32;
        // An older message may have another lease, and a keep-alive has no lease.
        if number > 0 && number >= half.in_force {
            half.set_lease(grant.lease);
        }
        if number > 0 && (number > half.in_force || (half.has_lapsed && number == half.in_force)) {
            half.in_force = number;
            half.has_lapsed = false;
            half.offer_bps = as_bps(grant.offer);
            half.grant_bps = grant.rate.as_bps();
            row.note_allowed();
            self.has_news = true;
            row.confirm(now, session, remote, &options, out);
        } else if grant.wants_answer {
            row.say(now, session, remote, false, &options, out);
        }
    }

    pub(super) fn set_plain(&mut self, session: u64) {
        for half in self.sessions.get_mut(session).iter_mut().flat_map(|row| row.remotes.iter_mut()) {
            half.speaks = Speaks::PlainGtp;
        }
    }

    pub(super) fn take_feedback(&mut self, now: Time, session: u64, bps: f64) {
        let Some(row) = self.sessions.get_mut(session) else { return };
        for half in row.remotes.iter_mut().filter(|half| half.speaks == Speaks::PlainGtp) {
            (half.heard, half.offer_bps, half.grant_bps) = (Stamp::of(now), bps, bps);
            self.has_news = true;
        }
        row.note_allowed();
    }

    /// Closes a session whose sink runs plain GTP; its sink notices that by GTP's own means.
    pub fn close_plain(&mut self, session: u64) {
        if self.sessions.get(session).is_some_and(|row| row.remotes.iter().all(|half| half.speaks == Speaks::PlainGtp))
        {
            self.sessions.remove(session);
            (self.has_news, self.opening) = (true, None);
        }
    }

    /// Ends a control interval: updates demands, caps and claims, and sends the messages due.
    pub fn tick(&mut self, now: Time, out: &mut Vec<ClaimTo>) {
        let options = self.options;
        for row in self.sessions.values_mut().filter(|row| row.is_open()) {
            self.has_news |= row.end_interval(now, self.interval_from, &options);
        }
        self.interval_from = now;
        self.share_and_send(now, out);
    }

    /// Updates caps and claims with unchanged demands, and sends the messages due.
    fn share_and_send(&mut self, now: Time, out: &mut Vec<ClaimTo>) {
        let options = self.options;
        self.sessions.settle();
        self.opening = None;
        if std::mem::take(&mut self.has_news) && !self.is_assigned {
            self.share_out();
        }
        for (session, row) in self.sessions.iter_mut() {
            if row.is_open() {
                row.note_allowed();
                row.tell(now, session, &options, out);
            } else if row.is_bye_due(now, &options) {
                row.send_bye(now, session, out);
            }
        }
        self.sessions.retain(|row| !row.has_sent_all_byes());
    }

    /// Offers and caps from claims and grants.
    fn share_out(&mut self) {
        let (capacity_bps, headroom) = (self.capacity_bps, self.options.headroom);
        let claims = self.claims(capacity_bps);
        let weighed = |(row, claim): (&SourceRow, &Claimant)| Capped { weight: claim.weight, ..row.capped() };
        let limits: Vec<Capped> = self.open_rows().zip(&claims).map(weighed).collect();
        let fill = Fill::new(capacity_bps, &claims);
        let weights: f64 = claims.iter().map(|row| row.weight).sum();
        let caps = caps(capacity_bps, &limits);
        let rows = self.sessions.values_mut().filter(|row| row.is_open());
        for ((row, claimant), cap_bps) in rows.zip(&claims).zip(caps) {
            row.offer_bps = fill.offer_bps(claimant);
            row.cap_bps = cap_bps;
            if row.is_limited_by_application() {
                let head = head_bps(headroom, fill.share_bps(claimant), capacity_bps, claimant.weight / weights);
                row.cap_bps = cap_bps.max((cap_bps + head).min(row.offer_bps));
            }
        }
    }

    /// Claims of the open sessions to a capacity, with weights by which groups share it first.
    fn claims(&self, capacity_bps: f64) -> Vec<Claimant> {
        let mut claims: Vec<Claimant> = self.open_rows().map(SourceRow::claimant).collect();
        let groups: Vec<u32> = self.open_rows().map(SourceRow::group).collect();
        weigh_by_group(capacity_bps, &groups, &mut claims);
        claims
    }

    fn open_rows(&self) -> impl Iterator<Item = &SourceRow> {
        self.sessions.values().filter(|row| row.is_open())
    }
}
