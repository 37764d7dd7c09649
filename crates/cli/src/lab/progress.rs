//! A bar on stderr for runs that take long, where a person watches.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::common::terminal;

/// Runs shorter than this show no bar.
const PATIENCE: Duration = Duration::from_millis(700);

/// Progress through work that is counted in steps.
pub(crate) struct StepProgress {
    bar: ProgressBar,
    begin: Instant,
}

impl StepProgress {
    /// A bar for `steps` steps, which stays away if `is_quiet` or if nobody watches.
    pub(crate) fn new(steps: u64, is_quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        // Known to be well-formed; the library's own style is as good.
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {percent:>3} %  {elapsed} elapsed, {eta} left") {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        if is_quiet || !terminal::is_watched() {
            bar.finish();
        }
        Self { bar, begin: Instant::now() }
    }

    /// Counts steps that are done. From any thread.
    pub(crate) fn add(&self, steps: u64) {
        if self.bar.is_finished() {
            return;
        }
        self.bar.inc(steps);
        if self.bar.is_hidden() && self.begin.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        }
    }

    /// Does something that writes to the terminal while the bar is away.
    pub(crate) fn beside<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// Takes the bar away, before anything else is written.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
