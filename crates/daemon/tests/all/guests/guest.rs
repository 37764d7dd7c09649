//! A process at the daemon's socket, without a network.

use std::path::Path;

use fairwave_host::control_socket::{CONTROL_VERSION, ControlStream, Question, monotonic_ns};
use fairwave_node::Terms;
use fairwave_table::{GrantState, ProcessRow, ProcessSegment, RowPlace, SegmentMemory, VERSION};
use fairwave_testing::{LIMIT, wait_for};
use fairwave_units::{Bytes, Duration, Rate, Time};

/// A process that has joined.
pub(crate) struct Guest {
    pub(crate) stream: ControlStream,
    segment: ProcessSegment,
}

pub(crate) fn join() -> Question {
    Question::Join { version: CONTROL_VERSION, layout: VERSION, clock_ns: monotonic_ns(), command: "guest".to_owned() }
}

/// A connection to the daemon that waits however busy the machine is.
pub(crate) fn connect(socket: &Path) -> ControlStream {
    let stream = ControlStream::connect(socket).unwrap();
    stream.set_patience(LIMIT).unwrap();
    stream
}

impl Guest {
    pub(crate) fn come(socket: &Path) -> Self {
        let mut stream = connect(socket);
        let [rows, grants] = stream.join(&join()).unwrap();
        let segment = ProcessSegment::map(SegmentMemory { rows, grants }).unwrap();
        Self { stream, segment }
    }

    /// Opens a session, and waits until the daemon has granted it something.
    pub(crate) fn is_served(&mut self) {
        let place = self.segment.take_row().unwrap();
        let is_granted = |guest: &Self| {
            assert!(guest.segment.set_row(place, &row(place)));
            guest.segment.grant(place).is_some_and(|grant| grant.state == GrantState::Granted)
        };
        wait_for("the daemon grants a rate", || is_granted(self));
        assert!(self.segment.give_back(place));
    }
}

fn row(place: RowPlace) -> ProcessRow {
    ProcessRow {
        generation: 0,
        session: place.at as u64,
        receives: false,
        measured: Rate::mbps(10.0),
        measured_at: Time::from_nanos(monotonic_ns()),
        terms: Terms::default(),
        rtt: Duration::from_millis(1),
        waiting: None,
        start: Rate::ZERO,
        path: None,
        remote: None,
        limited_by: 1,
        peer: std::net::Ipv4Addr::LOCALHOST.into(),
        wire_bytes: Bytes::ZERO,
        lost: 0,
        holding: None,
    }
}
