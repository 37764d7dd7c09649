//! A control socket with visitors stepped by hand: its loop does not run.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use arc_swap::ArcSwap;
use crossbeam_channel::{Receiver, unbounded};

use super::*;
use crate::news::InitialReports;
use crate::view::MachineView;

struct World {
    control: ControlSocket,
    news: Receiver<TickerEvent>,
    _place: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let socket = BoundSocket::bind(&place.path().join("d.sock")).unwrap();
        let (ticker, news) = unbounded();
        let shared = Arc::new(Shared {
            tick_reports: ArcSwap::from_pointee(InitialReports::default()),
            view: ArcSwap::from_pointee(MachineView::default()),
            is_wanted: AtomicBool::new(false),
        });
        let control =
            ControlSocket::new(socket, Arc::new(Bell::new().unwrap()), MachineLimits::default(), ticker, shared);
        Self { control, news, _place: place }
    }

    /// A new connection.
    fn come(&mut self) -> (VisitorId, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        self.control.newest += 1;
        let id = VisitorId(self.control.newest);
        self.control.visitors.insert(id, Visitor::new(near).unwrap());
        (id, far)
    }

    /// A silent connection of another user's process.
    fn admit(&mut self, user: u32, pid: u32) -> UnixStream {
        let (near, far) = UnixStream::pair().unwrap();
        let mut visitor = Visitor::new(near).unwrap();
        (visitor.user, visitor.pid) = (user, pid);
        self.control.admit(visitor);
        far
    }

    /// The connections of a process.
    fn of_process(&self, pid: u32) -> usize {
        self.control.visitors.values().filter(|visitor| visitor.pid == pid).count()
    }

    /// Runs the visitors' part of one loop; returns the visitors that were ready.
    fn turn(&mut self) -> Vec<VisitorId> {
        let (ready, _) = self.control.wait();
        for id in &ready {
            self.control.attend(*id);
        }
        ready
    }
}

#[test]
fn wait__is_not_woken_by_who_asks_on_and_takes_no_answer() {
    let mut world = World::new();
    let (id, mut far) = world.come();
    let visitor = world.control.visitors.get_mut(&id).unwrap();
    visitor.answer("x".repeat(8 << 20).into());
    assert!(visitor.flush() && visitor.has_unsent(), "more than a socket holds");
    far.write_all(b"\"status\"\n").unwrap();
    assert_eq!(world.turn(), [], "it would spin until the visitor is sent away");
    // It takes all that the system holds, and is served again.
    far.set_nonblocking(true).unwrap();
    let mut room = vec![0; 1 << 20];
    while far.read(&mut room).is_ok_and(|read| read > 0) {}
    assert_eq!(world.turn(), [id]);
}

#[test]
fn attend__answers_two_questions_that_came_at_once() {
    let mut world = World::new();
    let (id, mut far) = world.come();
    far.write_all(b"\"status\"\n\"status\"\n").unwrap();
    for _ in 0..2 {
        assert_eq!(world.turn(), [id]);
        assert!(world.control.visitors[&id].waits);
        // While it waits it sends no requests, and its end may be shut down.
        far.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(world.turn(), []);
        world.control.show();
        assert!(!world.control.visitors[&id].waits);
    }
    assert_eq!(world.turn(), [id]);
    assert!(world.control.visitors.is_empty(), "it is gone");
    let mut answers = String::new();
    far.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.lines().filter(|line| line.starts_with("{\"status\":")).count(), 2, "{answers}");
    assert!(world.news.is_empty());
}

#[test]
fn attend__a_user_has_so_many_who_wait_for_a_view() {
    let mut world = World::new();
    let mut all: Vec<_> = (0..=MAX_ASKING).map(|_| world.come()).collect();
    for (id, far) in &mut all {
        far.write_all(b"\"status\"\n").unwrap();
        world.control.attend(*id);
    }
    let (_, last) = all.last_mut().unwrap();
    let mut room = [0; 1024];
    let read = last.read(&mut room).unwrap();
    let reported = String::from_utf8_lossy(&room[..read]).into_owned();
    assert!(reported.contains("already being answered"), "{reported}");
    assert_eq!(world.control.visitors.values().filter(|visitor| visitor.waits).count(), MAX_ASKING);
    world.control.show();
    world.control.attend(all[MAX_ASKING].0);
    all[MAX_ASKING].1.write_all(b"\"status\"\n").unwrap();
    world.control.attend(all[MAX_ASKING].0);
    assert!(world.control.visitors[&all[MAX_ASKING].0].waits, "the others have their answers");
}

