use super::*;

struct Known;

impl Names for Known {
    fn user(&self, name: &str) -> Option<u32> {
        [("ann", 1000), ("bob", 1001), ("eve", 1002)]
            .into_iter()
            .find(|(known, _)| *known == name)
            .map(|(_, user)| user)
    }

    fn group(&self, name: &str) -> Option<Vec<u32>> {
        (name == "staff").then(|| vec![1000, 1001])
    }
}

fn read(text: &str) -> Result<Settings, String> {
    let base = Settings { yields: Some(2.0), ..Settings::at("d.sock".into()) };
    parse(Path::new("daemon.toml"), text, &base, &Known).map_err(|error| error.to_string())
}

#[test]
fn parse__reads_all_that_may_stand_there() {
    let settings = read(
        "yield = 0.5\n\
         [[user]]\ngroup = \"staff\"\nweight = 4\nsessions = 100\n\
         [[user]]\nname = \"bob\"\nminimum = \"100 Mb/s\"\nmaximum = \"1 Gb/s\"\n\
         [[user]]\nname = \"77\"\n\
         [[nic]]\nname = \"eth0\"\nsend = \"10 Gb/s\"\nreceive = \"5 Gb/s\"\nshare = 0.8\n\
         [[nic]]\nname = \"eth1\"\n",
    )
    .unwrap();
    let user = |user, weight, minimum, maximum, sessions| UserSettings {
        user,
        terms: Terms { weight, minimum, maximum, ..Terms::default() },
        sessions,
    };
    assert_eq!(
        settings.users,
        [
            user(77, 1.0, Rate::ZERO, None, None),
            user(1000, 4.0, Rate::ZERO, None, Some(100)),
            // By name, though in the group.
            user(1001, 1.0, Rate::mbps(100.0), Some(Rate::gbps(1.0)), None),
        ]
    );
    let card = |name: &str, send, receive, share| CardSettings { name: name.into(), send, receive, share };
    assert_eq!(
        settings.cards,
        [card("eth0", Some(Rate::gbps(10.0)), Some(Rate::gbps(5.0)), 0.8), card("eth1", None, None, 1.0)]
    );
    assert_eq!((settings.yields, settings.socket.to_str()), (Some(0.5), Some("d.sock")));
    // Settings that it does not contain stay.
    assert_eq!(read("").unwrap(), Settings { yields: Some(2.0), ..Settings::at("d.sock".into()) });
}

#[test]
fn parse__names_the_line_the_value_and_the_limit() {
    for (text, expected) in [
        (
            "\n[[user]]\nname = \"zoe\"\n",
            "daemon.toml:3: \"zoe\" is not a user of this system\nhint: run `getent passwd`",
        ),
        ("[[user]]\ngroup = \"x\"\n", "daemon.toml:2: \"x\" is not a group of this system"),
        ("[[user]]\nweight = 2\n", "daemon.toml:2: [[user]] needs name or group"),
        ("[[user]]\nname = \"ann\"\ngroup = \"staff\"\n", "daemon.toml:2: [[user]] has both name and group"),
        ("[[user]]\nname = \"ann\"\n[[user]]\nname = \"1000\"\n", "daemon.toml:4: \"1000\" has two [[user]] tables"),
        ("[[user]]\nname = \"ann\"\nweight = 0\n", "daemon.toml:3: weight 0 must be above 0 and at most 1000000"),
        ("[[user]]\nname = \"ann\"\nweight = nan\n", "daemon.toml:3: weight NaN must be above 0"),
        ("[[user]]\nname = \"ann\"\nweight = inf\n", "daemon.toml:3: weight inf must be above 0"),
        ("[[user]]\nname = \"ann\"\nminimum = \"5\"\n", "daemon.toml:3: minimum \"5\": "),
        ("[[user]]\nname = \"ann\"\nmaximum = \"0 b/s\"\n", "daemon.toml:3: maximum \"0 b/s\" must be above zero"),
        (
            "[[user]]\nname = \"ann\"\nminimum = \"2 Mb/s\"\nmaximum = \"1 Mb/s\"\n",
            "daemon.toml:4: maximum 1 Mb/s is below minimum 2 Mb/s",
        ),
        ("[[user]]\nname = \"ann\"\nsessions = -1\n", "daemon.toml:3: invalid value: integer `-1`"),
        ("[[user]]\nnames = \"ann\"\n", "daemon.toml:2: unknown field `names`"),
        ("[[nic]]\nsend = \"1 Gb/s\"\n", "daemon.toml:1: missing field `name`"),
        ("[[nic]]\nname = \"eth0/../x\"\n", "daemon.toml:2: \"eth0/../x\" is not a network interface name"),
        ("[[nic]]\nname = \"a\"\n[[nic]]\nname = \"a\"\n", "daemon.toml:4: \"a\" has two [[nic]] tables"),
        ("[[nic]]\nname = \"a\"\nshare = 1.5\n", "daemon.toml:3: share 1.5 must be above 0 and at most 1"),
        ("[[nic]]\nname = \"a\"\nsend = \"0 b/s\"\n", "daemon.toml:3: send \"0 b/s\" must be above zero"),
        ("yield = -1\n", "daemon.toml:1: weight -1 must be above 0"),
        ("user = 3\n", "daemon.toml:1: invalid type: integer `3`"),
        ("[[user\n", "daemon.toml:1: "),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.starts_with(expected), "{text:?} gives\n{error}\nand not\n{expected}");
        assert!(error.contains("\nhint: "), "{error}");
    }
}

