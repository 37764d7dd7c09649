//! The state between a descriptor and its session.

use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::OwnedFd;

use crate::spares::Spares;

/// The descriptor of a pipe, and what is between it and the session: held by the thread that moves it.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "what is known of the two directions of a descriptor")]
pub(crate) struct DescriptorState {
    pub(crate) descriptor: Option<OwnedFd>,
    /// Bytes to write to the descriptor, oldest first. None is empty.
    pub(crate) writing: VecDeque<Vec<u8>>,
    /// How much of the first of them it has taken.
    pub(crate) at: usize,
    /// Bytes that it gave and the session is to serve: passed on once for all.
    pub(crate) serve: Option<Range<u64>>,
    /// Whether it has given all that it ever gives.
    pub(crate) is_read_out: bool,
    /// Whether nobody reads what comes, though somebody writes: it is thrown away.
    pub(crate) is_deaf: bool,
    /// Whether the program takes bytes without the descriptor: then the descriptor only has a few, for polling.
    pub(crate) is_direct: bool,
    /// Whether it has that, and the program has not come since.
    pub(crate) has_token: bool,
    /// Bytes that the program took so since that was asked last.
    pub(crate) taken: usize,
}

impl DescriptorState {
    /// The first bytes of what it is taking are taken.
    pub(crate) fn pass(&mut self, spares: &Spares, bytes: usize) {
        self.at += bytes;
        while let Some(first) = self.writing.front()
            && self.at >= first.len()
        {
            self.at -= first.len();
            self.writing.pop_front().into_iter().for_each(|buffer| spares.give(buffer));
        }
    }
}