#[test]
fn admit__idle_connections_of_a_process_shut_out_no_other() {
    let mut world = World::new();
    let most = world.control.limits.members_a_user + MAX_ASKING;
    let mut honest = world.admit(1000, 7);
    let flood: Vec<UnixStream> = (0..3 * most).map(|_| world.admit(1000, 8)).collect();
    assert_eq!((world.of_process(7), world.of_process(8)), (1, most - 1));
    // The oldest were closed, and a newcomer takes the place of the next.
    assert_eq!((&flood[0]).read(&mut [0]).unwrap(), 0);
    world.admit(1000, 9);
    assert_eq!((world.of_process(7), world.of_process(8), world.of_process(9)), (1, most - 2, 1));
    honest.write_all(b"\"status\"\n").unwrap();
    world.turn();
    world.control.show();
    let mut answer = [0; 10];
    honest.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"{\"status\":");
    // Another user's connections are not touched, and not counted.
    world.admit(1001, 10);
    assert_eq!((world.of_process(8), world.of_process(10)), (most - 2, 1));
}

#[test]
fn admit__where_all_connections_are_in_use_says_so() {
    let mut world = World::new();
    let most = world.control.limits.members_a_user + MAX_ASKING;
    let _all: Vec<UnixStream> = (0..most).map(|_| world.admit(1000, 7)).collect();
    world.control.visitors.values_mut().for_each(|visitor| visitor.segments = 1);
    let mut answer = String::new();
    world.admit(1000, 8).read_to_string(&mut answer).unwrap();
    assert!(answer.contains("80 connections of this user are open already"), "{answer}");
    assert_eq!((world.of_process(7), world.of_process(8)), (most, 0));
}

/// Connections of all users: a newcomer takes the place of an idle connection of the process that has the most.
#[test]
fn admit__connections_of_all_users_have_a_maximum() {
    let mut world = World::new();
    let of_user = world.control.limits.members_a_user + MAX_ASKING;
    assert_eq!(world.control.most_visitors, 4096);
    world.control.most_visitors = of_user + 9;
    let _first = world.admit(1, 7);
    let _flood: Vec<UnixStream> = (0..of_user).map(|_| world.admit(2, 8)).collect();
    let _others: Vec<UnixStream> = (3..11).map(|user| world.admit(user, 10 * user)).collect();
    assert_eq!(world.control.visitors.len(), world.control.most_visitors);
    world.admit(11, 110);
    let counts = [7, 8, 30, 110].map(|pid| world.of_process(pid));
    assert_eq!((counts, world.control.visitors.len()), ([1, of_user - 1, 1, 1], of_user + 9));
    // If no connection is idle the new one is refused.
    world.control.visitors.values_mut().for_each(|visitor| visitor.segments = 1);
    let mut answer = String::new();
    world.admit(12, 120).read_to_string(&mut answer).unwrap();
    assert!(answer.contains("89 connections of all users are open already"), "{answer}");
    assert_eq!((world.of_process(120), world.control.visitors.len()), (0, of_user + 9));
}

#[test]
fn hear__closes_descriptors_that_come_with_a_question() {
    let mut world = World::new();
    let (id, far) = world.come();
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    assert!(send_with(&far, "\"status\"", &[writer]).unwrap());
    // The pipe ends once its other end is closed everywhere: the test has dropped its own, and the daemon keeps none.
    assert_eq!(world.turn(), [id]);
    assert!(world.control.visitors[&id].waits, "the question was heard");
    assert_eq!(rustix::io::read(&reader, &mut [0; 1]).unwrap(), 0);
}

#[test]
fn join__up_to_the_users_maximum_and_each_leaves_once() {
    let mut world = World::new();
    let most = world.control.limits.members_a_user;
    let join = |world: &mut World, id| world.control.join(id, (CONTROL_VERSION, VERSION), monotonic_ns(), "get");
    let mut all: Vec<_> = (0..=most).map(|_| world.come()).collect();
    for (id, _) in &all {
        join(&mut world, *id);
    }
    let joined = world.control.visitors.values().filter(|visitor| visitor.segments == 1).count();
    assert_eq!((joined, world.control.visitors.len()), (most, most), "the last was sent away");
    let mut answer = String::new();
    all[most].1.read_to_string(&mut answer).unwrap();
    assert!(answer.contains(&format!("already has {most} processes")), "{answer}");
    // The ticker is notified once of each joined process that leaves.
    world.control.close(all[0].0);
    world.control.close(all[0].0);
    let news: Vec<TickerEvent> = world.news.try_iter().collect();
    let count = |is_it: fn(&TickerEvent) -> bool| news.iter().filter(|news| is_it(news)).count();
    assert_eq!(count(|news| matches!(news, TickerEvent::Joined { .. })), most);
    assert_eq!(count(|news| matches!(news, TickerEvent::Gone(_))), 1);
    // Its place is free again.
    let (id, _far) = world.come();
    join(&mut world, id);
    assert_eq!(world.control.visitors[&id].segments, 1);
}
