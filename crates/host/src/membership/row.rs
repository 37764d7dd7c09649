//! The row that a process writes about one of its sessions.

use fairwave_proto::{Direction, Hold, Looked, Standing};
use fairwave_table::{Holding, ProcessRow, Remote};
use fairwave_units::{Bytes, Rate, Time};

use crate::session::Session;

/// A session as described in its row.
pub(crate) struct MemberSession<'a> {
    pub(crate) session: &'a Session,
    pub(crate) wire_bytes: [u64; 2],
}

/// The row of a session in a direction; `taken` is the last tick whose grants are in force.
pub(super) fn row(
    member: &MemberSession<'_>,
    direction: Direction,
    measured_at: Time,
    looked: &Looked,
    taken: u64,
) -> ProcessRow {
    let (session, stats) = (member.session, member.session.stats());
    let is_limit = |rate: &Rate| rate.as_bps() < f64::MAX;
    let (held_by, lost, path, sink) = match direction {
        Direction::Sending => {
            let sink = stats.source.and_then(|rates| rates.sink_expected);
            (stats.source_held_by, stats.lost_packets, stats.path_rate, sink)
        }
        Direction::Receiving => (stats.sink_held_by, stats.missed_packets, None, None),
    };
    ProcessRow {
        // The place has it.
        generation: 0,
        session: looked.session.0,
        receives: direction == Direction::Receiving,
        measured: looked.measured,
        measured_at,
        terms: looked.terms,
        rtt: looked.rtt,
        waiting: looked.waiting,
        // A session that nothing held starts with its measured use.
        start: Some(looked.expected).filter(is_limit).unwrap_or(looked.measured),
        path: path.filter(is_limit),
        remote: sink.filter(is_limit).map(|rate| Remote {
            rate,
            offer: Rate::ZERO,
            exchanges: looked.standing.is_some_and(|standing| !standing.is_plain),
        }),
        limited_by: held_by.map_or(0, number),
        peer: session.facts().peer.ip(),
        wire_bytes: Bytes::new(member.wire_bytes[direction as usize]),
        lost: lost as u32,
        holding: looked.standing.map(|standing| holding(&standing, taken)),
    }
}

/// The part of a session's grants that a process holds, for its row.
pub(super) fn holding(standing: &Standing, taken: u64) -> Holding {
    let Standing { claim, is_application_limited, limit, granted, reserved, is_silent, is_plain } = *standing;
    Holding { claim, limit, granted, reserved, taken, is_application_limited, is_silent, is_plain }
}

/// The limit of a session, as encoded in a row.
const WORDS: [(Hold, &str); 8] = [
    (Hold::Source, "node"),
    (Hold::Sink, "peer node"),
    (Hold::Demand, "limit"),
    (Hold::Path, "path"),
    (Hold::Silence, "silence"),
    (Hold::Breaker, "breaker"),
    (Hold::Application, "idle"),
    (Hold::Window, "window"),
];

fn number(hold: Hold) -> u8 {
    WORDS.iter().position(|(known, _)| *known == hold).map_or(0, |at| at as u8 + 1)
}

/// The word for what limits a session, of the number in its row; at a sink what is not held there is held by what it
/// is sent.
pub fn limited_by_word(number: u8) -> Option<&'static str> {
    WORDS.get(usize::from(number).checked_sub(1)?).map(|(_, word)| *word)
}
