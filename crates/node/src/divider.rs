//! How a node divides its capacity among its sessions.

use fairwave_schemes::{Grant, Interval, RateAllocator, Row};
use fairwave_units::{Rate, Time};

use crate::exchange::Exchange;
use crate::flow_table::FlowTable;

/// What divides the capacity of a node.
pub enum Divider {
    /// A rule over measured rates.
    Rule(RuleDivider),
    /// Claims and grants between the two ends of each session.
    Claims(Box<Exchange>),
}

/// A rule, and its grants of the last interval.
pub struct RuleDivider {
    allocator: Box<dyn RateAllocator>,
    grants: Vec<Grant>,
}

/// A session's part of a node's capacity until the next tick.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// Its rate, and where that leads.
    pub grant: Grant,
    /// The most that may come by what was granted recently, if that is known; else the rate.
    pub allowed: Rate,
    /// At a source whose sink gives grants: the one in force.
    pub remote: Option<Rate>,
    /// Whether the session is to be closed, because it exceeds its grants.
    pub exceeds: bool,
}

impl Share {
    pub(crate) fn of_grant(grant: Grant) -> Self {
        Self { grant, allowed: grant.expected, ..Self::default() }
    }
}

impl Divider {
    pub(crate) fn rule(allocator: Box<dyn RateAllocator>) -> Self {
        Self::Rule(RuleDivider { allocator, grants: Vec::new() })
    }

    /// Ends a control interval: the share of each row, in their order.
    pub(crate) fn divide(&mut self, now: Time, interval: &Interval, flows: &FlowTable, rows: &[Row], to: &mut Shares) {
        to.clear();
        match self {
            Self::Rule(RuleDivider { allocator, grants }) => {
                grants.clear();
                grants.resize(rows.len(), Grant::default());
                allocator.allocate(interval, rows, grants);
                to.extend(grants.iter().map(|grant| Some(Share::of_grant(*grant))));
            }
            Self::Claims(exchange) => {
                exchange.set_capacity_at(now, interval.capacity);
                exchange.see_measured(now, flows);
                exchange.tick(now);
                to.extend(flows.iter().map(|entry| Some(exchange.share(entry.flow.session).unwrap_or_default())));
            }
        }
    }

    /// The exchange of claims and grants, if that divides.
    pub fn exchange(&self) -> Option<&Exchange> {
        match self {
            Self::Rule(_) => None,
            Self::Claims(exchange) => Some(exchange),
        }
    }

    /// The exchange of claims and grants, if that divides.
    pub fn exchange_mut(&mut self) -> Option<&mut Exchange> {
        match self {
            Self::Rule(_) => None,
            Self::Claims(exchange) => Some(exchange),
        }
    }

    /// The rule over measured rates, if that divides.
    pub fn rule_mut(&mut self) -> Option<&mut dyn RateAllocator> {
        match self {
            Self::Rule(rule) => Some(&mut *rule.allocator),
            Self::Claims(_) => None,
        }
    }
}

/// The rate of a session that no node limits.
pub(crate) fn unlimited() -> Rate {
    Rate::nearest_bps(f64::MAX)
}

/// By the rows of a node; `None` if a row's grant is unchanged.
pub(crate) type Shares = Vec<Option<Share>>;
