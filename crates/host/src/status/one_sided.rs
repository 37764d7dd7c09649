//! A path that one end alone calls dedicated, or that an end without a capacity does.

use fairwave_proto::{PathWish, PathWishes};
use fairwave_units::Rate;

/// Why a path is taken for one that others use although an end says otherwise, and what to type at which end; nothing
/// where both say the same and know their capacities. `here` is this end's capacity, where it is known.
pub(super) fn one_sided(wishes: PathWishes, here: Option<Rate>) -> Option<String> {
    let PathWishes { here: own, there } = wishes;
    let why = match (own, there) {
        (PathWish::Shared, PathWish::Shared) | (PathWish::Dedicated, PathWish::Dedicated) => return None,
        (PathWish::Shared, _) => "only the other end calls it dedicated",
        (_, PathWish::Shared) => "only this end calls it dedicated",
        (PathWish::WithoutCapacity, PathWish::WithoutCapacity) => "neither end knows its capacity",
        (PathWish::WithoutCapacity, PathWish::Dedicated) => "this end does not know its capacity",
        (PathWish::Dedicated, PathWish::WithoutCapacity) => "the other end does not know its capacity",
    };
    let missing = |wish, is_known| match wish {
        PathWish::Shared if is_known => Some("--path dedicated"),
        PathWish::Shared => Some("--path dedicated --capacity \"RATE OF THE LINE\""),
        PathWish::WithoutCapacity => Some("--capacity \"RATE OF THE LINE\""),
        PathWish::Dedicated => None,
    };
    let ends = [(missing(own, here.is_some()), "here"), (missing(there, false), "at the other end")];
    let types: Vec<_> =
        ends.into_iter().filter_map(|(what, place)| what.map(|what| format!("`{what}` {place}"))).collect();
    Some(format!("the path is taken for one that others use, since {why}: add {}", types.join(" and ")))
}

#[cfg(test)]
mod tests {
    use PathWish::{Dedicated, Shared, WithoutCapacity};

    use super::*;

    #[test]
    fn one_sided__says_what_to_type_at_which_end() {
        let told = |here, there, capacity: Option<Rate>| one_sided(PathWishes { here, there }, capacity);
        let known = Some(Rate::gbps(1.0));
        assert_eq!([told(Shared, Shared, None), told(Dedicated, Dedicated, known)], [None, None]);
        let begin = "the path is taken for one that others use, since ";
        let rate = "--capacity \"RATE OF THE LINE\"";
        for (here, there, capacity, end) in [
            (
                Dedicated,
                Shared,
                known,
                format!("only this end calls it dedicated: add `--path dedicated {rate}` at the other end"),
            ),
            (Shared, Dedicated, known, "only the other end calls it dedicated: add `--path dedicated` here".to_owned()),
            (
                Shared,
                Dedicated,
                None,
                format!("only the other end calls it dedicated: add `--path dedicated {rate}` here"),
            ),
            (WithoutCapacity, Dedicated, None, format!("this end does not know its capacity: add `{rate}` here")),
            (
                Dedicated,
                WithoutCapacity,
                known,
                format!("the other end does not know its capacity: add `{rate}` at the other end"),
            ),
            (
                WithoutCapacity,
                WithoutCapacity,
                None,
                format!("neither end knows its capacity: add `{rate}` here and `{rate}` at the other end"),
            ),
            (
                WithoutCapacity,
                Shared,
                None,
                format!(
                    "only this end calls it dedicated: add `{rate}` here and `--path dedicated {rate}` at the other end"
                ),
            ),
        ] {
            assert_eq!(told(here, there, capacity), Some(format!("{begin}{end}")), "{here:?} {there:?}");
        }
    }
}
