//! The kinds of sources. The file of each has a [`SourceKind`].

use fairwave_scenario::Scenario;
use fairwave_schemes::scheme::Scheme;

use crate::error::SimError;
use crate::gtp::{self, GtpHosts};
use crate::kind::SourceKind;
use crate::transit::Transit;
use crate::{constant_source, homa, netblt, rbudp, udt, window_source};

/// All kinds. Each scheme has at most one of them.
const KINDS: [SourceKind; 7] =
    [window_source::KIND, constant_source::KIND, udt::KIND, rbudp::KIND, netblt::KIND, homa::KIND, gtp::KIND];

/// The kind of a scheme's sources; `None` if the packet model does not run it.
pub(crate) fn kind_of(scheme: &Scheme) -> Option<&'static SourceKind> {
    KINDS.iter().find(|kind| (kind.runs)(scheme))
}

/// Makes the shared state of each kind.
pub(crate) fn prepare(transit: &mut Transit<'_>, hosts: &mut GtpHosts, scenario: &Scenario) -> Result<(), SimError> {
    KINDS.iter().try_for_each(|kind| (kind.prepare)(transit, hosts, scenario))
}

#[cfg(test)]
mod tests {
    use fairwave_schemes::scheme::{Model, schemes};

    use super::*;

    #[test]
    fn kind_of__every_scheme_of_the_packet_model_has_one_kind() {
        for scheme in schemes() {
            let kinds = KINDS.iter().filter(|kind| (kind.runs)(scheme)).count();
            assert_eq!(kinds, usize::from(scheme.runs_in(Model::Packet)), "{}", scheme.name);
        }
    }
}
