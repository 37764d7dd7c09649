//! The rules of POSIX for connected stream sockets, case by case.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use libc::{MSG_DONTWAIT, MSG_NOSIGNAL, MSG_PEEK, MSG_WAITALL, POLLHUP, POLLIN, POLLOUT, POLLRDHUP};
use libc::{SHUT_RD, SHUT_RDWR, SHUT_WR};

use fairwave_testing::wait_some;

use crate::posix::api::{Api, LIMIT_MS};
use crate::posix::forked::{Forked, alone, beside_others};

/// The results of a case, step by step.
type Log = Vec<String>;

fn note(log: &mut Log, step: &str, came: impl std::fmt::Debug) {
    log.push(format!("{step}: {came:?}"));
}

/// Runs a case with both, and compares the logs.
fn beside_tcp(case: impl Fn(Api) -> Log) {
    let _nobody_forks = beside_others();
    compare(case);
}

/// Runs a case that forks with both, without other cases at the same time.
fn alone_beside_tcp(case: impl Fn(Api) -> Log) {
    let _alone = alone();
    compare(case);
}

fn compare(case: impl Fn(Api) -> Log) {
    let (tcp, ours) = (case(Api::Tcp), case(Api::Fairwave));
    assert_eq!(ours, tcp, "left is Fairwave, right is TCP");
}

/// Waits until a descriptor has these events: all that it has.
fn until(api: Api, fd: i32, events: i16) -> i16 {
    wait_some("events", || Some(api.poll(fd, events, 0)).filter(|seen| seen & events == events))
}

#[test]
fn bytes__go_both_ways_in_order() {
    beside_tcp(|api| {
        let (a, b) = api.pair();
        let mut log = Log::new();
        note(&mut log, "send", api.put(a, b"hello, "));
        note(&mut log, "send", api.put(a, b"world"));
        note(&mut log, "recv", api.take(b, 12));
        note(&mut log, "send", api.put(b, b"back"));
        note(&mut log, "peek", api.recv(a, 4, MSG_PEEK | MSG_WAITALL));
        note(&mut log, "recv", api.recv(a, 2, 0));
        note(&mut log, "recv all", api.recv(a, 2, MSG_WAITALL));
        note(&mut log, "nothing", api.recv(a, 2, MSG_DONTWAIT));
        note(&mut log, "no room", api.recv(a, 0, MSG_DONTWAIT));
        note(&mut log, "no bytes", api.put(a, b""));
        note(&mut log, "close", (api.close(a), api.close(b)));
        // No descriptor has so high a number.
        note(&mut log, "no descriptor", (api.put(1 << 20, b"x"), api.recv(1 << 20, 1, 0), api.close(1 << 20)));
        log
    });
}

#[test]
fn close__is_the_end_of_the_stream_for_the_other() {
    beside_tcp(|api| {
        let (a, b) = api.pair();
        let mut log = Log::new();
        note(&mut log, "send", api.put(a, b"last words"));
        note(&mut log, "close", api.close(a));
        note(&mut log, "recv", api.take(b, 100));
        note(&mut log, "end", api.recv(b, 10, 0));
        note(&mut log, "end again", api.recv(b, 10, 0));
        note(&mut log, "poll", until(api, b, POLLIN | POLLRDHUP) & (POLLIN | POLLRDHUP));
        api.close(b).unwrap();
        log
    });
}

#[test]
fn shutdown__of_writing_leaves_reading() {
    beside_tcp(|api| {
        let (a, b) = api.pair();
        let mut log = Log::new();
        api.put(a, b"question").unwrap();
        note(&mut log, "shutdown", api.shutdown(a, SHUT_WR));
        note(&mut log, "send", api.put(a, b"more"));
        note(&mut log, "recv", api.take(b, 100));
        note(&mut log, "writable", until(api, b, POLLOUT) & POLLOUT);
        note(&mut log, "answer", api.put(b, b"answer"));
        note(&mut log, "recv", api.take(a, 6));
        note(&mut log, "shutdown", api.shutdown(b, SHUT_WR));
        note(&mut log, "end", api.recv(a, 10, 0));
        note(&mut log, "poll", until(api, a, POLLIN | POLLHUP) & (POLLIN | POLLHUP | POLLRDHUP));
        api.close_both(a, b);
        log
    });
}

