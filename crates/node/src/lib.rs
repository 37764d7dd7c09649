//! The end node: one capacity, the sessions that share it, and the rule that divides it, without I/O.
//!
//! - [`EndNode`] has one direction of a host. At each control interval it takes the sessions' measured rates and returns
//!   their grants.
//! - [`Exchange`] shares a node by claims and grants, the messages of Tally, instead of measured rates.
//! - [`Machine`] has the end nodes of all processes of a machine; a process then uses grants that the machine assigns
//!   ([`Assignment`]).
//!
//! Not here: packets (`fairwave-proto`), the rules themselves ([`fairwave_schemes::node`]), and how the processes of a
//! machine reach its daemon.
//!
//! Read [`EndNode`] and [`Machine`] first.

#![cfg_attr(test, allow(non_snake_case))]

mod assigned;
mod capacity;
mod divider;
mod end_node;
mod exchange;
mod flow_table;
mod granted;
mod machine;
mod options;
mod promised_starts;
mod session;
mod share;
mod stray_meter;
mod tick_schedule;

pub use assigned::{AssignedGrant, Assignment, Looked};
pub use capacity::Capacity;
pub use divider::{Divider, RuleDivider};
pub use end_node::{EndNode, NodeConfig, TickOutcome};
pub use exchange::{Beginning, Exchange, ExchangeConfig, Word};
pub use fairwave_schemes::node::tally::{ClaimMessage, GrantMessage, Standing};
pub use flow_table::{Flow, FlowTable, JoinError};
pub use granted::Granted;
pub use machine::{
    CardCapacity, CardId, GRACE, Machine, MachineConfig, MachineGrant, MachineLimits, MachineNode, MachineRow,
    MachineStanding, MemberId, Orphan, Refusal, RowState, ShareBy,
};
pub use options::SessionOptions;
pub use session::{Direction, SessionId};
pub use share::Share;
pub use tick_schedule::{IntervalRule, TickSchedule};
