//! Retry time of a transfer.

use crate::common::quantity::quantity;
use fairwave_units::Duration;

#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Patience {
    /// Keep reconnecting this long after the last byte arrived; "0 s" for never
    #[arg(long, value_name = "TIME", value_parser = quantity::<Duration>, default_value = "10 min")]
    pub(crate) retry: Duration,
}