#[test]
fn shutdown__of_reading_is_an_end_here() {
    beside_tcp(|api| {
        let (a, b) = api.pair();
        let mut log = Log::new();
        note(&mut log, "shutdown", api.shutdown(a, SHUT_RD));
        note(&mut log, "recv", api.recv(a, 10, 0));
        note(&mut log, "send", api.put(a, b"still"));
        note(&mut log, "recv there", api.take(b, 5));
        note(&mut log, "send to it", api.put(b, b"unheard"));
        // Arrivals after it neither reads nor writes are another case.
        api.wait_came(a, 7);
        note(&mut log, "shutdown", api.shutdown(a, SHUT_WR));
        note(&mut log, "end there", api.recv(b, 10, 0));
        api.close_both(a, b);
        log
    });
}

#[test]
fn shutdown__of_both_and_again() {
    beside_tcp(|api| {
        let (a, b) = api.pair();
        let mut log = Log::new();
        note(&mut log, "both", api.shutdown(a, SHUT_RDWR));
        note(&mut log, "send", api.put(a, b"x"));
        note(&mut log, "recv", api.recv(a, 1, 0));
        note(&mut log, "end there", api.recv(b, 1, 0));
        note(&mut log, "what", api.shutdown(b, 7));
        api.close_both(a, b);
        log
    });
}

#[test]
fn timeouts__of_receiving() {
    beside_tcp(|api| {
        let (a, b) = api.pair();
        let mut log = Log::new();
        api.set_patience_ms(a, libc::SO_RCVTIMEO, 50);
        let before = Instant::now();
        note(&mut log, "recv", api.recv(a, 1, 0));
        note(&mut log, "waited", before.elapsed() >= Duration::from_millis(45));
        api.put(b, b"x").unwrap();
        note(&mut log, "readable", until(api, a, POLLIN) & POLLIN);
        note(&mut log, "recv", api.recv(a, 1, 0));
        api.close_both(a, b);
        log
    });
}

#[test]
fn nonblocking__never_waits() {
    beside_tcp(|api| {
        let (a, b) = api.pair();
        let mut log = Log::new();
        Api::set_nonblocking(a);
        note(&mut log, "recv", api.recv(a, 1, 0));
        note(&mut log, "poll", api.poll(a, POLLIN | POLLOUT, 0));
        let piece = vec![7; 1 << 20];
        let mut sent = 0;
        let full = loop {
            match api.put(a, &piece) {
                Ok(bytes) => sent += bytes as usize,
                Err(error) => break error,
            }
        };
        note(&mut log, "full", full);
        let mut came = 0;
        while came < sent {
            came += api.recv(b, 1 << 20, 0).unwrap().len();
        }
        note(&mut log, "came", came == sent);
        note(&mut log, "writable again", until(api, a, POLLOUT));
        note(&mut log, "send", api.put(a, b"x"));
        api.close_both(a, b);
        log
    });
}

#[test]
fn blocking__a_large_write_waits_for_its_reader() {
    const LENGTH: usize = 20 << 20;
    beside_tcp(|api| {
        let (a, b) = api.pair();
        let reader = thread::spawn(move || api.take(b, LENGTH).map(|bytes| bytes.iter().all(|byte| *byte == 9)));
        let mut log = Log::new();
        let all = vec![9; LENGTH];
        let mut sent = 0;
        while sent < LENGTH {
            sent += api.put(a, &all[sent..]).unwrap() as usize;
        }
        note(&mut log, "came", reader.join().unwrap());
        api.close_both(a, b);
        log
    });
}

