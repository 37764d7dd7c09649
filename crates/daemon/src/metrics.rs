//! What can be seen of a machine, for programs and people that ask by HTTP.
//!
//! One small server of four pages: `/metrics` in Prometheus' text format, `/` the live page, `/events` what feeds it
//! (server-sent events), `/status.json` one look. It answers GET alone, from memory, and every answer ends its
//! connection. Whoever reaches its address may ask: so it stands at the loopback address unless another one is said,
//! and says of sessions neither their peers nor what they are about.

mod address;
mod head;
mod server;
mod shown;
mod text;

pub use address::{MetricsAddress, MetricsAddressError};
pub use server::{MetricsServer, serve};
pub use text::prometheus_text;
