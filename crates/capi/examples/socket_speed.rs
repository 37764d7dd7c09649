//! Measures the speed of libfairwave's calls between two processes.
//!
//! ```text
//! socket_speed serve ADDRESS                prints a ticket, receives everything and sends back on request
//! socket_speed send TICKET SECONDS          one connection: Gb/s, and CPU s/GB of both ends
//! socket_speed echo TICKET COUNT            64 bytes there and back: microseconds
//! socket_speed many TICKET CONNECTIONS      this many connections in one epoll set: all echo, and the CPU time while they are idle
//! ```

#![allow(unsafe_code, reason = "C's calls take pointers")]

use std::ffi::{CString, c_int};
use std::io::Error;
use std::net::SocketAddrV4;
use std::thread;
use std::time::{Duration, Instant};

use fairwave::{
    g_accept, g_bind, g_close, g_connect, g_getsockopt, g_listen, g_recv, g_send, g_setsockopt, g_shutdown, g_socket,
};

const SOL_FAIRWAVE: c_int = 0x4657;
const TICKET: c_int = 1;
const PIECE: usize = 256 << 10;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", address] => serve(address.parse().expect("an address of IPv4")),
        ["send", ticket, seconds] => send(ticket, seconds.parse().expect("seconds")),
        ["echo", ticket, count] => echo(ticket, count.parse().expect("a count")),
        ["many", ticket, connections] => many(ticket, connections.parse().expect("a number")),
        _ => eprintln!("speed serve ADDRESS | send TICKET SECONDS | echo TICKET COUNT | many TICKET CONNECTIONS"),
    }
}

fn good(value: isize) -> isize {
    assert!(value >= 0, "{}", Error::last_os_error());
    value
}

/// User and system time of this process, in seconds.
fn cpu_s() -> f64 {
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn recv(fd: c_int, room: &mut [u8]) -> usize {
    good(unsafe { g_recv(fd, room.as_mut_ptr().cast(), room.len(), 0) }) as usize
}

fn recv_all(fd: c_int, room: &mut [u8]) {
    let mut at = 0;
    while at < room.len() {
        let got = recv(fd, &mut room[at..]);
        assert!(got > 0, "it ends early");
        at += got;
    }
}

fn send_all(fd: c_int, bytes: &[u8]) {
    let mut at = 0;
    while at < bytes.len() {
        let left = &bytes[at..];
        at += good(unsafe { g_send(fd, left.as_ptr().cast(), left.len(), libc::MSG_NOSIGNAL) }) as usize;
    }
}

fn serve(address: SocketAddrV4) {
    let listening = g_socket(libc::AF_INET, libc::SOCK_STREAM, 0);
    let mut c_address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    c_address.sin_family = libc::AF_INET as u16;
    c_address.sin_port = address.port().to_be();
    c_address.sin_addr.s_addr = u32::from(*address.ip()).to_be();
    good(unsafe { g_bind(listening, (&raw const c_address).cast(), 16) } as isize);
    good(g_listen(listening, 4096) as isize);
    let mut ticket = [0_u8; 1024];
    let mut length = 1024;
    let room = ticket.as_mut_ptr().cast();
    good(unsafe { g_getsockopt(listening, SOL_FAIRWAVE, TICKET, room, &raw mut length) } as isize);
    println!("{}", String::from_utf8_lossy(&ticket[..length as usize - 1]));
    let set = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    watch(set, listening);
    let mut room = vec![0_u8; PIECE];
    loop {
        for fd in ready(set, -1) {
            if fd == listening {
                watch(set, good(unsafe { g_accept(fd, std::ptr::null_mut(), std::ptr::null_mut()) } as isize) as c_int);
                continue;
            }
            // The first byte is the request.
            let mut kind = [0];
            match unsafe { g_recv(fd, kind.as_mut_ptr().cast(), 1, libc::MSG_DONTWAIT | libc::MSG_PEEK) } {
                1 if kind[0] == b'S' => {
                    unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut()) };
                    thread::spawn(move || sink(fd));
                }
                1.. => {
                    let got = recv(fd, &mut room);
                    send_all(fd, &room[..got]);
                }
                _ => _ = g_close(fd),
            }
        }
    }
}

