//! How two hosts open a session.
//!
//! ```text
//! initiator                                                     responder
//!   hello (1200 bytes, MAC from the ticket's secret)      ->      wrong MAC: silence
//!                                                         <-      cookie: what proves the address, 33 bytes; no state
//!   hello, Noise's first message with the cookie in it    ->      Noise; an entry in the half-open table
//!                                                         <-      reply; or refusal, under seal, and no state
//!   any packet of the session                             ->      the session is open; the application is asked
//! ```
//!
//! The [`Initiator`] is one attempt, the [`Responder`] answers for a host. Both take datagrams and the time, and hand
//! out datagrams; what they take from cryptography comes in through [`InitiatorCrypto`] and [`ResponderCrypto`], which
//! a host fills with Noise and a simulation with [`insecure`].
//!
//! Whatever is lost, the initiator repeats; whatever is repeated changes nothing. To an address that has not shown a
//! cookie the responder sends 33 bytes for each 1200 that came from it, and keeps nothing. A hello that was recorded is
//! one of those: it has the cookie of another time and place, and nobody without the ticket's secret can put in the one
//! of now.

mod crypto;
mod established;
pub(crate) mod handshakes;
mod initiator;
pub mod insecure;
mod prefix;
mod refusals;
mod resets;
mod responder;

pub use crypto::{Crypto, InitiatorCrypto, ResponderCrypto};
pub use established::{Established, HandshakeTerms};
pub use initiator::{AttemptProgress, HandshakeError, Initiator};
pub use prefix::Prefix;
pub use responder::{
    Answered, HALF_OPEN_LASTS, HalfOpen, Incoming, MAX_HALF_OPEN, PendingVisit, Responder, SessionRequest,
};

#[cfg(test)]
pub(crate) use resets::MAX_RESETS;

#[cfg(test)]
mod tests;
