//! Calls of many bytes go past the descriptor, those of few and the system's own do not: the order of bytes is one.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, RawFd};
use std::thread;
use std::time::Duration;

use fairwave::{g_recv, g_send};
use fairwave_testing::{Deadline, wait_for};
use libc::{MSG_DONTWAIT, MSG_NOSIGNAL, MSG_PEEK, POLLIN, POLLOUT, SHUT_RDWR, SHUT_WR};

use crate::posix::api::{Api, LIMIT_MS, stats};
use crate::posix::forked::beside_others;
use crate::posix::random::Random;

const BYTES: usize = 24 << 20;

/// The byte at a place of a stream.
fn byte(at: usize, salt: usize) -> u8 {
    ((at + salt).wrapping_mul(0x9e37_79b9) >> 13) as u8
}

/// Writes this many bytes in calls of all kinds and sizes. Blocked writes wait in `poll`, or in the call.
fn put_all(fd: RawFd, salt: usize, mut random: Random) {
    let all: Vec<u8> = (0..BYTES).map(|at| byte(at, salt)).collect();
    let mut at = 0;
    while at < BYTES {
        let most = if random.below(3) == 0 { 3000 } else { 300_000 };
        let piece = &all[at..BYTES.min(at + 1 + random.below(most) as usize)];
        let (bytes, length) = (piece.as_ptr().cast::<c_void>(), piece.len());
        let kind = random.below(6);
        // SAFETY: the buffer has this length.
        let sent = unsafe {
            match kind {
                0..3 => g_send(fd, bytes, length, MSG_NOSIGNAL),
                3 => g_send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT),
                4 => libc::write(fd, bytes, length),
                _ => libc::send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT),
            }
        };
        if sent < 0 {
            let error = std::io::Error::last_os_error();
            assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{error} after {at} bytes, by {kind}");
            assert_ne!(Api::Fairwave.poll(fd, POLLOUT, LIMIT_MS) & POLLOUT, 0, "no room after {at} bytes");
        } else {
            assert!(
                !matches!(kind, 0..3) || sent as usize == length,
                "a call that waits sends all: {sent} of {length}"
            );
            at += sent as usize;
        }
    }
    Api::Fairwave.shutdown(fd, SHUT_WR).unwrap();
}

/// Takes all until the end, in calls of all kinds and sizes.
fn take_all(fd: RawFd, salt: usize, mut random: Random) {
    let (mut at, mut room) = (0, vec![0_u8; 400_000]);
    loop {
        let most = if random.below(3) == 0 { 3000 } else { room.len() as u64 };
        let most = 1 + random.below(most) as usize;
        let (place, kind) = (room.as_mut_ptr().cast::<c_void>(), random.below(8));
        // SAFETY: the buffer has this length.
        let got = unsafe {
            match kind {
                0..4 => g_recv(fd, place, most, 0),
                4 => g_recv(fd, place, most, MSG_DONTWAIT),
                5 => g_recv(fd, place, most, MSG_PEEK | MSG_DONTWAIT),
                6 => libc::read(fd, place, most),
                _ => libc::recv(fd, place, most, MSG_DONTWAIT),
            }
        };
        if got < 0 {
            let error = std::io::Error::last_os_error();
            assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{error} after {at} bytes, by {kind}");
            assert_ne!(Api::Fairwave.poll(fd, POLLIN, LIMIT_MS) & POLLIN, 0, "nothing after {at} bytes");
            continue;
        }
        let got = got as usize;
        for (index, found) in room[..got].iter().enumerate() {
            assert_eq!(*found, byte(at + index, salt), "byte {} by {kind}, {got} of {most}", at + index);
        }
        if kind != 5 {
            at += got;
        }
        if got == 0 {
            assert_eq!(at, BYTES, "by {kind}");
            return;
        }
        // Now and then there is time for much to come.
        if random.below(200) == 0 {
            thread::sleep(Duration::from_millis(2));
        }
    }
}

