use super::*;

#[test]
fn json__has_exactly_the_keys_of_the_contract() {
    let listing = run(&["schemes", "--json"]).json().remove(0);
    assert_eq!(keys(&listing), words("schemes"));
    let schemes = listing["schemes"].as_array().unwrap();
    for scheme in schemes {
        assert_eq!(keys(scheme), words("name kind needs options header_bytes cites"));
    }
    let names: BTreeSet<_> = schemes.iter().map(|scheme| scheme["name"].as_str().unwrap()).collect();
    let contract = "newreno sack hstcp htcp stcp aimd bic cubic vegas fast xcp ixcp pxcp vcp aecp rcp jetmax udt gtp \
                    gtp-printed cbr abr-charny abr-hou";
    assert!(words(contract).is_subset(&names), "{names:?}");
    let gtp = schemes.iter().find(|scheme| scheme["name"] == "gtp").unwrap();
    assert_eq!(
        keys(&gtp["options"]),
        words("alpha beta interval phase drain fair_start budget exponential_start path find_capacity wire")
    );
}

#[test]
fn text__says_what_runs_and_what_does_not_yet() {
    let text = run(&["schemes"]).good();
    let line = |name: &str| text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap().to_owned();
    assert!(line("gtp").contains("fluid"));
    assert!(line("cubic").contains("packet"));
    assert!(line("vcp").contains("packet"));
    assert!(line("jetmax").contains("not yet"));
}

#[test]
fn name__shows_one_with_its_options() {
    let text = run(&["schemes", "gtp"]).good();
    assert!(text.contains("fair_start") && text.contains("default"), "{text}");
    assert!(
        text.contains("can      runs on hosts, takes a share, keeps minimum rates, yields to other traffic\n"),
        "{text}"
    );
    assert!(!run(&["schemes", "cubic"]).good().contains("\n  can "));
    assert!(run(&["schemes", "gpt"]).refused().contains("unknown scheme \"gpt\""));
}
