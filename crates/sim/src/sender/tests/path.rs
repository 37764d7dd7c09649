//! A path of constant delay for one sender and one receiver, with chosen losses.

use std::collections::VecDeque;

use fairwave_units::Duration;

use super::super::*;
use crate::packet::SackBlocks;
use crate::receiver::WindowReceiver;

/// Time that a data packet takes on the wire.
const SERVICE: Duration = Duration::from_micros(10);

pub(super) struct Path {
    pub(super) sender: WindowSender,
    pub(super) receiver: WindowReceiver,
    pub(super) now: Time,
    pub(super) delay: Duration,
    wire_free_at: Time,
    /// Data in flight: arrival, number, send time.
    data: VecDeque<(Time, u64, Time)>,
    /// Acknowledgements in flight.
    acks: VecDeque<(Time, u64, SackBlocks, Time)>,
    /// Whether each of the next acknowledgements is lost.
    pub(super) lost_acks: VecDeque<bool>,
    pub(super) sent: Vec<(Time, Next)>,
    pub(super) arrived: u64,
    pub(super) dropped: u64,
    /// Times of window cuts by loss or time-out, and of time-outs.
    pub(super) cuts: Vec<Time>,
    pub(super) timeouts: Vec<Time>,
    /// End of the last recovery.
    pub(super) recovered: Option<Time>,
    /// The scheme's window after each event.
    pub(super) windows: Vec<(Time, f64)>,
    pub(super) most_outstanding: u64,
    is_started: bool,
}

impl Path {
    pub(super) fn new(sender: WindowSender, rtt: Duration) -> Self {
        Self {
            sender,
            receiver: WindowReceiver::default(),
            now: Time::ZERO,
            delay: Duration::from_nanos((rtt.as_nanos() - SERVICE.as_nanos()) / 2),
            wire_free_at: Time::ZERO,
            data: VecDeque::new(),
            acks: VecDeque::new(),
            lost_acks: VecDeque::new(),
            sent: Vec::new(),
            arrived: 0,
            dropped: 0,
            cuts: Vec::new(),
            timeouts: Vec::new(),
            recovered: None,
            windows: Vec::new(),
            most_outstanding: 0,
            is_started: false,
        }
    }

    /// The number of the next new packet.
    pub(super) fn next_number(&self) -> u64 {
        self.sender.board.next()
    }

    /// Continues until `end`; `loses` decides for each data packet, by number and whether it is sent again, whether it
    /// is lost.
    pub(super) fn run(&mut self, end: Time, mut loses: impl FnMut(u64, bool) -> bool) {
        if !std::mem::replace(&mut self.is_started, true) {
            self.send(&mut loses);
        }
        loop {
            let data = self.data.front().map(|(at, ..)| *at);
            let ack = self.acks.front().map(|(at, ..)| *at);
            let timer = self.sender.deadline();
            let Some(at) = [data, ack, timer].into_iter().flatten().min().filter(|at| *at <= end) else { break };
            self.now = self.now.max(at);
            if data == Some(at) {
                self.arrive();
                continue;
            }
            let was_open = self.sender.state == SenderState::Open;
            if ack == Some(at) {
                let (_, number, blocks, stamp) = self.acks.pop_front().expect("looked at above");
                if self.sender.on_ack(self.now, number, &blocks, stamp) {
                    self.cuts.push(self.now);
                }
            } else {
                match self.sender.on_timer(self.now) {
                    TimerOutcome::Moved | TimerOutcome::Early => {}
                    TimerOutcome::Lost => self.cuts.push(self.now),
                    TimerOutcome::Again => self.timeouts.push(self.now),
                    TimerOutcome::Cut => {
                        self.timeouts.push(self.now);
                        self.cuts.push(self.now);
                    }
                }
            }
            if !was_open && self.sender.state == SenderState::Open {
                self.recovered = Some(self.now);
            }
            self.send(&mut loses);
            self.windows.push((self.now, self.sender.window_packets().0));
        }
        self.now = end;
    }

    fn send(&mut self, loses: &mut impl FnMut(u64, bool) -> bool) {
        while let Some(next) = self.sender.poll_send(self.now, true) {
            self.sent.push((self.now, next));
            let (number, again) = match next {
                Next::New(number) => (number, false),
                Next::Again(number) => (number, true),
            };
            self.most_outstanding = self.most_outstanding.max(self.sender.board.outstanding());
            self.wire_free_at = self.wire_free_at.max(self.now).saturating_add(SERVICE);
            if loses(number, again) {
                self.dropped += 1;
            } else {
                self.data.push_back((self.wire_free_at.saturating_add(self.delay), number, self.now));
            }
        }
    }

    fn arrive(&mut self) {
        let (_, number, stamp) = self.data.pop_front().expect("looked at by the caller");
        self.arrived += 1;
        self.receiver.on_data(number);
        if self.lost_acks.pop_front().unwrap_or(false) {
            return;
        }
        let blocks = if self.sender.config.sack { self.receiver.blocks_and_duplicate() } else { None };
        let at = self.now.saturating_add(self.delay);
        self.acks.push_back((at, self.receiver.next(), blocks.unwrap_or_default(), stamp));
    }
}
