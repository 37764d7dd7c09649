//! More than a host can do: what strangers send, and what its own sessions want.

use std::sync::atomic::AtomicU64;

use fairwave_proto::PathKind;
use fairwave_units::Rate;

use super::*;

pub(super) fn dedicated(mbps: f64) -> EndpointConfig {
    let capacity = Some(Rate::mbps(mbps));
    EndpointConfig {
        listen: Some(own_address()),
        send_capacity: capacity,
        receive_capacity: capacity,
        path: PathKind::Dedicated,
        ..EndpointConfig::default()
    }
}

pub(super) fn ticket(keyring: &Keyring, end: &End) -> Ticket {
    keyring.issue(Validity { lasts_s: None, is_once: false }, vec![end.place()]).unwrap()
}

/// A process that is not scheduled for a while finds its socket full of a stranger's datagrams: that is not a reason to
/// slow its sessions.
#[test]
fn flood__of_one_byte_datagrams_takes_no_capacity() {
    let keyring = keyring();
    let mut ends = [(); 2].map(|()| End::with(&dedicated(80.0)));
    ends[1].listen(&keyring);
    ends[0].connect(ticket(&keyring, &ends[1]));
    run(&mut ends, |ends| ends.iter().all(|end| end.session.is_some()));
    let session = ends[0].session.clone().unwrap();
    session.want(1, 0..1 << 40);
    let target = || session.stats().sink.expect("it receives").target.as_mbps();
    // A second, in which the session gets the whole capacity.
    for _ in 0..10_000 {
        ends.iter_mut().for_each(End::turn);
    }
    let before = target();
    assert!(before > 70.0, "{before} Mb/s of 80");
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut least = f64::MAX;
    for _ in 0..4 {
        // For 400 ms the taker does nothing, while the giver and the stranger send.
        for _ in 0..400 {
            ends[1].turn();
            ends[1].wait(Duration::from_micros(900));
            for _ in 0..100 {
                let _ = stranger.send_to(&[0x18], ends[0].place());
            }
        }
        ends[0].wait(Duration::from_millis(400));
        for _ in 0..2500 {
            ends.iter_mut().for_each(End::turn);
            let _ = stranger.send_to(&[0x18], ends[0].place());
            least = least.min(target());
        }
    }
    let overflows = ends[0].driver.shared().overflows.load(Ordering::Relaxed);
    assert!(overflows > 1000, "the flood was none: {overflows}");
    assert!(least > 0.95 * before, "{least} of {before} Mb/s, with {overflows} datagrams that had no room");
}

/// Wants without end, and counts what comes.
struct Counter(Arc<AtomicU64>);

impl Handler for Counter {
    fn on_open(&mut self, session: &Session) {
        session.want(1, 0..1 << 40);
    }

    fn on_data(&mut self, _session: &Session, _stream: u32, _offset: u64, bytes: &[u8]) {
        self.0.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    }
}

/// A turn takes a millisecond here, and sessions want more than can be sent in it.
#[test]
fn sessions__open_and_live_beside_those_that_take_all() {
    const SESSIONS: usize = 30;
    let keyring = keyring();
    let mut ends = [(); 2].map(|()| End::with(&dedicated(5000.0)));
    ends[1].listen(&keyring);
    let mut counts: Vec<Arc<AtomicU64>> = Vec::new();
    let turn = |ends: &mut [End; 2]| {
        for end in ends {
            end.turn();
            end.wait(Duration::from_micros(900));
        }
    };
    for number in 0..SESSIONS {
        let count = Arc::default();
        counts.push(Arc::clone(&count));
        let answer = ends[0].connect_with(ticket(&keyring, &ends[1]), Box::new(Counter(count)));
        let begin = ends[0].now();
        let opened = loop {
            turn(&mut ends);
            if let Ok(opened) = answer.try_recv() {
                break opened;
            }
            assert!(ends[0].now().since(begin) < Duration::from_secs(1), "session {number} waits");
        };
        assert!(opened.is_ok(), "session {number}: {:?}", opened.err());
    }
    let counted = || -> Vec<u64> { counts.iter().map(|count| count.load(Ordering::Relaxed)).collect() };
    for _ in 0..2 {
        let before = counted();
        (0..300).for_each(|_| turn(&mut ends));
        let came: Vec<u64> = counted().iter().zip(before).map(|(now, before)| now - before).collect();
        assert!(came.iter().all(|bytes| *bytes > 0), "bytes of each in 0.3 s: {came:?}");
    }
}
