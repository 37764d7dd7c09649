//! A constant rate without a rule.

use crate::scheme::entry::{self, Model, Scheme};
use crate::scheme::option::{TypedOption, flag};

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = Scheme {
    models: &[Model::Packet],
    options: &[DITHER.spec()],
    ..entry::session("cbr", "constant bit rate: sends at its demand regardless of loss", "")
};
/// Whether packets leave at random moments of their periods.
pub const DITHER: TypedOption<bool> = flag("dither", "true", "each packet leaves at a random moment of its period");
