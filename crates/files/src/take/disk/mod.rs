//! Writing, reading and flushing at the destination.

pub(crate) mod aside;
pub(crate) mod attributes;
pub(crate) mod backups;
pub(crate) mod committer;
pub(crate) mod compare;
pub(crate) mod directories;
pub(crate) mod disk_error;
pub(crate) mod disk_state;
pub(crate) mod disk_threads;
pub(crate) mod durable;
pub(crate) mod file_system;
pub(crate) mod free_space;
pub(crate) mod quota;
pub(crate) mod sparse;
pub(crate) mod sync_choice;
pub(crate) mod tree;
pub(crate) mod worker;
pub(crate) mod worker_slots;
