//! `-`: standard input as a source, and standard output as a destination.
//!
//! Both go through a file in the directory for temporary files: a transfer needs the length of what it sends, and hands
//! on nothing that is not verified.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::common::failure::{CommandFailure, Done, plain};
use crate::common::interrupt;
use crate::common::output_args::OutputArgs;

/// Name of standard input, in a directory.
const INPUT: &str = "stdin";
/// Name of the file whose content goes to standard output.
const OUTPUT: &str = "stdout";
const COPIED_BYTES: usize = 1 << 20;
/// Max delay until an interrupt is noticed.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
const HINT: &str = "set TMPDIR to a directory with room for the whole stream";

/// Directories of pipes: an interrupted command removes them.
static OPEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A private directory for the content of a pipe, removed at the end.
pub(crate) struct PipeFile {
    directory: PathBuf,
}

/// Removes the directories of pipes: the command ends early.
pub(crate) fn discard_all() {
    let all = std::mem::take(&mut *OPEN.lock().unwrap_or_else(PoisonError::into_inner));
    for directory in &all {
        let _ = fs::remove_dir_all(directory);
    }
}

/// Whether a word is standard input or output.
pub(crate) fn is_pipe(word: impl AsRef<OsStr>) -> bool {
    word.as_ref() == "-"
}

impl PipeFile {
    fn new() -> Result<Self, CommandFailure> {
        let place = std::env::temp_dir();
        let made = getrandom::u64().map_err(io::Error::from).and_then(|number| {
            let directory = place.join(format!("fairwave-{number:016x}"));
            // Known before it exists: an interrupt in between finds it.
            OPEN.lock().unwrap_or_else(PoisonError::into_inner).push(directory.clone());
            DirBuilder::new().mode(0o700).create(&directory).map(|()| directory)
        });
        let directory = made.map_err(|error| {
            CommandFailure::usage(format!("{}: cannot write: {}", place.display(), plain(&error)), HINT)
        })?;
        Ok(Self { directory })
    }

    /// The sources of a call with the content of standard input in place of `-`, if that is the source.
    pub(crate) fn of_input(command: &str, paths: &mut [PathBuf]) -> Result<Option<Self>, CommandFailure> {
        if !paths.iter().any(is_pipe) {
            return Ok(None);
        }
        let [path] = paths else {
            let message = format!("{command}: stdin (-) is copied by itself, and {} sources were given", paths.len());
            return Err(CommandFailure::usage(message, "copy the others with a second call"));
        };
        let file = Self::new()?;
        *path = file.directory.join(INPUT);
        let failed = |error: &io::Error| CommandFailure::Run(format!("stdin: {}\nhint: {HINT}", plain(error)));
        let copied = File::create(&path).and_then(|mut to| copy_until_interrupted(&mut to));
        if copied.map_err(|error| failed(&error))? {
            Ok(Some(file))
        } else {
            Err(CommandFailure::Interrupted("stdin: interrupted before its end; nothing was sent".to_owned()))
        }
    }

    /// A place for a file that goes to standard output, which `to` becomes. `count`: the number of sources, if it is
    /// known.
    pub(crate) fn for_output(
        command: &str,
        count: Option<usize>,
        output: OutputArgs,
        to: &mut PathBuf,
    ) -> Result<Self, CommandFailure> {
        if output.json {
            let message = format!("{command}: --json and the file would both go to stdout (-)");
            return Err(CommandFailure::usage(message, "name a file as the destination"));
        }
        if let Some(count) = count.filter(|count| *count != 1) {
            let message = format!("{command}: stdout (-) takes one file, and {count} sources were given");
            return Err(CommandFailure::usage(message, "name one file, or a directory as the destination"));
        }
        let file = Self::new()?;
        *to = file.directory.join(OUTPUT);
        Ok(file)
    }

    /// Copies the file to standard output, when it is complete.
    pub(crate) fn write_out(&self) -> Done {
        // Its reader may take any time.
        interrupt::be_abrupt();
        let failed = |error: &io::Error| CommandFailure::writing(error);
        let mut from = match File::open(self.directory.join(OUTPUT)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let message = "stdout (-): no file was copied\nhint: --max-size, --exclude and the like leave none";
                return Err(CommandFailure::Run(message.to_owned()));
            }
            opened => opened.map_err(|error| failed(&error))?,
        };
        let mut to = io::stdout().lock();
        io::copy(&mut from, &mut to).and_then(|_| to.flush()).map_err(|error| failed(&error))
    }
}

impl Drop for PipeFile {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Copies standard input; returns whether it reached its end.
fn copy_until_interrupted(to: &mut File) -> io::Result<bool> {
    interrupt::be_gentle();
    let (mut room, mut from) = (vec![0; COPIED_BYTES], io::stdin().lock());
    while !interrupt::is_asked() {
        let stdin = io::stdin();
        let mut asked = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut asked, Some(&TICK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        let count = from.read(&mut room)?;
        if count == 0 {
            interrupt::be_abrupt();
            return Ok(true);
        }
        to.write_all(&room[..count])?;
    }
    Ok(false)
}