#[test]
fn close__with_data_unread_is_a_reset_there() {
    beside_tcp(|api| {
        let (a, b) = api.pair();
        let mut log = Log::new();
        api.put(b, b"nobody reads this").unwrap();
        until(api, a, POLLIN);
        api.close(a).unwrap();
        note(&mut log, "poll", until(api, b, POLLIN | POLLHUP) & (POLLIN | POLLHUP));
        note(&mut log, "recv", api.recv(b, 10, 0));
        note(&mut log, "then", api.recv(b, 10, 0));
        note(&mut log, "send", api.put(b, b"x"));
        api.close(b).unwrap();
        log
    });
}

#[test]
fn close__without_time_to_linger_is_a_reset_there() {
    beside_tcp(|api| {
        let (a, b) = api.pair();
        let mut log = Log::new();
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        note(&mut log, "linger", api.set(a, libc::SOL_SOCKET, libc::SO_LINGER, &linger));
        api.close(a).unwrap();
        until(api, b, POLLIN | POLLHUP);
        note(&mut log, "SO_ERROR", api.get(b, libc::SOL_SOCKET, libc::SO_ERROR));
        note(&mut log, "and then", api.get(b, libc::SOL_SOCKET, libc::SO_ERROR));
        note(&mut log, "send", api.put(b, b"x"));
        note(&mut log, "recv", api.recv(b, 10, 0));
        api.close(b).unwrap();
        log
    });
}

#[test]
fn close__with_data_waiting_loses_none() {
    const LENGTH: usize = 3 << 20;
    beside_tcp(|api| {
        let (a, b) = api.pair();
        let mut log = Log::new();
        let linger = libc::linger { l_onoff: 1, l_linger: LIMIT_MS / 1000 };
        note(&mut log, "linger", api.set(a, libc::SOL_SOCKET, libc::SO_LINGER, &linger));
        let (tell, heard) = std::sync::mpsc::channel();
        let reader = thread::spawn(move || {
            // As much is written as there is room for.
            heard.recv().unwrap();
            let got = api.take(b, LENGTH + 1).map(|bytes| bytes.len());
            api.close(b).unwrap();
            got
        });
        let all = vec![9; LENGTH];
        let mut sent = 0;
        while let Some(more) = api.send(a, &all[sent..], MSG_NOSIGNAL | MSG_DONTWAIT).ok().filter(|more| *more > 0) {
            sent += more as usize;
        }
        tell.send(()).unwrap();
        while sent < LENGTH {
            sent += api.put(a, &all[sent..]).unwrap() as usize;
        }
        note(&mut log, "close", api.close(a));
        note(&mut log, "came", reader.join().unwrap());
        log
    });
}

/// Signals that came: nothing else in this process makes any.
static PIPES: AtomicUsize = AtomicUsize::new(0);

