//! The sink of a session: requests, reports of what arrived, and measured rates.

pub(crate) mod byte_ranges;
pub(crate) mod inbound;
pub(crate) mod missing_numbers;
pub(crate) mod queue_delay;
pub(crate) mod rate_meter;
pub(crate) mod receiver;
pub(crate) mod requests;
pub(crate) mod sink_allowance;
pub(crate) mod slow_meter;
pub(crate) mod socket_share;
pub(crate) mod stamps;
