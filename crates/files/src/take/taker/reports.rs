//! Handles the reports of the disk threads.

use std::ops::Range;
use std::sync::Arc;

use super::Taker;
use crate::format::blocks::BlockHash;
use crate::take::disk::disk_state::Report;
use crate::take::disk::free_space::FreeSpace;
use crate::take::disk::quota::Quota;
use crate::take::disk::tree::{Old, There};
use crate::take::fetch::fetch_window::WantedBlocks;
use crate::take::fetch::parcel::{ParcelBlock, ParcelKind};
use crate::take::fetch::taken_file::Temporary;
use crate::take::list::entry_error::EntryError;
use crate::take::news::Placed;

/// A block that is wrong this often is given up.
const MAX_TRIES: u32 = 8;

impl Taker {
    pub(super) fn on_worked(&mut self, report: Report) {
        if let Some(bytes) = report.parcel_bytes {
            self.flow.on_worked(bytes, report.is_check);
            let tally = self.ledger.tally();
            tally.finish(report.held_bytes);
            tally.drop_kept(report.kept_bytes);
            tally.resume_kept(report.resumed_bytes);
        } else {
            self.threads.on_done(report.is_of_holes);
        }
        self.ledger.tally().pass_over(report.hole_bytes);
        self.state.go_on();
        self.ledger.tally().write(report.written_bytes);
        for (item, error) in report.unset {
            self.plan.warn(item.path.as_bytes(), &error);
        }
        for (item, trouble) in report.failed {
            self.comparisons.end_file();
            self.plan.fail_file(&item, trouble);
        }
        if report.is_full {
            let tree = self.options.tree.clone();
            self.free = self.free.take().or_else(|| tree.map(FreeSpace::new));
            self.drop_what_does_not_fit();
        }
        if let Some(disk) = self.threads.disk().filter(|_| !report.wrong.is_empty()) {
            // If it contained parts, no later session may read them again.
            self.parcels.forget_parts(disk);
        }
        if let Some(expanded) = report.expanded {
            self.flow.on_packed(expanded.is_shorter);
            for ParcelBlock { item, block, .. } in expanded.refused.into_iter().rev() {
                let wanted = WantedBlocks::new(item, block..block + 1, ParcelKind::Blocks);
                self.flow.want_again(WantedBlocks { is_plain: true, ..wanted });
            }
        }
        for piece in report.wrong {
            self.on_wrong(piece, report.tries + 1, report.is_check);
        }
        for (piece, value) in report.checked {
            self.on_checked(&piece, value);
        }
        if let Some(item) = report.cut {
            for blocks in item.base.iter().flat_map(|base| base.take_wanted()) {
                self.flow.want(WantedBlocks::new(Arc::clone(&item), blocks, ParcelKind::Chunks));
            }
            self.drop_what_does_not_fit();
        }
        for (ParcelBlock { item, block, .. }, copies) in report.listed {
            let wanted = WantedBlocks::new(item, block..block + 1, ParcelKind::Blocks);
            self.flow.want_next(WantedBlocks { copies: Some(copies), ..wanted });
        }
        for (item, blocks) in report.rehashed {
            self.plan.prove(item, &blocks);
        }
    }

    /// Once the disk was full, what is larger than its room is not fetched in vain.
    pub(super) fn drop_what_does_not_fit(&mut self) {
        let Some(free) = &mut self.free else { return };
        free.renew();
        let left = self.options.quota.as_ref().map_or(u64::MAX, Quota::left);
        for (wanted, room) in self.flow.remove_larger(|directory| free.at(directory).min(left)) {
            if wanted.item.fail() {
                if let Some(disk) = self.threads.disk() {
                    disk.discard(&wanted.item);
                }
                let bytes = wanted.data_bytes();
                let error = if room < left {
                    EntryError::DiskFull { bytes, room }
                } else {
                    EntryError::QuotaUsedUp { bytes, room }
                };
                self.plan.fail_file(&wanted.item, error);
            }
        }
    }

    fn on_wrong(&mut self, piece: ParcelBlock, tries: u32, is_check: bool) {
        let ParcelBlock { item, block, .. } = piece;
        tracing::debug!(path = ?item.path, block, tries, "a block failed verification");
        if tries < MAX_TRIES {
            let kind = if is_check { ParcelKind::Hashes } else { ParcelKind::Blocks };
            self.flow.want_again(WantedBlocks { tries, ..WantedBlocks::new(item, block..block + 1, kind) });
        } else if item.fail() {
            if let Some(disk) = self.threads.disk() {
                disk.discard(&item);
            }
            self.comparisons.end_file();
            let offset = item.span.block_bytes(block).start - item.span.bytes.start;
            self.plan.fail_file(&item, EntryError::Forged { offset, tries: MAX_TRIES });
        }
    }

    /// Records whether a block of a file equals the existing one. When all are known it decides what to fetch.
    fn on_checked(&mut self, piece: &ParcelBlock, value: Option<BlockHash>) {
        let item = &piece.item;
        let Range { start, end } = piece.bytes();
        self.ledger.tally().compare(if value.is_some() { end - start } else { 0 });
        let Some(blocks) = self.comparisons.add(piece, value) else { return };
        let good: Vec<_> = blocks.iter().filter_map(|(block, value)| Some((*block, (*value)?))).collect();
        let first = item.span.blocks.start;
        let right =
            good.iter().map(|(block, _)| item.span.block_bytes(first + block)).map(|bytes| bytes.end - bytes.start);
        self.ledger.tally().end_comparison(right.sum());
        if item.unproven_blocks() > 0 {
            tracing::debug!(path = ?item.path, right = good.len(), of = blocks.len(), "compared what was kept");
            item.end_proof();
            self.plan.keep(Arc::clone(item), &good);
            return;
        }
        let is_as_long = matches!(item.old, Old::There(There { bytes, .. }) if bytes == item.bytes());
        if good.len() == blocks.len() && is_as_long {
            self.plan.same(item, &good);
        } else if good.is_empty() || item.is_whole() || self.plan.has_kept(item) {
            self.plan.start(Arc::clone(item));
        } else {
            self.plan.keep(Arc::clone(item), &good);
            *item.temporary() = Temporary::Copied(good);
        }
    }

    pub(super) fn on_placed(&mut self, placed: Placed) {
        if self.options.look.does_check {
            placed.items.iter().for_each(|item| self.options.verified.add(item.version));
        }
        self.plan.place(placed.files, placed.bytes);
        for item in &placed.items {
            self.plan.note_placed(item.path.as_bytes(), &item.old, item.bytes());
        }
        for (item, trouble) in placed.failed {
            self.plan.fail_file(&item, trouble);
        }
    }
}
