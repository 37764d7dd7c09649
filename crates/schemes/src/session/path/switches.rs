//! Which amendments are on.

/// Declares the amendments: a field each, and its name and help for the lists of options.
macro_rules! switches {
    ($($name:ident: $help:literal,)*) => {
        /// The amendments that are on. All of them by default, which is the transport's model; with none it is the draft.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(clippy::struct_excessive_bools, reason = "one switch an amendment")]
        pub struct Switches {
            $(#[doc = $help] pub $name: bool,)*
        }

        impl Switches {
            /// Name and help of each amendment.
            pub const NAMES: [(&'static str, &'static str); [$($help),*].len()] = [$((stringify!($name), $help)),*];

            /// All amendments, or none.
            pub const fn all(is_on: bool) -> Self {
                Self { $($name: is_on),* }
            }

            /// The amendments of which `is_on` says so, by name.
            pub fn from_names(mut is_on: impl FnMut(&'static str) -> bool) -> Self {
                Self { $($name: is_on(stringify!($name))),* }
            }
        }
    };
}

switches! {
    losses: "random loss of the path is not congestion",
    late_losses: "losses of a probe that are reported after its end have been answered",
    neighbours: "yields when a queue of other flows overflows",
    headroom: "leaves headroom only if other flows are on the path",
    foreign_queue: "keeps less in a queue of other flows",
    compete: "competes by loss while other flows keep the queue full",
    slowdown: "follows a path that became slower within a round trip",
    start: "startup follows the window",
    marks: "answers congestion marks",
    rtt_probe: "puts probes for the round-trip time off while the minimum is seen again",
    catch_up: "a queue made by catching up is not that of others",
    aggregation: "an excess of aggregated arrivals counts for five to ten rounds",
    reports: "allows for reports less often than once per round trip",
}

impl Default for Switches {
    fn default() -> Self {
        Self::all(true)
    }
}