#[test]
fn parse__promises_no_more_than_nine_tenths_of_what_there_is() {
    let of = |minimum: &str| {
        let user = |name| format!("[[user]]\nname = \"{name}\"\nminimum = \"{minimum}\"\n");
        let cards = "[[nic]]\nname = \"eth0\"\nsend = \"2 Gb/s\"\nreceive = \"1 Gb/s\"\nshare = 0.8\n";
        read(&format!("{}{}{cards}", user("ann"), user("bob")))
    };
    // 0.9 x 0.8 x 1000 / 2 = 360.
    assert!(of("360 Mb/s").is_ok());
    let error = of("361 Mb/s").unwrap_err();
    assert!(error.starts_with("daemon.toml:6: minimum rates add up to 722 Mb/s, more than 90 %"), "{error}");
    // If one capacity is for everything, it is that.
    let capacity = CardCapacity { send: Some(Rate::mbps(100.0)), receive: None };
    let base = Settings { everything: Some(capacity), ..Settings::at("d.sock".into()) };
    let text = "[[user]]\nname = \"ann\"\nminimum = \"91 Mb/s\"\n";
    assert!(parse(Path::new("daemon.toml"), text, &base, &Known).is_err());
    // A group's minimum is promised to each of its members.
    let text = "[[user]]\ngroup = \"staff\"\nminimum = \"50 Mb/s\"\n";
    assert!(parse(Path::new("daemon.toml"), text, &base, &Known).is_err());
}

#[test]
fn read__of_a_file_that_is_not_there_names_it() {
    let error = super::read(Path::new("/nowhere/daemon.toml"), &Settings::at("d.sock".into())).unwrap_err();
    assert!(error.to_string().starts_with("/nowhere/daemon.toml: "), "{error}");
}

#[test]
fn shipped__file_is_one() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../etc/daemon.toml");
    let text = std::fs::read_to_string(&place).unwrap();
    // Its examples are commented out: without the "#" they are valid.
    let with_examples: String =
        text.lines().map(|line| line.strip_prefix("#: ").unwrap_or(line).to_owned() + "\n").collect();
    let base = Settings::at("d.sock".into());
    assert_eq!(parse(&place, &text, &base, &Known).unwrap(), base);
    let settings = parse(&place, &with_examples, &base, &Known).unwrap();
    assert!(!settings.users.is_empty() && !settings.cards.is_empty() && settings.yields.is_some());
}

proptest::proptest! {
    #[test]
    fn parse__never_panics(text in "(\\[\\[|\\]\\]|user|nic|name|group|weight|minimum|share|send|yield|=|\"|\n|[0-9.]| |ann|Mb/s|\\PC){0,40}") {
        let _ = read(&text);
    }
}
