//! The state of a machine over HTTP.
//!
//! One small server of four pages: `/metrics` in Prometheus' text format, `/` the live page, `/events` its data
//! (server-sent events), `/status.json` one snapshot. It answers only GET, from memory, and every answer ends its
//! connection. Any client that reaches its address may read it: so it listens on the loopback address unless another is
//! given, and shows neither the peers nor the contents of sessions.

mod address;
mod head;
mod metrics_server;
mod shown;
mod text;

pub use address::{MetricsAddress, MetricsAddressError};
pub use metrics_server::{MetricsServer, serve};
pub use text::prometheus_text;
