//! Schemes in documents: a scheme that no page describes fails here.

use std::collections::BTreeSet;

use fairwave_schemes::scheme::schemes;

use super::{code_words, pages};

#[test]
fn docs__name_every_scheme() {
    let mut named = BTreeSet::new();
    for (_, text) in pages().into_iter().filter(|(path, _)| path.starts_with("docs")) {
        named.extend(
            code_words(&text).iter().flat_map(|word| word.split([' ', ',']).map(str::to_owned).collect::<Vec<_>>()),
        );
    }
    let missing: Vec<&str> = schemes().iter().map(|scheme| scheme.name).filter(|name| !named.contains(*name)).collect();
    assert!(missing.is_empty(), "no page of docs/ names {missing:?}");
}