extern "C" fn on_pipe(_: libc::c_int) {
    PIPES.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn send__to_one_that_is_gone_raises_a_signal_unless_told_not_to() {
    // SAFETY: the handler only counts.
    unsafe { libc::signal(libc::SIGPIPE, on_pipe as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    beside_tcp(|api| {
        let (a, b) = api.pair();
        let mut log = Log::new();
        api.shutdown(a, SHUT_WR).unwrap();
        let before = PIPES.load(Ordering::SeqCst);
        note(&mut log, "quietly", api.send(a, b"x", MSG_NOSIGNAL));
        note(&mut log, "signals", PIPES.load(Ordering::SeqCst) - before);
        note(&mut log, "loudly", api.send(a, b"x", 0));
        note(&mut log, "signals", PIPES.load(Ordering::SeqCst) - before);
        api.close_both(a, b);
        log
    });
}

#[test]
fn fork__a_child_reads_and_writes_too() {
    alone_beside_tcp(|api| {
        let (a, b) = api.pair();
        let mut log = Log::new();
        let child =
            Forked::new(|| api.recv(b, 5, MSG_WAITALL).as_deref() == Ok(b"hello") && api.put(b, b"child") == Ok(5));
        api.put(a, b"hello").unwrap();
        note(&mut log, "from the child", api.take(a, 5));
        note(&mut log, "status", child.status());
        // It had a copy, and the end comes with the last of them.
        note(&mut log, "open", api.recv(a, 1, MSG_DONTWAIT));
        api.close(b).unwrap();
        note(&mut log, "end", api.recv(a, 1, 0));
        api.close(a).unwrap();
        log
    });
}

#[test]
fn fork__a_child_keeps_nobody_from_closing() {
    alone_beside_tcp(|api| {
        let (a, b) = api.pair();
        let mut log = Log::new();
        let child = Forked::new(|| {
            // SAFETY: calls without pointers; it has the other one, which nobody closes.
            unsafe {
                libc::close(b);
                libc::close(a);
                libc::sleep(1000) == 0
            }
        });
        api.put(a, b"bye").unwrap();
        api.close(a).unwrap();
        note(&mut log, "recv", api.take(b, 10));
        drop(child);
        api.close(b).unwrap();
        log
    });
}

/// Sockets of this process. It only makes system calls.
fn sockets() -> usize {
    let is_socket = |number: &i32| {
        // SAFETY: all zeros are a value of it, and there is room for one.
        unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            libc::fstat(*number, &raw mut stat) == 0 && stat.st_mode & libc::S_IFMT == libc::S_IFSOCK
        }
    };
    (0..1024).filter(is_socket).count()
}

#[test]
fn fork__while_another_thread_opens_and_closes() {
    let _alone = alone();
    // In a child of its own, where no other test opens sockets; the library starts afresh there.
    let child = Forked::new(|| {
        let has = |most: usize| Forked::new(|| sockets() <= most).status() == 0;
        let Some(before) = (0..1024).find(|most| has(*most)) else { return false };
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    fairwave::g_close(fairwave::g_socket(libc::AF_INET, libc::SOCK_STREAM, 0));
                }
            });
            // One more at most: the program's end, which is the child's as well.
            let is_right = (0..200).all(|_| has(before + 1));
            is_over.store(true, Ordering::Relaxed);
            is_right
        })
    });
    assert_eq!(child.status(), 0, "a child has the library's ends, or died of closing what it had not");
}

#[test]
fn unconnected__no_bytes_go() {
    beside_tcp(|api| {
        let fd = match api {
            // SAFETY: calls without pointers.
            Api::Tcp => unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) },
            Api::Fairwave => fairwave::g_socket(libc::AF_INET, libc::SOCK_STREAM, 0),
        };
        let mut log = Log::new();
        note(&mut log, "send", api.put(fd, b"x"));
        note(&mut log, "recv", api.recv(fd, 1, 0));
        note(&mut log, "shutdown", api.shutdown(fd, SHUT_WR));
        let kinds: Vec<Result<i32, String>> = [libc::SO_TYPE, libc::SO_ERROR, libc::SO_ACCEPTCONN, libc::SO_DOMAIN]
            .iter()
            .map(|option| api.get(fd, libc::SOL_SOCKET, *option))
            .collect();
        note(&mut log, "options", kinds);
        note(&mut log, "close", api.close(fd));
        log
    });
}

#[test]
fn dup__the_end_comes_with_the_last() {
    beside_tcp(|api| {
        let (a, b) = api.pair();
        let mut log = Log::new();
        // SAFETY: a call without pointers.
        let copy = unsafe { libc::dup(a) };
        api.close(a).unwrap();
        note(&mut log, "send", api.put(copy, b"through the copy"));
        note(&mut log, "recv", api.take(b, 16));
        note(&mut log, "open", api.recv(b, 1, MSG_DONTWAIT));
        api.close(copy).unwrap();
        note(&mut log, "end", api.recv(b, 1, 0));
        api.close(b).unwrap();
        log
    });
}
