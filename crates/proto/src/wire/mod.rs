//! Packets: as values, and as bytes in datagrams.

pub mod codec;
pub(crate) mod features;
pub(crate) mod packet;
pub(crate) mod packet_runs;
pub(crate) mod replay;
pub(crate) mod tunnel;
