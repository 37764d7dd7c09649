//! A door with visitors by hand: its loop does not run.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use arc_swap::ArcSwap;
use crossbeam_channel::{Receiver, unbounded};

use super::*;
use crate::news::FirstBeats;
use crate::view::MachineView;

struct World {
    door: Door,
    news: Receiver<DoorNews>,
    _place: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let socket = BoundSocket::bind(&place.path().join("d.sock")).unwrap();
        let (ticker, news) = unbounded();
        let shared = Arc::new(Shared {
            beats: ArcSwap::from_pointee(FirstBeats::default()),
            view: ArcSwap::from_pointee(MachineView::default()),
            is_wanted: AtomicBool::new(false),
        });
        let door = Door::new(socket, Arc::new(Bell::new().unwrap()), MachineLimits::default(), ticker, shared);
        Self { door, news, _place: place }
    }

    /// Somebody comes.
    fn come(&mut self) -> (VisitorId, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        self.door.newest += 1;
        let id = VisitorId(self.door.newest);
        self.door.visitors.insert(id, Visitor::new(near).unwrap());
        (id, far)
    }

    /// A turn of the loop, as far as visitors go: who was ready.
    fn turn(&mut self) -> Vec<VisitorId> {
        let (ready, _) = self.door.wait();
        for id in &ready {
            self.door.attend(*id);
        }
        ready
    }
}

#[test]
fn wait__is_not_woken_by_who_asks_on_and_takes_no_answer() {
    let mut world = World::new();
    let (id, mut far) = world.come();
    let visitor = world.door.visitors.get_mut(&id).unwrap();
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
        assert!(world.door.visitors[&id].waits);
        // While it waits it asks nothing, and its other end may be shut.
        far.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(world.turn(), []);
        world.door.show();
        assert!(!world.door.visitors[&id].waits);
    }
    assert_eq!(world.turn(), [id]);
    assert!(world.door.visitors.is_empty(), "it is gone");
    let mut answers = String::new();
    far.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.lines().filter(|line| line.starts_with("{\"status\":")).count(), 2, "{answers}");
    assert!(world.news.is_empty());
}

#[test]
fn attend__a_user_has_so_many_who_wait_for_a_view() {
    let mut world = World::new();
    let mut all: Vec<_> = (0..=MOST_ASKING).map(|_| world.come()).collect();
    for (id, far) in &mut all {
        far.write_all(b"\"status\"\n").unwrap();
        world.door.attend(*id);
    }
    let (_, last) = all.last_mut().unwrap();
    let mut room = [0; 1024];
    let read = last.read(&mut room).unwrap();
    let told = String::from_utf8_lossy(&room[..read]).into_owned();
    assert!(told.contains("being answered already"), "{told}");
    assert_eq!(world.door.visitors.values().filter(|visitor| visitor.waits).count(), MOST_ASKING);
    world.door.show();
    world.door.attend(all[MOST_ASKING].0);
    all[MOST_ASKING].1.write_all(b"\"status\"\n").unwrap();
    world.door.attend(all[MOST_ASKING].0);
    assert!(world.door.visitors[&all[MOST_ASKING].0].waits, "the others have their answers");
}
