//! Lines of a far end that copies by itself, on its stderr: those for stdout have a mark.

use std::io::{self, BufRead, BufReader, Read};
use std::process::ChildStderr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::common::failure::{CommandFailure, Done};
use crate::common::output::print_json_text;
use crate::common::terminal::{MARK, flush, print, say, tamed};

/// Maximum length of a line, in bytes. Longer ones are cut: the longest event has a path of 4096 bytes, escaped.
const MAX_LINE_BYTES: u64 = 64 << 10;
/// Waiting time for the last lines. A connection that ssh shares with later calls may hold stderr for hours.
const LAST_WITHIN: Duration = Duration::from_secs(2);

/// Destination of a far end's lines.
pub(super) struct FarLines {
    is_json: bool,
    /// Whether nobody reads stdout.
    is_unread: AtomicBool,
    /// Each ends when its stderr does.
    streams: Mutex<Vec<Receiver<()>>>,
}

impl FarLines {
    /// With `is_json`, lines for stdout are JSON objects.
    pub(super) fn new(is_json: bool) -> Arc<Self> {
        Arc::new(Self { is_json, is_unread: AtomicBool::new(false), streams: Mutex::default() })
    }

    /// Prints what comes from this stderr. Without a thread it is closed.
    pub(super) fn pass_on(self: &Arc<Self>, stderr: ChildStderr) {
        let (end, ended) = channel();
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).push(ended);
        let lines = Arc::clone(self);
        let _ = std::thread::Builder::new().spawn(move || {
            let _end = end;
            // It ends with its process.
            let _ = lines.print_all(BufReader::new(stderr));
        });
    }

    /// Waits until the lines of far ends that have ended are printed.
    pub(super) fn finish(&self) {
        let until = Instant::now() + LAST_WITHIN;
        for stream in &*self.streams.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = stream.recv_timeout(until.saturating_duration_since(Instant::now()));
        }
    }

    /// Whether nobody reads stdout.
    pub(super) fn is_unread(&self) -> bool {
        self.is_unread.load(Ordering::SeqCst)
    }

    fn print_all(&self, mut from: impl BufRead) -> io::Result<()> {
        let mut line = Vec::new();
        while from.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? > 0 {
            self.print_line(line.strip_suffix(b"\n").unwrap_or(&line));
            line.clear();
        }
        Ok(())
    }

    fn print_line(&self, line: &[u8]) {
        let (marked, line) = (line.first() == Some(&MARK), line.strip_prefix(&[MARK]).unwrap_or(line));
        let text = String::from_utf8_lossy(line);
        if !marked {
            return say(&text);
        }
        let done = if self.is_json { print_object(&text) } else { print(&format!("{}\n", tamed(&text))) };
        if matches!(done.and_then(|()| flush()), Err(CommandFailure::Unread)) {
            self.is_unread.store(true, Ordering::SeqCst);
        }
    }
}

/// Prints a line of JSON, if it is one.
fn print_object(text: &str) -> Done {
    // JSON allows control characters between its tokens, but these lines never contain any.
    if serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).is_err() || text.contains(['\t', '\r'])
    {
        say(text);
        return Ok(());
    }
    print_json_text(text)
}
