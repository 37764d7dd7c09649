//! Output of transfers on stderr: bars on a terminal, else plain lines; and on stdout for programs.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::log;
use super::output_args::OutputArgs;
use crate::common::terminal;

/// Stderr, with bars at its lower edge.
pub(crate) struct Screen {
    multi: MultiProgress,
    pub(crate) output: OutputArgs,
}

impl Screen {
    pub(crate) fn new(output: OutputArgs) -> Self {
        let is_drawn = terminal::is_watched() && !output.quiet && !output.json;
        let target = if is_drawn { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() };
        let multi = MultiProgress::with_draw_target(target);
        log::start(&multi, output);
        Self { multi, output }
    }

    /// Whether bars are drawn.
    pub(crate) fn has_bars(&self) -> bool {
        !self.multi.is_hidden()
    }

    /// Says something to people, unless they want quiet.
    pub(crate) fn note(&self, text: &str) {
        if !self.output.quiet {
            self.multi.suspend(|| terminal::note(text));
        }
    }

    /// Says something that is no more than what they see anyway.
    pub(crate) fn say(&self, text: &str) {
        if !self.output.quiet {
            self.multi.suspend(|| terminal::say(text));
        }
    }

    /// Says what is wrong.
    pub(crate) fn complain(&self, text: &str) {
        self.multi.suspend(|| terminal::complain(text));
    }

    /// A bar for a transfer; hidden without a terminal.
    pub(crate) fn bar(&self) -> ProgressBar {
        let bar = self.multi.add(ProgressBar::no_length());
        set_style(&bar, false);
        bar
    }

    /// Takes a bar away.
    pub(crate) fn remove(&self, bar: &ProgressBar) {
        bar.finish_and_clear();
        self.multi.remove(bar);
    }
}

/// A bar shows a share once the whole is known.
pub(crate) fn set_style(bar: &ProgressBar, is_known: bool) {
    let template = if is_known { "{bar:16} {percent:>3} %  {wide_msg}" } else { "{spinner}  {wide_msg}" };
    // Known to be well-formed; the library's own style is as good.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
    }
}