#[test]
fn bytes__of_calls_of_all_kinds_and_sizes_keep_their_order() {
    let _nobody_forks = beside_others();
    let seed = std::env::var("FAIRWAVE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1_u64);
    println!("FAIRWAVE_SEED={seed} cargo test -p fairwave-capi --test posix keep_their_order");
    let (a, b) = Api::Fairwave.pair();
    thread::scope(|scope| {
        for (salt, from, to) in [(0, a, b), (7, b, a)] {
            let random = move |which: u64| Random(seed * 1000 + salt as u64 * 10 + which);
            scope.spawn(move || put_all(from, salt, random(0)));
            scope.spawn(move || take_all(to, salt, random(1)));
        }
    });
    Api::Fairwave.close_both(a, b);
}

extern "C" fn on_signal(_: c_int) {}

/// The result of a huge send without a reader, when something happens to the thread that waits or to its socket.
fn sends_much(api: Api, happens: impl Fn(Api, libc::pthread_t, c_int, c_int) + Sync) -> String {
    let (sending, reading) = api.pair();
    // Without a time to wait.
    api.set_patience_ms(sending, libc::SO_SNDTIMEO, 0);
    let outcome = thread::scope(|scope| {
        let (tell, heard) = std::sync::mpsc::channel();
        let call = scope.spawn(move || {
            // SAFETY: a call without arguments.
            tell.send(unsafe { libc::pthread_self() }).unwrap();
            let much = vec![1_u8; 64 << 20];
            let mut outcomes = Vec::new();
            loop {
                // How many calls it takes until nothing goes depends on the buffers of both.
                match api.put(sending, &much) {
                    Ok(sent) if sent > 0 && (sent as usize) < much.len() => outcomes.push("some".to_owned()),
                    other => {
                        outcomes.dedup();
                        outcomes.push(format!("{other:?}"));
                        return outcomes;
                    }
                }
            }
        });
        let thread = heard.recv().unwrap();
        // Data have arrived: the call is in progress, however long it took the machine to start it.
        assert_ne!(api.poll(reading, POLLIN, LIMIT_MS) & POLLIN, 0, "nothing comes");
        // It happens again and again: the call may not have waited when it happened first.
        let deadline = Deadline::new();
        while !call.is_finished() {
            thread::sleep(Duration::from_millis(300));
            happens(api, thread, sending, reading);
            deadline.check("a call that waits ends");
        }
        call.join().unwrap()
    });
    api.close(sending).ok();
    api.close(reading).ok();
    format!("{outcome:?}")
}

#[test]
fn send__that_waits_ends_as_over_tcp() {
    let _nobody_forks = beside_others();
    // SAFETY: a handler that does nothing, and lets no call go on.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as extern "C" fn(c_int) as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut()), 0);
    }
    let both = |name: &str, happens: &(dyn Fn(Api, libc::pthread_t, c_int, c_int) + Sync)| {
        let [tcp, ours] = [Api::Tcp, Api::Fairwave].map(|api| sends_much(api, happens));
        assert_eq!(ours, tcp, "{name}");
    };
    // SAFETY: the thread waits in its call, or is at its end.
    both("a signal", &|_, thread, _, _| _ = unsafe { libc::pthread_kill(thread, libc::SIGUSR2) });
    // SAFETY: calls without pointers.
    both("another thread ends the stream", &|_, _, sending, _| _ = unsafe { libc::shutdown(sending, SHUT_RDWR) });
    let nothing = std::fs::File::open("/dev/null").unwrap();
    // SAFETY: the same.
    both("the other end is closed", &|_, _, _, reading| _ = unsafe { libc::dup2(nothing.as_raw_fd(), reading) });
    both("the other end cuts, and nobody has read what it sent", &|api, _, sending, reading| {
        let much = vec![2_u8; 1 << 20];
        let sent = api.send(reading, &much, MSG_NOSIGNAL | MSG_DONTWAIT).unwrap_or(0);
        wait_for("all has come", || api == Api::Tcp || stats(sending)[3] >= sent as u64);
        // SAFETY: the same.
        unsafe { libc::dup2(nothing.as_raw_fd(), reading) };
    });
}
