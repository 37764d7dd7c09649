//! Turns at the disk: the tickets take turns, and the sessions of a ticket within its turns.

use std::collections::VecDeque;
use std::sync::Condvar;

use fairwave_host::Lock;
use fairwave_proto::codec::TicketId;

/// Jobs for several threads, in turns of those who wait for them.
pub(crate) struct ReadTurns<J> {
    queue: Lock<Queue<J>>,
    bell: Condvar,
}

struct Queue<J> {
    waiting: Waiting<J>,
    is_over: bool,
    /// Threads that take jobs.
    threads: usize,
}

/// Waiting jobs. Whoever has jobs is at one place of the round.
struct Waiting<J> {
    tickets: VecDeque<(Option<TicketId>, VecDeque<SessionJobs<J>>)>,
}

type SessionJobs<J> = (u64, VecDeque<J>);

impl<J> ReadTurns<J> {
    pub(crate) fn new(threads: usize) -> Self {
        let waiting = Waiting { tickets: VecDeque::new() };
        Self { queue: Lock::new(Queue { waiting, is_over: false, threads }), bell: Condvar::new() }
    }

    /// Adds a job of a session of a ticket. Returns whether a thread is there for it.
    pub(crate) fn push(&self, ticket: Option<TicketId>, session: u64, job: J) -> bool {
        let mut queue = self.queue.lock();
        queue.waiting.push(ticket, session, job);
        self.bell.notify_one();
        queue.threads > 0
    }

    /// No more jobs will come.
    pub(crate) fn end(&self) {
        self.queue.lock().is_over = true;
        self.bell.notify_all();
    }

    /// Does the jobs as they come, until none will.
    pub(crate) fn work(&self, mut each: impl FnMut(J)) {
        let _thread = Thread(self);
        while let Some(job) = self.next() {
            each(job);
        }
    }

    fn next(&self) -> Option<J> {
        let mut queue = self.queue.lock();
        loop {
            match queue.waiting.pop() {
                None if !queue.is_over => queue = queue.wait(&self.bell, None),
                job => return job,
            }
        }
    }
}

/// A thread that takes jobs, until it ends or panics.
struct Thread<'a, J>(&'a ReadTurns<J>);

impl<J> Drop for Thread<'_, J> {
    fn drop(&mut self) {
        self.0.queue.lock().threads -= 1;
    }
}

impl<J> Waiting<J> {
    fn push(&mut self, ticket: Option<TicketId>, session: u64, job: J) {
        push_to(&mut self.tickets, ticket, |sessions| push_to(sessions, session, |jobs| jobs.push_back(job)));
    }

    fn pop(&mut self) -> Option<J> {
        pop_from(&mut self.tickets, |sessions| pop_from(sessions, VecDeque::pop_front))
    }
}

/// Adds to the part of a key, which is the last of the round if it is new.
fn push_to<K: PartialEq, P: Default>(round: &mut VecDeque<(K, P)>, key: K, add: impl FnOnce(&mut P)) {
    if let Some((_, part)) = round.iter_mut().find(|(other, _)| *other == key) {
        return add(part);
    }
    let mut part = P::default();
    add(&mut part);
    round.push_back((key, part));
}

/// Takes from the first part, which is the last of the round then, unless nothing is left of it.
fn pop_from<K, T, J>(
    round: &mut VecDeque<(K, VecDeque<T>)>,
    take: impl FnOnce(&mut VecDeque<T>) -> Option<J>,
) -> Option<J> {
    let (key, mut part) = round.pop_front()?;
    let job = take(&mut part);
    if !part.is_empty() {
        round.push_back((key, part));
    }
    job
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pop__tickets_take_turns_before_their_sessions() {
        let mut waiting = Waiting { tickets: VecDeque::new() };
        let [many, one] = [1, 2].map(|id| Some(TicketId(id)));
        for session in 0..3 {
            for number in 0..2 {
                waiting.push(many, session, (1, session, number));
            }
        }
        (0..3).for_each(|number| waiting.push(one, 9, (2, 9, number)));
        let order: Vec<_> = std::iter::from_fn(|| waiting.pop()).collect();
        let turns = [(1, 0, 0), (2, 9, 0), (1, 1, 0), (2, 9, 1), (1, 2, 0), (2, 9, 2), (1, 0, 1), (1, 1, 1), (1, 2, 1)];
        assert_eq!(order, turns);
        assert!(waiting.tickets.is_empty());
    }

    #[test]
    fn work__ends_when_all_is_done() {
        let turns = ReadTurns::new(1);
        assert!((0..5).all(|job| turns.push(None, 0, job)));
        turns.end();
        let mut done = Vec::new();
        turns.work(|job| done.push(job));
        assert_eq!(done, [0, 1, 2, 3, 4]);
        assert!(!turns.push(None, 0, 5), "no thread is left");
    }
}
