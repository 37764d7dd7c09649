//! Schemes of one's own: beside the list, for as long as one thread builds and runs a scenario.

use std::cell::Cell;

use super::{NodeRule, OptionSpec, Scheme, registry, schemes};
use crate::node;
use crate::session::MakeController;

thread_local! {
    /// The schemes that this thread knows besides the list.
    static OWN: Cell<&'static [&'static Scheme]> = const { Cell::new(&[]) };
}

/// The entry of a session's rule of one's own, which the packet model runs. Its options are those of the sender
/// ([`SENDER_OPTIONS`](crate::session::SENDER_OPTIONS)), if it takes them, and the rule's.
pub const fn own_session(
    name: &'static str,
    help: &'static str,
    options: &'static [OptionSpec],
    make: MakeController,
) -> Scheme {
    registry::window(name, help, "", options, make)
}

/// The entry of a node's rule of one's own, for both models. Its options begin with
/// [`DRIVER_OPTIONS`](crate::node::DRIVER_OPTIONS).
pub const fn own_node(
    name: &'static str,
    help: &'static str,
    options: &'static [OptionSpec],
    rule: NodeRule,
) -> Scheme {
    node::entry(name, help, "", options, rule)
}

/// Does `work` while this thread knows these schemes besides those of the list: what reads a scenario, and what makes
/// the rules of its nodes and sessions, finds them by name.
///
/// Where scenarios are built and run on several threads, each of them needs this call.
pub fn with_own<T>(own: &'static [&'static Scheme], work: impl FnOnce() -> T) -> T {
    /// Gives back what was known before, also when the work unwinds.
    struct Before(&'static [&'static Scheme]);
    impl Drop for Before {
        fn drop(&mut self) {
            OWN.set(self.0);
        }
    }
    let _before = Before(OWN.replace(own));
    work()
}

/// The scheme of that name among this thread's own.
pub(super) fn find_own(name: &str) -> Option<&'static Scheme> {
    OWN.get().iter().find(|scheme| scheme.name == name).copied()
}

/// The names that [`find`](super::find) knows here: those of the list, and this thread's own.
pub fn known_names() -> impl Iterator<Item = &'static str> {
    schemes().iter().map(|scheme| scheme.name).chain(OWN.get().iter().map(|scheme| scheme.name))
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::*;

    static MINE: Scheme = registry::session("mine", "a rule of one's own", "");
    static ALL_MINE: &[&Scheme] = &[&MINE];

    #[test]
    #[expect(clippy::disallowed_methods, reason = "what another thread knows is what is tested")]
    fn with_own__lasts_as_long_as_the_work() {
        let is_known = || find("mine").is_some() && known_names().any(|name| name == "mine");
        assert!(!is_known());
        assert!(with_own(ALL_MINE, is_known));
        assert!(!with_own(ALL_MINE, || std::thread::spawn(is_known).join().unwrap()));
        let unwound = std::panic::catch_unwind(|| with_own(ALL_MINE, || std::panic::resume_unwind(Box::new(()))));
        assert!(unwound.is_err() && !is_known());
    }
}
