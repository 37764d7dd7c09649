//! A program at a node: a process that lives no longer than this one.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use fairwave_wan::Space;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use crate::end_message::EndMessage;
use crate::error::Error;

/// Maximum time until an interrupt is noticed.
const PATIENCE: Duration = Duration::from_millis(50);

/// A program at a node.
pub(crate) struct Child {
    node: String,
    orders: Option<ChildStdin>,
    messages: Receiver<String>,
    pid: Option<Pid>,
    is_gone: Arc<AtomicBool>,
}

impl Child {
    /// Starts this program as the one at a node, in its space. The thread that starts it lives until it has ended: a
    /// process gets the parent-death signal at the end of that thread.
    pub(crate) fn start(space: &Arc<Space>, node: &str, command: &[String]) -> Result<Self, Error> {
        let (began, begin) = bounded(1);
        let (tell, messages) = unbounded();
        let is_gone = Arc::new(AtomicBool::new(false));
        let (space, command, gone) = (Arc::clone(space), command.to_vec(), Arc::clone(&is_gone));
        std::thread::Builder::new().name("end".into()).spawn(move || {
            let entered = space.run(|| attend(&command, &began, &tell, &gone));
            if let Err(error) = entered {
                let _ = began.send(Err(error));
            }
        })?;
        let failed = |what: String| Error::End { node: node.to_owned(), what };
        let (orders, pid) = match begin.recv() {
            Ok(Ok(begun)) => begun,
            Ok(Err(error)) => return Err(failed(format!("could not be started: {error}"))),
            Err(_) => return Err(failed("could not be started".into())),
        };
        Ok(Self { node: node.to_owned(), orders: Some(orders), messages, pid, is_gone })
    }

    /// Sends a line to the program.
    pub(crate) fn order(&mut self, line: &impl Serialize) -> Result<(), Error> {
        let failed = |what: String| Error::End { node: self.node.clone(), what };
        let mut text = serde_json::to_string(line).map_err(|error| failed(error.to_string()))?;
        text.push('\n');
        let orders = self.orders.as_mut().ok_or_else(|| failed("does not accept commands".into()))?;
        orders.write_all(text.as_bytes()).map_err(|error| failed(format!("does not listen: {error}")))
    }

    /// The next line of its output, until `deadline`; `look` is called in between, and may end the wait.
    pub(crate) fn hear(
        &self,
        deadline: Instant,
        look: &mut dyn FnMut() -> Result<(), Error>,
    ) -> Result<EndMessage, Error> {
        let failed = |what: &str| Error::End { node: self.node.clone(), what: what.to_owned() };
        loop {
            look()?;
            match self.messages.recv_timeout(PATIENCE) {
                Ok(line) => {
                    return match serde_json::from_str(&line) {
                        Ok(EndMessage::Failed(what)) => Err(failed(&format!("failed: {what}"))),
                        Ok(messages) => Ok(messages),
                        Err(_) => Err(failed(&format!("sent an unknown message: {line}"))),
                    };
                }
                Err(RecvTimeoutError::Disconnected) => {
                    // At an interrupt, the terminal has interrupted it as well.
                    look()?;
                    return Err(failed("ended early"));
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() > deadline => return Err(failed("does not respond")),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It ends by itself at the end of its input, unless it hangs.
        drop(self.orders.take());
        let Some(pid) = self.pid else { return };
        let deadline = Instant::now() + PATIENCE * 4;
        while !self.is_gone.load(Ordering::Acquire) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        if !self.is_gone.load(Ordering::Acquire) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

type Begun = std::io::Result<(ChildStdin, Option<Pid>)>;

/// Starts it, forwards its output, and waits for its end.
fn attend(command: &[String], began: &Sender<Begun>, tell: &Sender<String>, is_gone: &AtomicBool) {
    let (program, arguments) = command.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    let mut child = match Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => {
            let _ = began.send(Err(error));
            return;
        }
    };
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let begun = child.stdin.take().map(|orders| (orders, pid)).ok_or_else(|| std::io::ErrorKind::BrokenPipe.into());
    let _ = began.send(begun);
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                break;
            }
        }
    }
    let _ = child.wait();
    is_gone.store(true, Ordering::Release);
}
