//! Parcels that are asked for, as far as the coordinator has to do with them.

use std::collections::HashSet;

use crossbeam_channel::{Receiver, Sender};
use fairwave_host::Session;

use super::parts::{KeptParts, Parts};
use crate::take::disk::disk_state::DiskState;
use crate::take::disk::quota::Quota;
use crate::take::fetch::parcel::Parcel;
use crate::take::fetch::pool::BufferPool;
use crate::take::resume::key::TemporaryKey;
use crate::take::resume::temps::Temps;
use crate::transfer::memory::Holder;

/// Parcels that are asked for: the sink has them until they are filled.
pub(super) struct OpenParcels {
    expected: Sender<Parcel>,
    /// Those that the session ended before.
    expects: Receiver<Parcel>,
    /// Those that the sink had when the session ended.
    open: Vec<Parcel>,
    /// Parts of incomplete blocks that an earlier session left.
    parts: Parts,
    pool: BufferPool,
}

impl OpenParcels {
    pub(super) fn new(expected: Sender<Parcel>, expects: Receiver<Parcel>, pool: BufferPool) -> Self {
        Self { expected, expects, open: Vec::new(), parts: Parts::default(), pool }
    }

    /// Resumes from the parts of incomplete blocks that an earlier session left, up to `most_bytes`.
    pub(super) fn open_parts(&mut self, temps: &Temps, most_bytes: u64, quota: Option<&Quota>, holder: Holder) {
        self.parts = Parts::open(temps, most_bytes, holder);
        if quota.is_some() {
            // The blocks that they become parts of need their room.
            self.parts.remove(temps, quota);
        }
    }

    /// Removes the parts of an earlier session, so that no later one reads them.
    pub(super) fn forget_parts(&mut self, disk: &DiskState) {
        self.parts.remove(&disk.temps, disk.quota.as_ref());
    }

    /// Asks for what is not there of a parcel: how many bytes an earlier session left of it.
    pub(super) fn ask(&mut self, session: &Session, mut parcel: Parcel) -> u64 {
        let recalled_bytes = self.parts.fill(&mut parcel, &self.pool);
        let (stream, records) = (parcel.record_stream(), parcel.wanted_records().clone());
        let (parts, tree) = (parcel.wanted_bytes(), parcel.stream());
        // The receiver of the bytes must know of it before they can arrive.
        let _ = self.expected.send(parcel);
        session.want(stream, records);
        for part in parts {
            session.want(tree, part);
        }
        recalled_bytes
    }

    /// The session is over: these were open at the sink.
    pub(super) fn on_closed(&mut self, open: Vec<Parcel>) {
        self.open = open;
    }

    /// Keeps the data of incomplete blocks, up to a limit, for the next session, after all work has ended. If the
    /// `missing` files are known, it keeps only the data of these and of the parcels.
    pub(super) fn keep(
        &mut self,
        missing: Option<HashSet<TemporaryKey>>,
        disk: &DiskState,
        most_bytes: u64,
    ) -> KeptParts {
        // These were asked for, and nothing of them has come.
        self.open.extend(self.expects.try_iter());
        if let Some(mut missing) = missing {
            missing.extend(self.open.iter().flat_map(|parcel| &parcel.pieces).map(|piece| piece.item.key));
            self.parts.retain(&missing);
        }
        let kept_parts = self.parts.keep(&self.open, disk, most_bytes);
        tracing::debug!(
            parcels = self.open.len(),
            bytes = kept_parts.bytes,
            kept = kept_parts.kept,
            "keeping the data of incomplete blocks"
        );
        kept_parts
    }
}
