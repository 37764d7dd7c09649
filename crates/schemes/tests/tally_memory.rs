//! Memory use of Tally: bytes of the heap per session and per pending grant at a sink and at a source.

#![allow(non_snake_case, missing_docs)]
#![allow(unsafe_code, reason = "an allocator that counts is one")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use fairwave_schemes::node::tally::{ClaimMessage, GrantTo, SessionTerms, SinkNode, SourceNode, TallyOptions};
use fairwave_units::{Duration, Rate, Time};

/// The system's allocator with a count of allocated bytes.
struct Counting;

static TAKEN: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all calls are forwarded to `System`.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        TAKEN.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        TAKEN.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SESSIONS: u64 = 10_000;
const TERMS: SessionTerms = SessionTerms { weight: 1.0, minimum: Rate::ZERO, rtt: Duration::from_millis(20) };

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

fn claim(number: u64, in_force: u64) -> ClaimMessage {
    let (is_application_limited, is_bye, wants_answer) = (false, false, false);
    let rate_in_force = Rate::ZERO;
    ClaimMessage { number, claim: None, is_application_limited, is_bye, wants_answer, in_force, rate_in_force }
}

/// A single test, as the memory of parallel ones would be counted.
#[test]
fn memory__of_a_session_and_of_a_grant_under_way() {
    let before = TAKEN.load(Relaxed);
    let mut sink = SinkNode::new(Rate::gbps(1.0), TallyOptions::default());
    let mut out: Vec<GrantTo> = Vec::new();
    for (round, in_force) in [(1, 0), (2, 1)] {
        for session in 0..SESSIONS {
            sink.on_claim(at(20 * round), session, &TERMS, &claim(round, in_force), &mut out);
        }
        sink.tick(at(20 * round), &mut out);
        out = Vec::new();
    }
    let a_session = (TAKEN.load(Relaxed) - before) as f64 / SESSIONS as f64;
    // 64 changes of the capacity, all unconfirmed.
    for change in 0..64 {
        sink.set_capacity(Rate::mbps(if change % 2 == 0 { 900.0 } else { 1000.0 }));
        sink.tick(at(60 + change), &mut out);
        out = Vec::new();
    }
    let a_grant = ((TAKEN.load(Relaxed) - before) as f64 / SESSIONS as f64 - a_session) / 64.0;
    drop(sink);
    let before = TAKEN.load(Relaxed);
    let mut source = SourceNode::new(Rate::gbps(1.0), TallyOptions::default());
    let mut claims = Vec::new();
    for session in 0..SESSIONS {
        source.open(at(0), session, TERMS, None, 1, &mut claims);
    }
    for session in 0..SESSIONS {
        source.sent(session, 1e3, true);
    }
    source.tick(at(20), &mut claims);
    drop(claims);
    let at_source = (TAKEN.load(Relaxed) - before) as f64 / SESSIONS as f64;
    eprintln!("{a_session:.0} B a session at a sink, {a_grant:.1} B a grant under way, {at_source:.0} B at a source");
    // docs/results/tally.md has the numbers and their targets.
    assert!(a_session < 74.0, "{a_session} B a session");
    assert!(a_grant < 16.0, "{a_grant} B a grant under way");
    assert!(at_source < 150.0, "{at_source} B a session at a source");
}
