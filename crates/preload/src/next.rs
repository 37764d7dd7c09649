//! The functions that this library stands before.

use std::ffi::{CStr, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{c_int, sockaddr, socklen_t};

type Connect = unsafe extern "C" fn(c_int, *const sockaddr, socklen_t) -> c_int;
type GetPeerName = unsafe extern "C" fn(c_int, *mut sockaddr, *mut socklen_t) -> c_int;

static CONNECT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static GET_PEER_NAME: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// `connect` of the next library that has one: the C library, or another that was loaded before it.
///
/// # Safety
/// As of `connect(2)`.
pub(crate) unsafe fn connect(descriptor: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    let Some(found) = find(&CONNECT, c"connect") else { return missing() };
    // SAFETY: in the C library the symbol of this name is a function of this type.
    let connect = unsafe { transmute::<*mut c_void, Connect>(found) };
    // SAFETY: the caller's promise.
    unsafe { connect(descriptor, address, length) }
}

/// `getpeername` of the next library that has one.
///
/// # Safety
/// As of `getpeername(2)`.
pub(crate) unsafe fn getpeername(descriptor: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    let Some(found) = find(&GET_PEER_NAME, c"getpeername") else { return missing() };
    // SAFETY: in the C library the symbol of this name is a function of this type.
    let getpeername = unsafe { transmute::<*mut c_void, GetPeerName>(found) };
    // SAFETY: the caller's promise.
    unsafe { getpeername(descriptor, address, length) }
}

fn find(known: &AtomicPtr<c_void>, name: &CStr) -> Option<*mut c_void> {
    let mut found = known.load(Ordering::Relaxed);
    if found.is_null() {
        // SAFETY: the name ends with a zero, and the handle is one that dlsym knows.
        found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        // Concurrent callers find the same.
        known.store(found, Ordering::Relaxed);
    }
    (!found.is_null()).then_some(found)
}

fn missing() -> c_int {
    set_errno(libc::ENOSYS);
    -1
}

/// The last error.
pub(crate) fn errno() -> c_int {
    // SAFETY: the C library gives each thread a place for it, for as long as the thread lives.
    unsafe { *libc::__errno_location() }
}

pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno }
}
