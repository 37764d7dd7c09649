//! Integration tests of the crate, in one binary: one link, and tests of all files share the processors.

mod any_network;
mod background;
mod bbr;
mod delay;
mod explicit;
mod gtp;
mod node_rules;
mod options;
mod oracle;
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
