//! How a node divides its capacity among its sessions.

use fairwave_schemes::{Grant, Interval, RateAllocator, Row};
use fairwave_units::Time;

use crate::exchange::Exchange;
use crate::flow_table::FlowTable;
use crate::share::{Share, Shares};

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
