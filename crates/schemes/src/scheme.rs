//! The registry of schemes: names, capabilities, options and header bytes.
//!
//! [`Scheme`] is an entry, [`schemes`] the list, [`find`] looks up a name. An [`OptionSpec`] has the domain of an
//! option and parses it ([`OptionSpec::read`], [`OptionSpec::read_text`]); a run carries [`Options`].

mod config;
pub(crate) mod entry;
mod node_rule;
pub(crate) mod option;
mod own;
mod registry;

pub(crate) use config::config;
pub use entry::{Model, Scheme, SchemeKind};
pub use node_rule::{MakeRule, NodeRule};
pub use option::{Domain, GivenValue, OptionError, OptionSpec, OptionType, OptionValue, Options, TypedOption};
pub use own::{own_node, own_session, with_own};
pub use registry::{find, known_names, schemes, unavailable};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::gtp_options::ALPHA;
    use crate::session::tcp_options::SACK;
    use std::collections::BTreeSet;

    #[test]
    fn schemes__have_every_name_of_the_contract_once() {
        let names = "newreno sack hstcp htcp stcp aimd bic cubic vegas fast xcp ixcp pxcp vcp aecp rcp jetmax udt gtp \
                     gtp-printed cbr endpoint-xcp abr-charny abr-hou rbudp tally";
        let expected: BTreeSet<_> = names.split_whitespace().collect();
        let listed: BTreeSet<_> = schemes().iter().map(|scheme| scheme.name).collect();
        assert!(listed.is_superset(&expected), "{listed:?}");
        assert_eq!(schemes().len(), listed.len(), "a name is listed twice");
    }

    #[test]
    fn unavailable__names_no_scheme_that_runs() {
        for name in ["evlf-tcp", "pcp", "sabul", "cadpc", "eprca"] {
            assert!(find(name).is_none() && unavailable(name).is_some(), "{name}");
        }
        assert_eq!(unavailable("cubic"), None);
    }

    #[test]
    fn schemes__every_default_lies_in_its_domain() {
        for scheme in schemes() {
            let mut names = BTreeSet::new();
            for option in scheme.options {
                assert!(names.insert(option.name), "{} lists {} twice", scheme.name, option.name);
                assert!(!option.help.is_empty());
                option.read_text(option.default).unwrap_or_else(|error| panic!("{}: {error}", scheme.name));
            }
        }
    }

    #[test]
    fn schemes__fluid_runs_the_node_rules_and_aecp() {
        for scheme in schemes() {
            let is_fluid = scheme.kind == SchemeKind::Node || scheme.name == "aecp";
            assert_eq!(scheme.runs_in(Model::Fluid), is_fluid, "{}", scheme.name);
        }
    }

    #[test]
    fn node__is_set_for_node_rules_only() {
        for scheme in schemes() {
            assert_eq!(scheme.node.is_some(), scheme.kind == SchemeKind::Node, "{}", scheme.name);
            let Some(rule) = scheme.node else { continue };
            assert_eq!(scheme.runs_in(Model::Packet), rule.runs_on_hosts, "{}", scheme.name);
            for option in ["interval", "phase"] {
                assert!(scheme.option(option).is_some(), "{} {option}", scheme.name);
            }
        }
        let words = |name: &str| find(name).and_then(|scheme| scheme.node).unwrap().words();
        let can = ["runs on hosts", "takes a share", "keeps minimum rates", "yields to other traffic"];
        assert_eq!(words("gtp"), can);
        assert_eq!(words("gtp-printed"), words("gtp"));
        assert_eq!(words("abr-charny"), ["runs on hosts", "needs claims"]);
        assert_eq!(words("abr-hou"), ["runs on hosts", "keeps minimum rates", "needs claims"]);
        assert!(words("tally").contains(&"exchanges claims and grants"), "{:?}", words("tally"));
    }

    #[test]
    fn read__set_option_overrides_default() {
        let gtp = find("gtp").unwrap();
        let mut options = Options::default();
        assert_eq!(gtp.read(&ALPHA, &options), Some(0.1));
        ALPHA.set(&mut options, 0.025);
        assert_eq!(gtp.read(&ALPHA, &options), Some(0.025));
        assert_eq!(gtp.read(&SACK, &options), None);
        // The default is the scheme's.
        assert_eq!(find("newreno").unwrap().read(&SACK, &options), Some(false));
        assert_eq!(find("sack").unwrap().read(&SACK, &options), Some(true));
        assert_eq!(find("GTP"), None);
    }
}
