//! ECN fields over real sockets.

use fairwave_proto::Direction;

use super::*;

/// Enough that the sink's counts are heard, or missed.
const LENGTH: u64 = 8 << 20;

#[test]
fn marks__the_field_of_data_packets_is_set_read_and_told() {
    let mut ends = ends();
    ends[0].session.as_ref().unwrap().want(1, 0..LENGTH);
    run(&mut ends, |ends| ends[0].bytes >= LENGTH);
    talk(&mut ends, 20);
    let giver = ends[1].id();
    // An end that receives no ECN field in ten reports about more than a hundred packets stops marking.
    run(&mut ends, |ends| ends[1].session.as_ref().unwrap().stats().sent_path.all.arrived > 300);
    let facts = ends[1].driver.host.path_facts(ends[1].driver.clock.now(), giver, Direction::Sending).unwrap();
    assert!(ends[1].driver.host.takes_marks(giver));
    assert_eq!(facts.all.marked, 0);
}

/// Somebody between two ends who passes on all that he gets, from a socket for each side: to the taker with CE.
struct Router {
    to_taker: UdpSocket,
    to_giver: UdpSocket,
    taker: Option<SocketAddr>,
    giver: SocketAddr,
    room: Vec<u8>,
}

impl Router {
    fn new(giver: SocketAddr) -> Self {
        let socket = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        };
        let (to_taker, to_giver) = (socket(), socket());
        socket2::SockRef::from(&to_taker).set_tos_v4(CE).unwrap();
        Self { to_taker, to_giver, taker: None, giver, room: vec![0; 1 << 16] }
    }

    fn turn(&mut self) {
        while let Ok((bytes, from)) = self.to_taker.recv_from(&mut self.room) {
            self.taker = Some(from);
            // A datagram without room is lost.
            let _ = self.to_giver.send_to(&self.room[..bytes], self.giver);
        }
        while let Ok((bytes, _)) = self.to_giver.recv_from(&mut self.room) {
            let _ = self.taker.map(|taker| self.to_taker.send_to(&self.room[..bytes], taker));
        }
    }
}

/// RFC 3168 s5: both bits.
const CE: u32 = 3;

#[test]
fn marks__of_a_router_reach_the_source() {
    let keyring = keyring();
    let mut ends = [End::new(), End::new()];
    let mut router = Router::new(ends[1].place());
    let place = router.to_taker.local_addr().unwrap();
    let to = keyring.issue(Validity { lasts_s: None, is_once: false }, vec![place]).unwrap();
    ends[1].listen(&keyring);
    ends[0].connect(to);
    let mut turn_until = |ends: &mut [End; 2], is_done: &dyn Fn(&[End; 2]) -> bool| {
        let deadline = Deadline::new();
        while !is_done(ends) {
            ends.iter_mut().for_each(End::turn);
            router.turn();
            deadline.check("marks by a router");
        }
    };
    turn_until(&mut ends, &|ends| ends.iter().all(|end| end.session.is_some()));
    ends[0].session.as_ref().unwrap().want(1, 0..1 << 18);
    turn_until(&mut ends, &|ends| ends[0].bytes >= 1 << 18);
    let (giver, taker) = (ends[1].id(), ends[0].id());
    turn_until(&mut ends, &|ends| ends[1].session.as_ref().unwrap().stats().sent_path.all.marked > 10);
    let at_sink = ends[0].driver.host.path_facts(ends[0].driver.clock.now(), taker, Direction::Receiving).unwrap().all;
    let at_source = ends[1].driver.host.path_facts(ends[1].driver.clock.now(), giver, Direction::Sending).unwrap().all;
    assert_eq!(at_sink.marked, at_sink.arrived, "each of them was marked");
    assert!(at_source.marked <= at_sink.marked && at_source.marked <= at_source.arrived, "{at_source:?} {at_sink:?}");
}
