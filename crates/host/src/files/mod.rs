//! Files over a session: the *giver* has them and answers requests, the *taker* wants them and asks.

mod outcome;
mod progress;
mod transfer;

pub use outcome::{Ended, Failure, MOST_LISTED, Outcome};
pub use progress::{Progress, WaitsFor};
pub use transfer::{Transfer, TransferError};
