//! The command `fairwave`.

fn main() {}
