//! Integration tests of the crate, in one binary: one link, and tests of all files share the processors.

mod crowd;
mod files;
mod net;
mod replayed_hellos;
mod retry;
