//! Files of a machine that allows only SFTP.
//!
//! [`client`] speaks version 3 of the protocol, through russh-sftp, over a stream that ssh carries. [`tree`] lists and
//! reads what a taker fetches, in place of the files of this machine.

pub(crate) mod client;
pub(crate) mod connection;
#[cfg(test)]
mod tests;
pub(crate) mod tree;
pub(crate) mod walk;
