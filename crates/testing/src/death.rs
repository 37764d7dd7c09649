//! Processes that die at a chosen system call.

#![allow(unsafe_code, reason = "seccomp(2) and its ioctls have no safe interface")]

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

use crate::Process;

/// System calls that change a file system. Of `openat`, those that may create a file.
const CHANGING: [libc::c_long; 17] = [
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_copy_file_range,
    libc::SYS_mkdirat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_utimensat,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_syncfs,
];
/// Offsets in `struct seccomp_data`: the number of the call, and the low half of its third argument.
const NUMBER_AT: u32 = 0;
const FLAGS_AT: u32 = 32;
/// `_IOWR('!', 0, struct seccomp_notif)` and `_IOWR('!', 1, struct seccomp_notif_resp)` of linux/seccomp.h.
const RECEIVE: u32 = 0xc050_2100;
const SEND: u32 = 0xc018_2101;
/// Time after which it is looked whether the process has ended.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Runs a command that is killed when it is about to make its `n`-th system call that changes a file system, counted
/// from 1 over all its threads. Returns its exit status if it ends before.
///
/// # Panics
/// If it cannot be run.
pub fn run_until_death(command: &mut Command, n: u64) -> Option<ExitStatus> {
    let (ours, theirs) = UnixStream::pair().expect("the system has descriptors");
    let filter = filter();
    // SAFETY: the closure makes system calls only: it allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(move || {
            let listener = listen(&filter)?;
            send(theirs.as_fd(), listener)
        });
    }
    let mut process = Process::spawn(command);
    let calls = receive(ours.as_fd());
    let mut count = 0;
    loop {
        let mut asked = [PollFd::new(&calls, PollFlags::IN)];
        let is_called =
            poll(&mut asked, Some(&LOOK)).is_ok_and(|ready| ready > 0) && asked[0].revents().contains(PollFlags::IN);
        if is_called && let Some(id) = next_call(&calls) {
            count += 1;
            if count == n {
                process.kill().expect("it is our child");
                process.wait().expect("it is our child");
                return None;
            }
            let_go(&calls, id);
        } else if let Some(status) = process.try_wait().expect("it is our child") {
            return Some(status);
        }
    }
}

/// The filter's program, see seccomp(2).
fn filter() -> Vec<libc::sock_filter> {
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let is = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let has = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
    let end = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let count = CHANGING.len() as u8;
    let mut program = vec![step(load, NUMBER_AT, 0, 0)];
    // Each goes to the report behind the rest: three steps for openat, and the allowance.
    program.extend((0..).zip(CHANGING).map(|(index, call)| step(is, call as u32, count - index + 3, 0)));
    program.push(step(is, libc::SYS_openat as u32, 0, 2));
    program.push(step(load, FLAGS_AT, 0, 0));
    program.push(step(has, libc::O_CREAT as u32, 1, 0));
    program.push(step(end, libc::SECCOMP_RET_ALLOW, 0, 0));
    program.push(step(end, libc::SECCOMP_RET_USER_NOTIF, 0, 0));
    program
}

/// Installs a filter in this process; returns the descriptor that reports its calls.
fn listen(filter: &[libc::sock_filter]) -> io::Result<i32> {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the program outlives the call, and the kernel copies it.
    let listener = unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    };
    i32::try_from(listener).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)
}

fn send(to: BorrowedFd<'_>, descriptor: i32) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    // SAFETY: it is open, and closed at exec only.
    let descriptors = [unsafe { BorrowedFd::borrow_raw(descriptor) }];
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(to, &[IoSlice::new(b"!")], &mut ancillary, SendFlags::empty())?;
    Ok(())
}

fn receive(from: BorrowedFd<'_>) -> OwnedFd {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC).expect("it was sent");
    let mut messages = ancillary.drain();
    match messages.next() {
        Some(RecvAncillaryMessage::ScmRights(mut descriptors)) => descriptors.next().expect("one was sent"),
        _ => panic!("no descriptor was sent"),
    }
}

/// The id of the next reported call; `None` if its thread has gone.
fn next_call(calls: &OwnedFd) -> Option<u64> {
    // SAFETY: zero is a value of each field, as the kernel asks for, and it writes no more than the structure.
    unsafe {
        let mut call: libc::seccomp_notif = std::mem::zeroed();
        (libc::ioctl(calls.as_raw_fd(), RECEIVE.into(), &raw mut call) == 0).then_some(call.id)
    }
}

/// Lets a reported call happen.
fn let_go(calls: &OwnedFd, id: u64) {
    let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
    let mut reply = libc::seccomp_notif_resp { id, val: 0, error: 0, flags };
    // SAFETY: the kernel only reads the structure. If the thread has gone, nothing is to be done.
    let _ = unsafe { libc::ioctl(calls.as_raw_fd(), SEND.into(), &raw mut reply) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_until_death__counts_calls_and_kills_before_one() {
        let place = std::env::temp_dir().join(format!("fairwave-death-{}", std::process::id()));
        std::fs::create_dir_all(&place).expect("there is a place for files");
        let run = |n| {
            let mut command = Command::new("sh");
            command.args(["-c", ": > a; : > b; : > c"]).current_dir(&place);
            run_until_death(&mut command, n)
        };
        assert_eq!(run(3), None);
        let exists = |name: &str| place.join(name).exists();
        assert_eq!(["a", "b", "c"].map(exists), [true, true, false]);
        assert!(run(4).is_some_and(|status| status.success()) && exists("c"));
        std::fs::remove_dir_all(&place).expect("it is ours");
    }
}
