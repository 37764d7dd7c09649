//! Each case next to a pair of TCP sockets: calls return the same.

#![allow(non_snake_case, unsafe_code, reason = "C's calls take pointers")]

mod api;
mod calls;
mod cases;
mod forked;
mod order;
mod random;
