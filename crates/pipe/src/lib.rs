//! A session as a byte stream each way, with the stream descriptor of a program at each end.
//!
//! A [`Pump`] is one thread that moves the bytes of all pipes of a process: what a program writes into its descriptor
//! comes out of the one at the other end, in order, and the ends of both streams as well (half-closed as with TCP).
//! Read [`Pipe`] first, and then [`Watch`], which receives its events.
//!
//! It does not depend on addresses or on the type of descriptor: a TCP connection, a Unix socket. Both ends hold a
//! bounded number of bytes ([`PipeOptions`]). A cut stream never looks like one that ended: the end carries the
//! stream's length, and a session that is over before both ends know that all was taken is a cut.
//!
//! ```
//! use std::io::{Read, Write};
//! use std::os::unix::net::UnixStream;
//! use std::sync::Arc;
//!
//! use fairwave_host::{ConnectOptions, Endpoint, EndpointConfig, Identity, Keyring, Terms, ShareId, Validity};
//! use fairwave_pipe::{PipeOptions, Pump, greeting};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = EndpointConfig { listen: Some("127.0.0.1:0".parse()?), ..EndpointConfig::default() };
//! let (server, client) = (Endpoint::bind(&config)?, Endpoint::bind(&config)?);
//! let keyring = Arc::new(Keyring::in_memory(Identity::random()?, ShareId(1)));
//! let pump = Pump::start()?;
//!
//! // The end that is called: one descriptor for its session.
//! let (theirs, mut answering) = UnixStream::pair()?;
//! let (pipe, handler) = pump.pipe(PipeOptions::default(), Box::new(()));
//! pipe.attach(theirs.into());
//! let mut handler = Some(handler);
//! server.listen(Arc::clone(&keyring), Box::new(move |_| Ok((Terms::default(), handler.take().unwrap()))));
//! let ticket = keyring.issue(Validity { lasts_s: None, is_once: false }, vec![server.local_addr()])?;
//!
//! // The end that calls.
//! let (ours, mut asking) = UnixStream::pair()?;
//! let (pipe, handler) = pump.pipe(PipeOptions::default(), Box::new(()));
//! pipe.attach(ours.into());
//! let options =
//!     ConnectOptions { sends: true, receives: true, greeting: greeting(b""), options: Terms::default() };
//! client.connect(&ticket, options, handler)?;
//!
//! asking.write_all(b"ping")?;
//! let mut bytes = [0; 4];
//! answering.read_exact(&mut bytes)?;
//! assert_eq!(&bytes, b"ping");
//! # Ok(())
//! # }
//! ```

#![cfg_attr(test, allow(non_snake_case, clippy::single_range_in_vec_init))]

mod descriptor_state;
mod direct;
mod end;
mod greeting;
mod handler;
mod incoming;
mod moves;
mod options;
mod outgoing;
mod pipe;
mod pump;
mod room;
mod spares;
mod streams;
mod watch;

pub use direct::Given;
pub use greeting::{greeting, read_greeting};
pub use options::{OPENS_WITHIN, PipeOptions};
pub use pipe::{Pipe, PipeStatus};
pub use pump::Pump;
pub use watch::{Watch, reset};
