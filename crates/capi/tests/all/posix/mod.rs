//! Each case beside a pair of TCP sockets: what calls give is the same.

#![allow(non_snake_case, unsafe_code, reason = "C's calls take pointers")]

mod api;
mod calls;
mod cases;
mod forked;
mod order;
mod random;
