//! The end of a bridge next to the server.

use std::io::{self, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use fairwave_host::{Accept, Judge, Refusal, Terms, Visitor};
use fairwave_pipe::{Pipe, PipeOptions, Pump};
use rustix::io::Errno;
use rustix::net::sockopt;

use crate::connection::{Counted, Follower, Tell, prepare};
use crate::hello::BridgeHello;
use crate::preamble::answer;

/// Connections at once, each with a descriptor; and dials at once, each with a thread.
pub const MAX_CONNECTIONS: usize = 1024;
/// Timeout of dialling one address: Linux's default is two minutes.
const DIALS_FOR: Duration = Duration::from_secs(10);

/// Options of a far end.
#[derive(Clone)]
pub struct FarOptions {
    /// The server: an address or a name, and a port. Nothing else can be reached.
    pub to: String,
    /// This end node's options for each session.
    pub session: Terms,
    /// Memory limits of a connection.
    pub pipe: PipeOptions,
}

/// Dials a server for each session that holders of a ticket open.
pub struct Far {
    options: FarOptions,
    pump: Pump,
    tell: Tell,
    count: Arc<AtomicUsize>,
    /// Dials that are under way, also those whose session is over by now.
    dials: Arc<AtomicUsize>,
}

impl Far {
    /// Uses a pump for the bytes; `tell` prints errors to the user, and must not block.
    pub fn new(options: FarOptions, pump: Pump, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { options, pump, tell: Arc::new(tell), count: Arc::default(), dials: Arc::default() }
    }

    /// Which sessions are let in: those of bridges.
    pub fn judge(&self) -> Judge {
        let session = self.options.session;
        Box::new(move |visitor| hello(visitor).map(|_| session))
    }

    /// Handles them: a connection for each session.
    pub fn accept(&self) -> Accept {
        let (options, pump, tell) = (self.options.clone(), self.pump.clone(), Arc::clone(&self.tell));
        let (count, dials) = (Arc::clone(&self.count), Arc::clone(&self.dials));
        Box::new(move |visitor| {
            let wants_answer = hello(visitor)?.wants_answer;
            let counted = Counted::new(&count, MAX_CONNECTIONS).ok_or(Refusal::NoRoom)?;
            let dialling = Counted::new(&dials, MAX_CONNECTIONS).ok_or(Refusal::NoRoom)?;
            let name = format!("{} for {}", options.to, visitor.from);
            let follower = Follower::new(name, Arc::clone(&tell), counted);
            let (pipe, handler) = pump.pipe(options.pipe, Box::new(follower));
            let dial = Dial { to: options.to.clone(), wants_answer, tell: Arc::clone(&tell) };
            // A server may be slow to answer, and the network thread must not wait.
            let dialled = std::thread::Builder::new().name("fairwave-dial".to_owned()).spawn(move || {
                dial.connect(&pipe);
                drop(dialling);
            });
            dialled.map_err(|_| Refusal::NoRoom)?;
            Ok((options.session, handler))
        })
    }
}

fn hello(visitor: &Visitor<'_>) -> Result<BridgeHello, Refusal> {
    let hello = BridgeHello::read(visitor.greeting).ok_or(Refusal::Purpose)?;
    if !visitor.sends || !visitor.receives {
        return Err(Refusal::Direction);
    }
    if visitor.sessions >= MAX_CONNECTIONS { Err(Refusal::NoRoom) } else { Ok(hello) }
}

/// A server to be dialled for a session.
struct Dial {
    to: String,
    wants_answer: bool,
    tell: Tell,
}

impl Dial {
    fn connect(&self, pipe: &Pipe) {
        let dialled = dial(&self.to, DIALS_FOR).and_then(|stream| {
            prepare(&stream)?;
            // A server that is silently gone is detected, as by a direct client.
            sockopt::set_socket_keepalive(&stream, true)?;
            Ok(stream)
        });
        match dialled {
            Ok(stream) if self.wants_answer => pipe.attach_after(&answer(0), stream.into()),
            Ok(stream) => pipe.attach(stream.into()),
            Err(error) => {
                (self.tell)(&format!("{}: {error}", self.to));
                if !self.wants_answer || Self::refuse(pipe, &error).is_err() {
                    pipe.cut();
                }
            }
        }
    }

    /// Says why, and ends both ways.
    fn refuse(pipe: &Pipe, error: &io::Error) -> io::Result<()> {
        let errno = error.raw_os_error().and_then(|errno| u32::try_from(errno).ok());
        let (mut said, given) = UnixStream::pair()?;
        said.write_all(&answer(errno.unwrap_or(Errno::HOSTUNREACH.raw_os_error().cast_unsigned())))?;
        pipe.attach(given.into());
        Ok(())
    }
}

/// The first of its addresses that answers.
fn dial(to: &str, within: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no address found");
    for address in to.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, within) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::atomic::Ordering;

    use fairwave_host::TicketId;
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};

    use super::*;

    /// A server that has as many who wait as it may: it answers nobody.
    fn silent_server() -> (impl Sized, SocketAddr) {
        let server = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&server, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        listen(&server, 0).unwrap();
        let at = SocketAddr::try_from(getsockname(&server).unwrap()).unwrap();
        let waits = TcpStream::connect(at).unwrap();
        ((server, waits), at)
    }

    fn far(to: SocketAddr) -> Far {
        let options = FarOptions { to: to.to_string(), session: Terms::default(), pipe: PipeOptions::default() };
        Far::new(options, Pump::start().unwrap(), |_| {})
    }

    /// A session opens and ends at once: without its handler it is over.
    fn come(accept: &mut Accept) -> Result<(), Refusal> {
        let greeting = BridgeHello { wants_answer: true }.greeting();
        let visitor = Visitor {
            from: "192.0.2.7:1".parse().unwrap(),
            ticket: TicketId(7),
            greeting: &greeting,
            sends: true,
            receives: true,
            sessions: 0,
            one_use: None,
            goes_on_since_unix_s: None,
        };
        accept(&visitor).map(drop)
    }

    #[test]
    fn accept__who_leaves_while_his_server_is_dialled_leaves_no_more_dials_than_there_may_be() {
        let (_server, at) = silent_server();
        let far = far(at);
        let mut accept = far.accept();
        let _others: Vec<_> = (4..MAX_CONNECTIONS).map(|_| Counted::new(&far.dials, MAX_CONNECTIONS)).collect();
        for number in 0..4 {
            assert_eq!(come(&mut accept), Ok(()), "{number}");
            fairwave_testing::wait_for("no session is counted", || far.count.load(Ordering::SeqCst) == 0);
        }
        assert_eq!(come(&mut accept), Err(Refusal::NoRoom));
    }

    #[test]
    fn accept__connections_are_no_more_than_there_may_be() {
        let (_server, at) = silent_server();
        let far = far(at);
        let mut accept = far.accept();
        let mut others: Vec<_> = (0..MAX_CONNECTIONS).map(|_| Counted::new(&far.count, MAX_CONNECTIONS)).collect();
        assert_eq!((MAX_CONNECTIONS, come(&mut accept)), (1024, Err(Refusal::NoRoom)));
        assert_eq!(far.dials.load(Ordering::SeqCst), 0, "nothing is dialled for it");
        others.pop();
        assert_eq!(come(&mut accept), Ok(()));
    }

    #[test]
    fn dial__gives_up_a_server_that_does_not_answer() {
        assert_eq!(DIALS_FOR, Duration::from_secs(10));
        let (_server, at) = silent_server();
        let error = dial(&at.to_string(), Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
