//! What the streams of a pipe's session hold.
//!
//! A pipe has the same two streams in each direction. A sink wants the bytes of [`BYTES`] some way ahead of what it has
//! taken. A range that its source refuses as beyond the end ([`VoidReason::Shrank`](fairwave_host::VoidReason)) says how
//! long the stream is: that is its FIN.
//!
//! [`TAKEN`] holds no bytes. A sink that has taken the first `n` bytes wants byte `n` of it, and its source refuses that
//! at once: so the source knows what it need not keep any more, and a sink whose word gets lost says it again, as with
//! every request. A report that a packet has arrived would not do: it says nothing about what became of the bytes. A
//! sink that has taken all, and told its application of the end, says one byte more than the stream has.

/// The bytes themselves.
pub(crate) const BYTES: u32 = 1;
/// How many of them the sink has taken. A lower stream's requests go first.
pub(crate) const TAKEN: u32 = 0;
