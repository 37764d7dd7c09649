//! The bytes of a transfer on their way: what is requested next, and what arrived.

pub(crate) mod buffer;
pub(crate) mod fetch_window;
pub(crate) mod parcel;
pub(crate) mod pool;
pub(crate) mod results_feed;
pub(crate) mod taken_file;
pub(crate) mod taking_end;
