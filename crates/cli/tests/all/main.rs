//! Integration tests of the command, in one binary: one link, and tests of all files share the processors.

mod command;
mod node;
mod testbed;