/// Reads to the end, and reports the bytes and the CPU time of this process.
fn sink(fd: c_int) {
    let (mut room, mut bytes, before) = (vec![0_u8; PIECE], 0_u64, cpu_s());
    loop {
        let got = recv(fd, &mut room);
        if got == 0 {
            break;
        }
        bytes += got as u64;
    }
    let mut said = bytes.to_le_bytes().to_vec();
    said.extend((cpu_s() - before).to_le_bytes());
    send_all(fd, &said);
    g_close(fd);
}

fn watch(set: c_int, fd: c_int) {
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: fd as u64 };
    good(unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, fd, &raw mut event) } as isize);
}

fn ready(set: c_int, timeout_ms: c_int) -> Vec<c_int> {
    let mut events: [libc::epoll_event; 256] = unsafe { std::mem::zeroed() };
    let count = good(unsafe { libc::epoll_wait(set, events.as_mut_ptr(), 256, timeout_ms) } as isize);
    events[..count as usize].iter().map(|event| event.u64 as c_int).collect()
}

fn call(ticket: &str) -> c_int {
    let fd = g_socket(libc::AF_INET, libc::SOCK_STREAM, 0);
    let text = CString::new(ticket).expect("a ticket has no zero");
    let length = text.as_bytes_with_nul().len() as libc::socklen_t;
    good(unsafe { g_setsockopt(fd, SOL_FAIRWAVE, TICKET, text.as_ptr().cast(), length) } as isize);
    good(unsafe { g_connect(fd, std::ptr::null(), 0) } as isize);
    fd
}

fn send(ticket: &str, seconds: f64) {
    let fd = call(ticket);
    let bytes = vec![b'S'; PIECE];
    let (begun, before) = (Instant::now(), cpu_s());
    while begun.elapsed().as_secs_f64() < seconds {
        send_all(fd, &bytes);
    }
    good(g_shutdown(fd, libc::SHUT_WR) as isize);
    let mut said = [0; 16];
    recv_all(fd, &mut said);
    let took_s = begun.elapsed().as_secs_f64();
    let here_s = cpu_s() - before;
    let (came, there_s) = said.split_at(8);
    let came = u64::from_le_bytes(came.try_into().expect("eight bytes"));
    let there_s = f64::from_le_bytes(there_s.try_into().expect("eight bytes"));
    let gb = came as f64 / 1e9;
    println!(
        "{:.2} Gb/s, {:.2} CPU s/GB ({:.2} here, {:.2} there)",
        8.0 * gb / took_s,
        (here_s + there_s) / gb,
        here_s / gb,
        there_s / gb
    );
    g_close(fd);
}

fn echo(ticket: &str, count: usize) {
    let fd = call(ticket);
    let mut bytes = [b'E'; 64];
    let mut took_us: Vec<f64> = (0..count)
        .map(|_| {
            let begun = Instant::now();
            send_all(fd, &bytes);
            recv_all(fd, &mut bytes);
            begun.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    took_us.sort_by(f64::total_cmp);
    let at = |share: f64| took_us[((count - 1) as f64 * share) as usize];
    println!("echo of 64 bytes: {:.0} us at half, {:.0} at 90 %, {:.0} at 99 %", at(0.5), at(0.9), at(0.99));
    g_close(fd);
}

fn many(ticket: &str, connections: usize) {
    let begun = Instant::now();
    let all: Vec<c_int> = (0..connections).map(|_| call(ticket)).collect();
    println!("{connections} connections opened in {:.2} s", begun.elapsed().as_secs_f64());
    let set = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    for fd in &all {
        watch(set, *fd);
    }
    let begun = Instant::now();
    for fd in &all {
        send_all(*fd, &[b'E'; 64]);
    }
    let (mut left, mut room) = (64 * connections, [0; 4096]);
    while left > 0 {
        for fd in ready(set, 10_000) {
            left -= recv(fd, &mut room);
        }
    }
    println!("each has its echo after {:.0} ms", begun.elapsed().as_secs_f64() * 1e3);
    // As long as it takes until connections count as idle.
    for seconds in [3, 9, 3] {
        let before = cpu_s();
        thread::sleep(Duration::from_secs(seconds));
        let share = (cpu_s() - before) / seconds as f64;
        println!("in the next {seconds} s without data this process takes {:.1} % of a core", share * 100.0);
    }
    for fd in &all {
        g_close(*fd);
    }
}
