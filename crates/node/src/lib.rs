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
//!
//! Two sessions that use what they are granted come to equal shares, here by GTP:
//!
//! ```
//! use fairwave_node::{Beginning, Direction, EndNode, Flow, IntervalRule, NodeConfig, SessionId, Terms};
//! use fairwave_schemes::node::Gtp;
//! use fairwave_units::{Duration, Rate, Time};
//!
//! let mut node = EndNode::new(Time::ZERO, Direction::Sending, NodeConfig {
//!     capacity: Rate::mbps(100.0),
//!     share: 1.0,
//!     interval: IntervalRule::Fixed(Duration::from_millis(20)),
//!     phase: Duration::from_millis(5),
//!     allocator: Box::new(Gtp::default()),
//!     exchange: None,
//! });
//! let starts = [80.0, 0.0].map(Rate::mbps);
//! for (session, start) in (0..).map(SessionId).zip(starts) {
//!     let flow = Flow::new(session, Terms::default(), Duration::from_millis(10));
//!     node.join(Time::ZERO, flow, start, Beginning::Plain)?;
//! }
//! let mut used = starts;
//! for _ in 0..100 {
//!     let now = node.next_tick().ok_or("it divides a capacity itself")?;
//!     let outcomes = node.tick(now, |session| used[session.0 as usize]);
//!     used = [0, 1].map(|session| outcomes[session].share.grant.expected);
//! }
//! assert!(used.iter().all(|rate| (rate.as_mbps() - 50.0).abs() < 0.1), "{used:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(test, allow(non_snake_case))]

mod assigned;
mod capacity;
mod divider;
mod end_node;
mod exchange;
mod flow_table;
mod granted;
mod machine;
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
pub use fairwave_schemes::{Terms, TermsError};
pub use flow_table::{Flow, FlowTable, JoinError};
pub use granted::Granted;
pub use machine::{
    CardCapacity, CardId, GRACE, Machine, MachineConfig, MachineGrant, MachineLimits, MachineNode, MachineRow,
    MachineStanding, MemberId, Orphan, Refusal, RowState, ShareBy,
};
pub use session::{Direction, SessionId};
pub use share::Share;
pub use tick_schedule::{IntervalRule, TickSchedule};
