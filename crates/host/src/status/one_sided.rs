//! A path that only one end declares dedicated, or that an end without a capacity does.

use fairwave_proto::{PathDeclaration, PathDeclarations};
use fairwave_units::Rate;

/// The reason why a path is treated as shared although an end declares it dedicated, and what to type at which end;
/// `None` if both declare the same and know their capacities. `here` is this end's capacity, if known.
pub(super) fn one_sided(declared: PathDeclarations, here: Option<Rate>) -> Option<String> {
    let PathDeclarations { here: own, there } = declared;
    let why = match (own, there) {
        (PathDeclaration::Shared, PathDeclaration::Shared)
        | (PathDeclaration::Dedicated, PathDeclaration::Dedicated) => return None,
        (PathDeclaration::Shared, _) => "only the peer sets --path dedicated",
        (_, PathDeclaration::Shared) => "only this end sets --path dedicated",
        (PathDeclaration::WithoutCapacity, PathDeclaration::WithoutCapacity) => "the capacity of both ends is unknown",
        (PathDeclaration::WithoutCapacity, PathDeclaration::Dedicated) => "the capacity of this end is unknown",
        (PathDeclaration::Dedicated, PathDeclaration::WithoutCapacity) => "the capacity of the peer is unknown",
    };
    let missing = |declared, is_known| match declared {
        PathDeclaration::Shared if is_known => Some("--path dedicated"),
        PathDeclaration::Shared => Some("--path dedicated --capacity RATE"),
        PathDeclaration::WithoutCapacity => Some("--capacity RATE"),
        PathDeclaration::Dedicated => None,
    };
    let ends = [(missing(own, here.is_some()), "here"), (missing(there, false), "at the peer")];
    let types: Vec<_> =
        ends.into_iter().filter_map(|(what, place)| what.map(|what| format!("`{what}` {place}"))).collect();
    Some(format!("the path is treated as shared because {why}: add {}", types.join(" and ")))
}

#[cfg(test)]
mod tests {
    use PathDeclaration::{Dedicated, Shared, WithoutCapacity};

    use super::*;

    #[test]
    fn one_sided__says_what_to_type_at_which_end() {
        let hint = |here, there, capacity: Option<Rate>| one_sided(PathDeclarations { here, there }, capacity);
        let known = Some(Rate::gbps(1.0));
        assert_eq!([hint(Shared, Shared, None), hint(Dedicated, Dedicated, known)], [None, None]);
        let begin = "the path is treated as shared because ";
        let rate = "--capacity RATE";
        for (here, there, capacity, end) in [
            (
                Dedicated,
                Shared,
                known,
                format!("only this end sets --path dedicated: add `--path dedicated {rate}` at the peer"),
            ),
            (Shared, Dedicated, known, "only the peer sets --path dedicated: add `--path dedicated` here".to_owned()),
            (
                Shared,
                Dedicated,
                None,
                format!("only the peer sets --path dedicated: add `--path dedicated {rate}` here"),
            ),
            (WithoutCapacity, Dedicated, None, format!("the capacity of this end is unknown: add `{rate}` here")),
            (
                Dedicated,
                WithoutCapacity,
                known,
                format!("the capacity of the peer is unknown: add `{rate}` at the peer"),
            ),
            (
                WithoutCapacity,
                WithoutCapacity,
                None,
                format!("the capacity of both ends is unknown: add `{rate}` here and `{rate}` at the peer"),
            ),
            (
                WithoutCapacity,
                Shared,
                None,
                format!(
                    "only this end sets --path dedicated: add `{rate}` here and `--path dedicated {rate}` at the peer"
                ),
            ),
        ] {
            assert_eq!(hint(here, there, capacity), Some(format!("{begin}{end}")), "{here:?} {there:?}");
        }
    }
}
