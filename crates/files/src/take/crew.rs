//! The threads that a taker has at its disk.

use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::Sender;

use super::desk::Desk;
use super::group::GroupJob;

/// The threads at the disk.
pub(super) struct Crew {
    pub(super) desk: Arc<Desk>,
    pub(super) group: Sender<GroupJob>,
    pub(super) threads: Vec<JoinHandle<()>>,
}

pub(super) const MOST_WORKERS: usize = 4;
