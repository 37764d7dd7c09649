//! The transport's model as a scheme of the lab.

use fairwave_units::Time;

use super::super::bbr::BbrConfig;
use super::super::modelled::{MODEL_OPTIONS, Modelled, OPTIONS};
use super::PathConfig;
use super::switches::Switches;
use crate::scheme::entry;
use crate::scheme::option::flag;
use crate::scheme::{OptionSpec, Scheme};

/// The scheme's registry entry.
pub(crate) const SCHEME: Scheme = Scheme {
    answers_marks: true,
    ..entry::window(
        "path",
        "the transport's model of a shared path: bbr with amendments, each an option",
        "draft-ietf-ccwg-bbr",
        &ALL_OPTIONS,
        |options, window| {
            let amendments = Switches::from_names(|name| flag(name, "true", "").of(options));
            let start = move |now: Time, model: BbrConfig| {
                let packet = model.packet;
                PathConfig { model, amendments, ..PathConfig::new(packet) }.path(now)
            };
            Ok(Box::new(Modelled::new(options, &window, amendments.marks, start)))
        },
    )
};

const ALL_OPTIONS: [OptionSpec; MODEL_OPTIONS + Switches::NAMES.len()] = {
    let mut all = [OPTIONS[0]; MODEL_OPTIONS + Switches::NAMES.len()];
    let mut at = 0;
    while at < MODEL_OPTIONS {
        all[at] = OPTIONS[at];
        at += 1;
    }
    while at < all.len() {
        let (name, help) = Switches::NAMES[at - MODEL_OPTIONS];
        all[at] = flag(name, "true", help).spec();
        at += 1;
    }
    all
};
