//! The programs at the nodes of a plan.

use std::path::{Path, PathBuf};

use crate::end_message::{Part, Setup};
use crate::plan::Plan;

/// Distribution of a node's sessions over processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Processes {
    /// All of them: a process is an end node.
    #[default]
    Node,
    /// One: the sessions of a node share its capacity by a daemon, which is an additional process.
    Session,
}

/// A program, and its place in the plan.
pub(crate) struct Program {
    pub(crate) place: usize,
    pub(crate) setup: Setup,
}

/// The programs of a plan, daemons first, so that the others find them. Daemons have their sockets in `dir`.
pub(crate) fn programs(plan: &Plan, processes: Processes, dir: &Path) -> Vec<Program> {
    let of = |place: usize, setup: Setup| Program { place, setup };
    let setups = || plan.places.iter().map(|place| &place.setup).enumerate();
    if processes == Processes::Node {
        return setups().map(|(place, setup)| of(place, setup.clone())).collect();
    }
    // A node with only kernel TCP shares nothing here.
    let has_daemon = |setup: &Setup| setup.rule.is_some();
    let socket = |place: usize| -> PathBuf { dir.join(format!("{place}.sock")) };
    let daemons = setups().filter(|(_, setup)| has_daemon(setup)).map(|(place, setup)| {
        let bare = Setup { gives: Vec::new(), takes: Vec::new(), ..setup.clone() };
        of(place, Setup { is_daemon: true, daemon: Some(socket(place)), ..bare })
    });
    let ends = setups().flat_map(|(place, setup)| {
        let daemon = has_daemon(setup).then(|| socket(place));
        let one = move |gives: Vec<Part>, takes: Vec<Part>| {
            let is_tcp = gives.iter().chain(&takes).all(|part| part.congestion.is_some());
            let rule = setup.rule.clone().filter(|_| !is_tcp);
            of(place, Setup { gives, takes, rule, daemon: daemon.clone(), ..setup.clone() })
        };
        let given = setup.gives.iter().map(|part| (vec![part.clone()], Vec::new()));
        let taken = setup.takes.iter().map(|part| (Vec::new(), vec![part.clone()]));
        given.chain(taken).map(move |(gives, takes)| one(gives, takes))
    });
    daemons.chain(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairwave_scenario::{Document, Selection};

    const TWO_TO_ONE: &str = "
        name = 'two-to-one'
        duration = '1 s'
        scheme = 'gtp'
        node = [{ name = 's{1..2}', capacity = '500 Mb/s' }, { name = 'd1', capacity = '400 Mb/s' }]
        session = [
            { name = 'a', from = 's1', to = 'd1', rtt = '10 ms' },
            { name = 'b', from = 's2', to = 'd1', rtt = '60 ms' },
            { name = 'c', from = 's2', to = 'd1', rtt = '20 ms', scheme = 'kernel:cubic' },
        ]";

    #[test]
    fn programs__of_sessions_are_daemons_and_one_per_end() {
        let document = Document::parse("test.toml", TWO_TO_ONE.as_bytes()).unwrap();
        let case = document.cases(&Selection::default()).unwrap().remove(0);
        let plan = Plan::of(&document.build(&case).unwrap_or_else(|error| panic!("{error}")).0).unwrap();
        assert_eq!(programs(&plan, Processes::Node, Path::new("/x")).len(), 3);
        let all = programs(&plan, Processes::Session, Path::new("/x"));
        let place = |program: &Program| (program.setup.is_daemon, program.place);
        let expected =
            [(true, 0), (true, 1), (true, 2), (false, 0), (false, 1), (false, 1), (false, 2), (false, 2), (false, 2)];
        assert_eq!(all.iter().map(place).collect::<Vec<_>>(), expected);
        for program in &all {
            let Setup { gives, takes, daemon, is_daemon, rule, .. } = &program.setup;
            assert_eq!(gives.len() + takes.len(), usize::from(!is_daemon));
            assert_eq!(daemon.as_deref(), Some(Path::new(&format!("/x/{}.sock", program.place))));
            // Kernel TCP is not included.
            let is_tcp = gives.iter().chain(takes).any(|part| part.congestion.is_some());
            assert_eq!(rule.is_none(), is_tcp);
        }
    }
}
