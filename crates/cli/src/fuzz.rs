//! Fuzzes the messages of the far end of a copy over ssh, and of other processes' status: `make fuzz` looks for inputs
//! that break their parsers, and `cargo test` runs those in `__fuzz__` again, and some at random.

use fairwave_host::ProcessStatus;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::common::terminal;
use crate::machine::status;
use crate::transfer::cp::message::{CpReply, CpRequest, CpTask, receive, send};

/// Random inputs in `cargo test`, unless BOLERO_RANDOM_ITERATIONS is set.
const ITERATIONS: usize = 2000;
const LARGEST: usize = 1500;

/// A message as it comes, and one whose length is right.
fn read<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(input: &[u8]) -> Vec<T> {
    let framed = [&(input.len() as u32).to_be_bytes(), input].concat();
    let messages: Vec<T> = [input, &framed].into_iter().filter_map(|mut bytes| receive(&mut bytes).ok()).collect();
    for message in &messages {
        let mut again = Vec::new();
        send(&mut again, message).unwrap();
        assert_eq!(receive::<T>(&mut again.as_slice()).unwrap(), *message);
    }
    messages
}

/// The near end's request, at the far end.
#[test]
fn cp_ask() {
    bolero::check!().with_iterations(ITERATIONS).with_max_len(LARGEST).for_each(|input: &[u8]| {
        for ask in read::<CpRequest>(input) {
            let paths = match ask.what {
                CpTask::Give(paths) | CpTask::List { paths, .. } => paths,
                CpTask::Copy { arguments, lists, .. } => [arguments, lists].concat(),
                CpTask::Take { place, .. } => vec![place],
            };
            for path in paths {
                if let Ok(text) = path.to_os_string() {
                    assert_eq!(crate::transfer::cp::message::RemotePath::new(&text), path);
                }
            }
        }
    });
}

/// The far end's reply.
#[test]
fn cp_answer() {
    bolero::check!().with_iterations(ITERATIONS).with_max_len(LARGEST).for_each(|input: &[u8]| {
        for answer in read::<CpReply>(input) {
            if let CpReply::Refused { message, .. } = answer {
                let shown = terminal::tamed(&message);
                assert!(shown.chars().all(|character| character == '\n' || !character.is_control()), "{shown:?}");
            }
        }
    });
}

/// The status of processes, as text.
#[test]
fn status_text() {
    bolero::check!().with_iterations(ITERATIONS).with_max_len(LARGEST).for_each(|input: &[u8]| {
        let Ok(process) = serde_json::from_slice::<ProcessStatus>(input) else { return };
        for session in &process.sessions {
            status::explanation(&process, session);
        }
        status::text(std::slice::from_ref(&process), None);
        status::text(&[process], Some(80));
    });
}
