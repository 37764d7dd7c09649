//! Integration tests of the crate in one binary, which links once and runs tests of all files in parallel.

mod any_network;
mod background_traffic;
mod delay;
mod every_bdp;
mod explicit;
mod gtp_runs;
mod l4s;
mod link_conditions;
mod node_rules;
mod options;
mod oracle;
mod path;
mod queues;
mod rbudp_runs;
mod rcp_runs;
mod repair;
mod rivals;
mod shared_path;
mod tally_runs;
mod throughput;
mod timeout;
mod udt_runs;
mod unknown_capacity;
mod vcp_runs;
mod vegas;
mod xcp_runs;
