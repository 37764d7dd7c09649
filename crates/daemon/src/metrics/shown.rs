//! The part of a machine's state that is public.

use std::collections::BTreeSet;

use fairwave_host::machine::{MachineSnapshot, RowSnapshot};

/// Max sessions shown individually: those that use most. Sums include them all.
pub(super) const MAX_SESSIONS: usize = 200;
/// Longer words of a process about itself are cut: letters.
const MAX_WORD: usize = 64;

/// A machine without private data: peers, and sessions beyond those that use most. Also returns the number of sessions
/// left out.
///
/// A process chooses its sessions' names. Of two rows of one name the second is left out: to Prometheus two lines of
/// one name are an error, and one process must not blind it.
pub(super) fn shown(machine: &MachineSnapshot) -> (MachineSnapshot, usize) {
    let mut shown = machine.clone();
    shown.sessions.sort_by(|one, other| other.measured_bps.total_cmp(&one.measured_bps));
    let mut names = BTreeSet::new();
    shown.sessions.retain(|row| names.insert((row.pid, row.id.clone(), row.receives)));
    shown.sessions.truncate(MAX_SESSIONS);
    for row in &mut shown.sessions {
        let RowSnapshot { peer, command, id, limited_by, .. } = row;
        *peer = None;
        [&mut *command, id].into_iter().chain(limited_by).for_each(cut);
    }
    // In an order that does not change with every look.
    shown.sessions.sort_by(|one, other| (one.pid, &one.id, one.receives).cmp(&(other.pid, &other.id, other.receives)));
    let left_out = machine.sessions.len() - shown.sessions.len();
    (shown, left_out)
}

fn cut(word: &mut String) {
    if let Some((at, _)) = word.char_indices().nth(MAX_WORD) {
        word.truncate(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pid: u32, id: &str, measured_bps: f64) -> RowSnapshot {
        let peer = "192.0.2.1".parse().ok();
        RowSnapshot { pid, id: id.into(), measured_bps, peer, command: "é".repeat(100), ..RowSnapshot::default() }
    }

    #[test]
    fn shown__has_no_peers_and_no_name_twice() {
        let sessions = vec![row(2, "a", 5.0), row(1, "a", 1.0), row(2, "a", 7.0)];
        let (shown, left_out) = shown(&MachineSnapshot { sessions, ..MachineSnapshot::default() });
        assert_eq!(left_out, 1);
        let seen: Vec<_> = shown.sessions.iter().map(|row| (row.pid, row.measured_bps)).collect();
        assert_eq!(seen, [(1, 1.0), (2, 7.0)]);
        assert!(shown.sessions.iter().all(|row| row.peer.is_none() && row.command.chars().count() == 64));
    }

    #[test]
    fn shown__are_those_that_use_most() {
        let sessions = (0..1000).map(|pid| row(pid, "a", f64::from(pid))).collect();
        let (shown, left_out) = shown(&MachineSnapshot { sessions, ..MachineSnapshot::default() });
        assert_eq!((shown.sessions.len(), left_out), (200, 800));
        assert!(shown.sessions.iter().all(|row| row.pid >= 800));
    }
}
