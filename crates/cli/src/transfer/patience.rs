//! For how long a transfer comes back by itself.

use fairwave_units::Duration;

use crate::simulate::quantity;

#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Patience {
    /// Connect again when the connection or the other end is lost, for so long after the last bytes that
    /// came; "0 s" is not at all
    #[arg(long, value_name = "TIME", value_parser = quantity::<Duration>, default_value = "10 min")]
    pub(crate) retry: Duration,
}
