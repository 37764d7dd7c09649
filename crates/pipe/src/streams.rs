//! The streams of a pipe's session.
//!
//! A pipe has the same two streams in each direction. A sink requests the bytes of [`BYTES`] some way ahead of what it
//! has taken. A range that its source refuses as beyond the end ([`VoidReason::Shrank`](fairwave_host::VoidReason))
//! gives the stream's length: that is its FIN.
//!
//! [`TAKEN`] holds no bytes. A sink that has taken the first `n` bytes requests byte `n` of it, and its source refuses
//! that at once: so the source knows which bytes to free, and a sink repeats a lost report, as every request. An
//! acknowledgement of packets is not enough: the bytes may not have been taken. A sink that has taken all, and
//! delivered the end to its application, reports one byte more than the stream has.

/// The bytes themselves.
pub(crate) const BYTES: u32 = 1;
/// How many of them the sink has taken. A lower stream's requests go first.
pub(crate) const TAKEN: u32 = 0;
