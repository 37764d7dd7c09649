//! Integration tests of the crate in one binary, which links once and runs tests of all files in parallel.

mod any_network;
mod background;
mod conditions;
mod delay;
mod every_bdp;
mod explicit;
mod gtp;
mod node_rules;
mod options;
mod oracle;
mod path;
mod queues;
mod rbudp;
mod rcp;
mod rivals;
mod shared_path;
mod tally;
mod throughput;
mod timeout;
mod udt;
mod unknown_capacity;
mod vcp;
mod vegas;
mod xcp;
