//! The source of a session: which bytes go when, and what becomes of them.

pub(crate) mod breaker;
pub(crate) mod limits;
pub(crate) mod outbound;
pub(crate) mod outstanding;
pub(crate) mod pacer;
pub(crate) mod reordering_window;
pub(crate) mod request_queue;
pub(crate) mod round_robin;
pub(crate) mod sender;
pub(crate) mod silence;
pub(crate) mod source_patience;
pub(crate) mod stall_detector;
pub(crate) mod usage;
pub(crate) mod verdict;
