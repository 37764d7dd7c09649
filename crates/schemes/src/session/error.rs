//! Options that contradict each other.

use thiserror::Error;

/// Error of making a controller.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RuleError {
    /// The name is not that of a window-based session rule.
    #[error("\"{0}\" is not a window-based session rule")]
    Unknown(String),
    /// HighSpeed TCP's line has to fall: a larger window at a lower loss rate.
    #[error(
        "hstcp: high_window {high_window} at loss rate high_p = {high_p} must be above low_window {low_window}, and \
         high_p below TCP's loss rate there, {low_p}"
    )]
    HighSpeedLine {
        /// The low window in packets.
        low_window: f64,
        /// TCP's loss rate there.
        low_p: f64,
        /// The high window in packets.
        high_window: f64,
        /// The loss rate there.
        high_p: f64,
    },
}
