//! The first claim and grant, which a responder sends before the session opens.

use super::{Full, Reader, Writer};

/// The first claim and the first grant of a session, ahead of it, in bit/s; zero means none. At the end of an answer as
/// two varints, if either is set: a peer that knows neither stops before them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// The claim that the responder's source would make to the initiator's sink.
    pub claim_bps: u64,
    /// The rate that the responder's sink promises the initiator's source.
    pub promise_bps: u64,
}

impl Ahead {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let mut bps = || reader.varint("a rate ahead").unwrap_or(0);
        let claim_bps = bps();
        Self { claim_bps, promise_bps: bps() }
    }

    pub(super) fn write(self, writer: &mut Writer<'_>) -> Result<(), Full> {
        if self == Self::default() {
            return Ok(());
        }
        writer.varint(self.claim_bps)?;
        writer.varint(self.promise_bps)
    }
}
