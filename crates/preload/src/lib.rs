//! The library that `fairwave run` loads into a program: it intercepts two functions of the C library, `connect` and
//! `getpeername`, and no other.
//!
//! A TCP connection to an address of the [`Plan`] goes to the bridge of `fairwave run` on this machine's loopback
//! instead, with a [`Preamble`] before the program's first byte; `getpeername` returns the address that the program
//! connected to. All else is left to the kernel: descriptors, epoll, fork, exec, half-closed connections, resets.
//!
//! This crate has no sessions, no tickets and no network except loopback. It allocates nothing after it was loaded and
//! takes no lock, so that it may run in a child between fork and exec.

#![cfg_attr(test, allow(non_snake_case))]
#![allow(unsafe_code, reason = "it is called from C, and calls what it stands before")]

mod address;
mod listener;
mod next;
#[allow(dead_code, reason = "`fairwave run` writes it, and so do tests")]
mod plan;
#[allow(dead_code, reason = "the bridge has the other half")]
mod preamble;
mod redirect;

use std::sync::OnceLock;

use libc::{c_int, sockaddr, socklen_t};

use plan::{PLAN_VARIABLE, Plan};

/// The redirections, from the environment at the program's start.
static PLAN: OnceLock<Option<Plan>> = OnceLock::new();

/// Reads the plan before the program's own first instruction, while there is one thread.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = {
    extern "C" fn at_start() {
        let _ = plan();
    }
    at_start
};

fn plan() -> Option<&'static Plan> {
    PLAN.get_or_init(|| std::env::var(PLAN_VARIABLE).ok().and_then(|text| text.parse().ok())).as_ref()
}

/// `connect(2)`: to an address of the plan by the bridge, to any other as ever.
///
/// # Safety
/// As of the C library's: `address` points to `length` bytes, or is null.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn connect(descriptor: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the caller's promise is the one that is asked for.
    let to = unsafe { address::read(address, length) };
    let way = plan().zip(to).and_then(|(plan, to)| Some((plan, to, plan.port_of(to.meant())?)));
    match way {
        Some((plan, to, port)) if redirect::is_tcp(descriptor) => redirect::connect(descriptor, plan, to, port),
        // SAFETY: the arguments are the caller's.
        _ => unsafe { next::connect(descriptor, address, length) },
    }
}

/// `getpeername(2)`: of a connection by the bridge the address that the program asked for.
///
/// # Safety
/// As of the C library's: `length` points to how many bytes `address` points to.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn getpeername(descriptor: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    let meant = plan().and_then(|plan| redirect::peer(descriptor, plan));
    match meant {
        // SAFETY: the caller's promise is the one that is asked for.
        Some(meant) if !address.is_null() && !length.is_null() => unsafe {
            meant.write(address, length);
            0
        },
        // SAFETY: the arguments are the caller's.
        _ => unsafe { next::getpeername(descriptor, address, length) },
    }
}
