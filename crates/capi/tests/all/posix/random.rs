//! Random sequences of calls, on a pair of TCP sockets and on one of the library: what each call gives is the same.
//!
//! `FAIRWAVE_SEQUENCES=10000` runs more of them, and `FAIRWAVE_SEED` others; a failure prints the one that shows it.
//! Reading is not shut down here: what comes after that TCP keeps and the library throws away (docs/reference/c.md).

use std::ffi::c_int;
use std::time::{Duration, Instant};

use fairwave::{g_accept, g_close};
use fairwave_testing::LIMIT;
use libc::{MSG_DONTWAIT, MSG_PEEK, POLLHUP, POLLIN, POLLOUT, POLLRDHUP, SHUT_WR};

use crate::posix::api::{Api, call, listener};

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % most
    }
}

/// A step at one end.
#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>),
    Recv(usize),
    Peek(usize),
    ShutWriting,
    Close,
}

impl Step {
    fn draw(random: &mut Random) -> Self {
        match random.below(40) {
            0..15 => {
                let length = 1 + random.below(3000);
                Self::Put((0..length).map(|_| random.below(256) as u8).collect())
            }
            15..30 => Self::Recv(1 + random.below(4000) as usize),
            30..37 => Self::Peek(1 + random.below(4000) as usize),
            37 | 38 => Self::ShutWriting,
            _ => Self::Close,
        }
    }

    fn run(&self, api: Api, fd: c_int) -> String {
        match self {
            Self::Put(bytes) => format!("{:?}", api.put(fd, bytes)),
            Self::Recv(most) => format!("{:?}", api.recv(fd, *most, MSG_DONTWAIT)),
            Self::Peek(most) => format!("{:?}", api.recv(fd, *most, MSG_DONTWAIT | MSG_PEEK)),
            Self::ShutWriting => format!("{:?}", api.shutdown(fd, SHUT_WR)),
            Self::Close => format!("{:?}", api.close(fd)),
        }
    }
}

/// The visible state of a descriptor, read without changing it.
fn sight(api: Api, fd: c_int) -> (c_int, i16) {
    let events = POLLIN | POLLOUT | POLLRDHUP;
    (Api::readable(fd), api.poll(fd, events, 0) & (events | POLLHUP))
}

/// Waits until both show the same: what was sent to the library's takes a moment.
fn settle(tcp: c_int, ours: c_int) -> Result<(), String> {
    let end = Instant::now() + LIMIT;
    loop {
        let (there, here) = (sight(Api::Tcp, tcp), sight(Api::Fairwave, ours));
        if there == here {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(format!("(bytes, events) are {here:?} here and {there:?} of TCP"));
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// One sequence; what differs, if anything does.
fn sequence(seed: u64, listening: c_int, ticket: &[u8]) -> Result<(), String> {
    let _nobody_forks = crate::posix::forked::beside_others();
    let mut random = Random(seed);
    let calling = call(ticket);
    // SAFETY: null is allowed.
    let called = unsafe { g_accept(listening, std::ptr::null_mut(), std::ptr::null_mut()) };
    let tcp = Api::Tcp.pair();
    let mut ends = vec![(tcp.0, calling), (tcp.1, called)];
    let mut done = Vec::new();
    for _ in 0..5 + random.below(30) {
        let at = random.below(ends.len() as u64) as usize;
        let step = Step::draw(&mut random);
        let (there, here) = ends[at];
        let said = match &step {
            Step::Put(bytes) => format!("put {} at {at}", bytes.len()),
            other => format!("{other:?} at {at}"),
        };
        let all = |came: &str| format!("{done:?} and then {said}: {came}");
        for (there, here) in &ends {
            settle(*there, *here).map_err(|differs| {
                let name = if *here == calling { "who called" } else { "who was called" };
                let next = Api::Fairwave.recv(*here, 1, MSG_DONTWAIT);
                all(&format!("{differs} at {name}, which then receives {next:?}"))
            })?;
        }
        let (of_tcp, of_ours) = (step.run(Api::Tcp, there), step.run(Api::Fairwave, here));
        if of_tcp != of_ours {
            return Err(all(&format!("{of_ours} here and {of_tcp} of TCP")));
        }
        done.push(said);
        if matches!(step, Step::Close) {
            ends.remove(at);
            if ends.is_empty() {
                return Ok(());
            }
        }
    }
    for (there, here) in ends {
        // SAFETY: the test has it.
        unsafe { libc::close(there) };
        g_close(here);
    }
    Ok(())
}

#[test]
fn any_calls__give_what_they_give_over_tcp() {
    let number =
        |name: &str, default: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (count, first) = (number("FAIRWAVE_SEQUENCES", 100), number("FAIRWAVE_SEED", 1));
    let (listening, ticket) = listener(128);
    for seed in first..first + count {
        let replay =
            format!("FAIRWAVE_SEED={seed} FAIRWAVE_SEQUENCES=1 cargo test -p fairwave-capi --test posix any_calls");
        sequence(seed, listening, &ticket).unwrap_or_else(|differs| panic!("{differs}\n{replay}"));
    }
    g_close(listening);
}
