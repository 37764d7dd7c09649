//! The user's own schemes, which one thread adds to the registry while it builds and runs a scenario.

use std::cell::Cell;

use super::entry::{self, Scheme};
use super::node_rule::NodeRule;
use super::option::OptionSpec;
use crate::node;
use crate::session::MakeController;

thread_local! {
    /// This thread's schemes in addition to the registry.
    static OWN: Cell<&'static [&'static Scheme]> = const { Cell::new(&[]) };
}

/// The entry of a user's session rule, which the packet model runs. Its options are those of the sender
/// ([`SENDER_OPTIONS`](crate::session::SENDER_OPTIONS)), if it takes them, and the rule's.
pub const fn own_session(
    name: &'static str,
    help: &'static str,
    options: &'static [OptionSpec],
    make: MakeController,
) -> Scheme {
    entry::window(name, help, "", options, make)
}

/// The entry of a user's node rule, for both models. Its first options are
/// [`DRIVER_OPTIONS`](crate::node::DRIVER_OPTIONS).
pub const fn own_node(
    name: &'static str,
    help: &'static str,
    options: &'static [OptionSpec],
    rule: NodeRule,
) -> Scheme {
    node::entry(name, help, "", options, rule)
}

/// Runs `work` with these schemes added to the registry on this thread: scenario parsing and the constructors of rules
/// find them by name.
///
/// If scenarios are built and run on several threads, each of them needs this call.
pub fn with_own<T>(own: &'static [&'static Scheme], work: impl FnOnce() -> T) -> T {
    /// Restores the previous schemes, also on unwinding.
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

/// The names of this thread's own schemes.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    OWN.get().iter().map(|scheme| scheme.name)
}

#[cfg(test)]
mod tests {
    use super::super::{find, known_names};
    use super::*;

    static MINE: Scheme = entry::session("mine", "a rule of one's own", "");
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
