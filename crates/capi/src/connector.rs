//! The thread that waits for what comes of attempts to connect.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Select, Sender, unbounded};
use fairwave_host::{ConnectError, Session};
use fairwave_pipe::Pipe;
use rustix::io::Errno as System;
use rustix::net::{RecvFlags, recv};

use crate::errno::Errno;
use crate::socket::{Socket, Stage};

/// The thread that waits for what comes of attempts.
pub(crate) struct Connector {
    attempts: Sender<Attempt>,
}

/// One that is under way.
pub(crate) struct Attempt {
    pub(crate) socket: Arc<Socket>,
    pub(crate) pipe: Pipe,
    /// Filler that prevents writes to the program's end until the session is open, bytes.
    pub(crate) filler_bytes: usize,
    pub(crate) answer: Receiver<Result<Session, ConnectError>>,
}

impl Connector {
    pub(crate) fn start() -> Result<Self, Errno> {
        let (attempts, coming) = unbounded();
        std::thread::Builder::new().name("fairwave-connect".to_owned()).spawn(move || wait(&coming))?;
        Ok(Self { attempts })
    }

    /// One more.
    pub(crate) fn watch(&self, attempt: Attempt) -> Result<(), Errno> {
        self.attempts.send(attempt).map_err(|_| Errno(libc::EIO))
    }
}

/// Waits for whatever attempt has an answer.
fn wait(coming: &Receiver<Attempt>) {
    let mut attempts: Vec<Attempt> = Vec::new();
    loop {
        let mut select = Select::new();
        select.recv(coming);
        for attempt in &attempts {
            select.recv(&attempt.answer);
        }
        let ready = select.ready();
        drop(select);
        if ready == 0 {
            attempts.extend(coming.try_iter());
            continue;
        }
        let attempt = attempts.swap_remove(ready - 1);
        let answer = attempt.answer.try_recv().unwrap_or(Err(ConnectError::Closed));
        attempt.end(&answer);
    }
}

impl Attempt {
    fn end(self, answer: &Result<Session, ConnectError>) {
        let (socket, pipe) = (self.socket, self.pipe);
        let ours = {
            let mut state = socket.state.lock();
            // The program will ask for the reason once it sees the failure.
            if let Err(error) = answer {
                socket.set_error(Errno::from(error));
            }
            state.stage = if answer.is_ok() { Stage::Connected { is_reported: false } } else { Stage::Failed };
            state.ours.take()
        };
        let Some(ours) = ours else { return };
        // Without a session its filler was not read: the program's end is reset.
        if answer.is_ok()
            && let Some(ours) = ours.give()
        {
            take_filler(&ours, self.filler_bytes);
            pipe.attach(ours);
        }
    }
}

/// Takes the filler out of the way.
fn take_filler(ours: &OwnedFd, bytes: usize) {
    let mut room = vec![0; 64 << 10];
    let mut left = bytes;
    while left > 0 {
        let most = left.min(room.len());
        match recv(ours, &mut room[..most], RecvFlags::DONTWAIT) {
            Ok((taken, _)) if taken > 0 => left -= taken,
            Err(System::INTR) => {}
            // The program has closed its end, and all that it wrote is gone.
            _ => return,
        }
    }
}
