//! Givers that lie, and givers that fail.

use std::os::unix::ffi::OsStrExt;

use fairwave_proto::codec::VoidReason;

use super::fake::{Fake, Said, file, link};
use super::*;

fn paths(world: &World) -> Vec<String> {
    let paths = look_at(&world.to()).into_keys().map(|path| crate::escaped(path.as_os_str().as_bytes()));
    paths.filter(|path| !path.is_empty()).collect()
}

/// Entries outside the destination, before and after.
fn outside(world: &World) -> Vec<(PathBuf, String)> {
    let seen = look_at(world.place.path()).into_iter();
    seen.filter(|(path, _)| !path.starts_with("to")).map(|(path, seen)| (path, seen.say())).collect()
}

#[test]
fn hostile__no_name_leads_out() {
    let world = World::new();
    fs::write(world.place.path().join("victim"), "untouched").unwrap();
    let before = outside(&world);
    let bad: [&[u8]; 21] = [
        b"/etc/passwd",
        b"../victim",
        b"..",
        b".",
        b"a/../../victim",
        b"a/..",
        b"a//b",
        b"a/",
        b"/",
        b"//",
        b"./x",
        b"a/./b",
        b"nul\0byte",
        b".fairwave-00/journal",
        b".fairwave-",
        b"sub/.fairwave-00112233445566778899aabbccddeeff/journal",
        b"sub/.fairwave-00112233445566778899aabbccddeeff",
        b"a/b/.Fairwave-x",
        b"../to/x",
        b"../../../../../../../../tmp/x",
        &[b'n'; 256],
    ];
    let kinds = bad.iter().flat_map(|path| {
        [file(path, "evil"), Said::Directory(path.to_vec()), Said::Link(path.to_vec(), b"x".to_vec())]
    });
    let run = Fake::new(kinds.chain([file("good", "good")])).get(&world, &Get::default());
    assert_eq!((run.outcome.ended, run.outcome.files), (Ended::Done, 1));
    assert_eq!(run.outcome.files_failed, 3 * bad.len() as u64);
    assert_eq!(paths(&world), ["good"]);
    assert!(outside(&world) == before);
}

#[test]
fn hostile__no_link_is_followed() {
    let world = World::new();
    let before = outside(&world);
    // Each starts with a link of the same list, or of an earlier transfer.
    let entries = [
        link("up", ".."),
        file("up/evil", "evil"),
        link("abs", "/tmp"),
        file("abs/evil", "evil"),
        link("here", "."),
        link("down", "d"),
        file("down/evil", "evil"),
        Said::Directory(b"d".to_vec()),
        link("d/top", ".."),
        file("d/top/evil", "evil"),
        // With top leading to the destination this would be its parent.
        link("d/e", "top/.."),
        link("fine", "d/top"),
        Said::Directory(b"down".to_vec()),
    ];
    for _ in 0..2 {
        let run = Fake::new(entries.clone()).get(&world, &Get::default());
        assert_eq!(run.outcome.ended, Ended::Done);
        assert!(outside(&world) == before);
        let there = paths(&world);
        assert!(there.iter().all(|path| !path.ends_with("evil")), "{there:?}");
        assert_eq!(there, ["d", "d/top", "down", "fine", "here"]);
    }
    // Links of the first transfer are in the way of what the second wants below them.
    let entries =
        [file("here/evil", "evil"), file("fine/evil", "evil"), file("d/top/x/evil", "evil"), file("ok", "ok")];
    let run = Fake::new(entries).get(&world, &Get::default());
    assert_eq!((run.outcome.files, run.outcome.files_failed), (1, 3), "{:?}", run.outcome);
    assert!(outside(&world) == before);
}

#[test]
fn hostile__links_that_somebody_puts_there_meanwhile() {
    let world = World::new();
    let victim = world.place.path().join("victim");
    fs::create_dir(&victim).unwrap();
    let entries = (0..400).map(|i| file(format!("d/{i}"), content(i as u8, 10_000)));
    let (sink, transfer) = take(world.options(&Get { durable: Durable::Each, ..Get::default() })).unwrap();
    let mut loopback = Loopback::open(Box::new(Fake::new(entries)), Box::new(sink), true, FAIR);
    let directory = world.to().join("d");
    let mut turn = 0;
    while loopback.run(Duration::from_millis(2)).is_none() && turn < 5000 {
        turn += 1;
        let aside = world.to().join(format!("aside-{turn}"));
        if fs::rename(&directory, &aside).is_ok() {
            let _ = symlink(&victim, &directory);
            loopback.run(Duration::from_millis(1));
            let _ = fs::remove_file(&directory);
            let _ = fs::rename(&aside, &directory);
        }
    }
    loopback.run_out(LASTS);
    let run = finish(&loopback, &transfer);
    assert_eq!(run.outcome.ended, Ended::Done);
    assert!(turn > 1, "it was over before anything was swapped");
    assert_eq!(fs::read_dir(victim).unwrap().count(), 0);
}

#[test]
fn hostile__two_entries_with_one_name() {
    let world = World::new();
    let entries = [
        file("a", "first"),
        file("a", "second"),
        Said::Directory(b"a".to_vec()),
        link("a", "x"),
        file("a/b", "below a file"),
        file("d/x", "x"),
        file("d", "a file where a directory is"),
        link("l", "a"),
        file("l", "a file where a link will be"),
        file("l/m", "below a link"),
    ];
    let run = Fake::new(entries).get(&world, &Get::default());
    let failed: Vec<_> = messages(&run.outcome.failed).into_iter().map(|(path, _)| path).collect();
    assert_eq!(failed, ["a", "a", "a", "a/b", "d", "l", "l/m"]);
    assert_eq!(paths(&world), ["a", "d", "d/x", "l"]);
    assert_eq!(fs::read(world.to().join("a")).unwrap(), b"first");
}

#[test]
fn hostile__names_reach_nobody_unescaped() {
    let world = World::new();
    let name = b"\x1b[2J\xe2\x80\xae\xff.txt";
    let run = Fake::new([file(name, "x"), Said::Failed(b"\x1b]0;x\x07".to_vec(), "Permission denied")])
        .get(&world, &Get::default());
    assert_eq!(run.outcome.files, 1);
    assert_eq!(paths(&world), ["\\x1b[2J\\xe2\\x80\\xae\\xff.txt"]);
    assert_eq!(messages(&run.outcome.failed), [("\\x1b]0;x\\x07".to_owned(), "Permission denied".to_owned())]);
}

#[test]
fn giver__what_it_cannot_send_fails_alone() {
    let world = World::new();
    let large = content(1, 2 * BLOCK + 10);
    let entries = [
        file("a", content(2, 1000)),
        file("gone", content(3, 1000)),
        file("b", content(4, 1000)),
        file("big", &large),
        file("c", "c"),
    ];
    // The second file, and a byte in the second block of the large one.
    let at = 3000 + BLOCK as u64 + 5;
    let fake =
        Fake::new(entries).with_void(1000..2000, VoidReason::Vanished).with_void(at..at + 1, VoidReason::Unreadable);
    let run = fake.get(&world, &Get::default());
    assert_eq!((run.outcome.ended, run.outcome.files, run.outcome.files_failed), (Ended::Done, 3, 2));
    let failed = messages(&run.outcome.failed);
    assert!(
        failed.contains(&("gone".to_owned(), "it vanished at the other end while it was copied".to_owned())),
        "{failed:?}"
    );
    assert!(failed.contains(&("big".to_owned(), "the peer cannot read it".to_owned())), "{failed:?}");
    assert_eq!(paths(&world), ["a", "b", "c"]);
}

#[test]
fn giver__a_list_that_makes_no_sense_ends_the_transfer() {
    for (fake, reason) in [
        (
            Fake::new([file("a", "a"), Said::End, file("b", "b")]),
            "the length of the peer's file list differs from its end record",
        ),
        (Fake::new([file("a", "a"), Said::End]), "the peer's file list continues after its end"),
        (Fake { is_cut: true, ..Fake::new([file("a", "a")]) }, "ended before it was complete"),
        (Fake { entries: vec![Said::End], ..Fake::default() }, "the peer's file list continues after its end"),
    ] {
        let world = World::new();
        let run = fake.get(&world, &Get::default());
        let text = format!("{:?}", run.outcome.ended);
        assert!(text.contains(reason), "{text}");
    }
}

#[test]
fn giver__bytes_that_are_not_what_was_listed() {
    let world = World::new();
    let mut fake = Fake::new([file("a", content(1, 100_000)), file("b", "b")]);
    // The hashes are of other bytes than those that it sends.
    fake.bytes[500] ^= 1;
    let run = fake.get(&world, &Get::default());
    assert_eq!((run.outcome.files, run.outcome.files_failed), (1, 1));
    assert!(run.outcome.failed[0].reason.contains("failed verification 8 times"), "{:?}", run.outcome);
    assert_eq!(paths(&world), ["b"]);
}

#[test]
fn giver__a_length_that_no_disk_has() {
    for is_dry in [false, true] {
        let world = World::new();
        let run = Fake::new([Said::Huge(b"huge".to_vec(), 1 << 55)]).get(&world, &Get { is_dry, ..Get::default() });
        assert_eq!(run.outcome.ended, Ended::Done);
        if is_dry {
            assert_eq!((run.outcome.files, run.outcome.bytes), (1, 1 << 55));
        } else {
            assert_eq!(messages(&run.outcome.failed)[0].1, "changed at the source during the transfer");
        }
        assert_eq!(paths(&world), Vec::<String>::new());
    }
    let world = World::new();
    let run = Fake::new([Said::Huge(b"a".to_vec(), 1 << 61), Said::Huge(b"b".to_vec(), 1 << 61)])
        .get(&world, &Get::default());
    assert_eq!(run.outcome.ended, Ended::Failed("the total size of the files exceeds 2^62 bytes".to_owned()));
}

#[test]
fn giver__holes_that_make_no_sense_end_the_transfer() {
    for (pairs, reason) in [
        (vec![0, 11], "the peer's file list has a hole after the end of its file"),
        (vec![10, 1], "the peer's file list has a hole after the end of its file"),
        (vec![0, 0], "a hole is out of range"),
        (vec![0], "truncated in a hole"),
        (vec![0xff; 4096], "a hole is out of range"),
    ] {
        let world = World::new();
        let run = Fake::new([Said::Holes(pairs), file("a", [0; 10])]).get(&world, &Get::default());
        let text = format!("{:?}", run.outcome.ended);
        assert!(text.contains(reason), "{text}");
        assert!(!world.to().join("a").exists());
    }
}

#[test]
fn giver__more_holes_than_any_giver_tells_end_the_transfer() {
    let world = World::new();
    // 2048 holes of one byte each, 2049 times: one entry more than 2^22.
    let many = (0..2049).map(|_| Said::Holes([1, 1].repeat(2048)));
    let run = Fake::new(many.chain([file("a", "a")])).get(&world, &Get::default());
    let text = format!("{:?}", run.outcome.ended);
    assert!(text.contains("has more than 4194304 holes"), "{text}");
}

#[test]
fn giver__holes_of_nothing_mean_nothing() {
    let world = World::new();
    let holes = || Said::Holes(vec![0, 50]);
    let entries = [holes(), Said::Directory(b"d".to_vec()), file("d/a", "a"), holes(), link("l", "d/a"), holes()];
    let run = Fake::new(entries).get(&world, &Get::default());
    assert!(run.outcome.is_complete(), "{:?}", run.outcome);
    assert_eq!(fs::read(world.to().join("d/a")).unwrap(), b"a");
}

#[test]
fn giver__a_hole_where_its_hash_has_data_fails() {
    let world = World::new();
    // The hash is of other bytes than zeros.
    let entries = [Said::Holes(vec![5, 10]), file("a", content(1, 100)), file("b", "b")];
    let run = Fake::new(entries).get(&world, &Get::default());
    assert_eq!((run.outcome.files, run.outcome.files_failed), (1, 1));
    assert!(run.outcome.failed[0].reason.contains("failed verification 8 times"), "{:?}", run.outcome);
    assert_eq!(paths(&world), ["b"]);
}

/// Entries that would be run or trusted in a home directory.
fn planted() -> [Said; 3] {
    [file(".bashrc", "evil"), file(".ssh/authorized_keys", "evil"), Said::Directory(b".config".to_vec())]
}

#[test]
fn hostile__what_was_not_asked_for_ends_the_transfer() {
    let asked = || TopNames::of(["data/a.bin"]);
    for (planted, name) in planted().into_iter().zip([".bashrc", ".ssh/authorized_keys", ".config"]) {
        for is_first in [true, false] {
            let world = World::new();
            let wanted = [file("a.bin", "a"), planted.clone()];
            let entries = if is_first { [wanted[1].clone(), wanted[0].clone()] } else { wanted };
            let run = Fake::new(entries).get(&world, &Get { top_names: Some(asked()), ..Get::default() });
            let says = format!("the peer sent \"{name}\", expected \"a.bin\"");
            assert_eq!(run.outcome.ended, Ended::Failed(says));
            let there = paths(&world);
            assert!(there.iter().all(|path| path == "a.bin" || path.starts_with(".fairwave-")), "{there:?}");
        }
    }
    // Any other answer to the same path: a failure or a link is not an answer to a request either.
    for planted in [Said::Failed(b"b".to_vec(), "gone"), link("b", "a.bin"), file("../b", "evil"), file("/b", "evil")] {
        let world = World::new();
        let run = Fake::new([planted]).get(&world, &Get { top_names: Some(asked()), ..Get::default() });
        assert!(format!("{:?}", run.outcome.ended).contains("expected"), "{:?}", run.outcome);
    }
}

#[test]
fn hostile__what_was_asked_for_is_taken_with_all_below_it() {
    let world = World::new();
    let entries = [file("a.bin", "a"), Said::Directory(b"home".to_vec()), file("home/.bashrc", "my own")];
    let get = Get { top_names: Some(TopNames::of(["x/a.bin", "."])), ..Get::default() };
    let run = Fake::new(entries).get(&world, &get);
    assert!(run.outcome.is_complete(), "{:?}", run.outcome);
    assert_eq!(paths(&world), ["a.bin", "home", "home/.bashrc"]);
}

#[test]
fn hostile__of_names_that_were_asked_for_nothing_beside_them_is_taken() {
    let world = World::new();
    let near = ["a.bin2", "a.bi", "A.BIN", "d/a.bin", "d", "d/e/f2", "a.bin/../x"].map(|path| file(path, "evil"));
    let entries = [file("a.bin", "a"), file("d/e/f", "f")].into_iter().chain(planted()).chain(near);
    let run = Fake::new(entries).get(&world, &Get { names: vec!["a.bin", "d/e/f"], ..Get::default() });
    assert!(run.outcome.is_complete(), "{:?}", run.outcome);
    assert_eq!(paths(&world), ["a.bin", "d", "d/e", "d/e/f"]);
}

#[test]
fn hostile__a_new_name_is_for_one_thing() {
    let world = World::new();
    let run = Fake::new([file("a", "a"), file("b", "b")]).get(&world, &Get { rename: Some("new"), ..Get::default() });
    let says = "name conflict: \"a\" was already received as \"new\"";
    assert_eq!(messages(&run.outcome.failed), [("b".to_owned(), says.to_owned())]);
    assert_eq!(paths(&world), ["new"]);
}

/// The permissions of what is at the destination.
fn modes(world: &World, names: &[&str]) -> Vec<u32> {
    names.iter().map(|name| fs::metadata(world.to().join(name)).unwrap().mode() & 0o777).collect()
}

#[test]
fn hostile__modes_never_open_what_was_closed() {
    let names = ["d", "d/same", "d/other", "d/large"];
    let said = |other: &str| {
        let large = content(1, BLOCK + 10);
        [Said::Directory(b"d".to_vec()), file("d/same", "same"), file("d/other", other), file("d/large", large)]
    };
    for durable in [Durable::None, Durable::Group] {
        let world = World::new();
        let get = Get { durable, ..Get::default() };
        Fake { mode: Some(0o777), ..Fake::new(said("first")) }.get(&world, &get);
        // New files have the giver's mode, minus the umask.
        let umask = u32::from(crate::take::resume::temps::umask());
        assert_eq!(modes(&world, &names), [0o777 & !umask; 4], "{durable:?}");
        for (name, mode) in names.iter().zip([0o700, 0o600, 0o640, 0o400]) {
            fs::set_permissions(world.to().join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let other = Fake { mode: Some(0o777), ..Fake::new(said("a longer one")) };
        let run = other.get(&world, &get);
        assert!(run.outcome.is_complete(), "{:?}", run.outcome);
        assert_eq!(fs::read(world.to().join("d/other")).unwrap(), b"a longer one");
        // Complete before, replaced, and a directory: each keeps what it had.
        assert_eq!(modes(&world, &names), [0o700, 0o600, 0o640, 0o400], "{durable:?}");
    }
}

#[test]
fn hostile__a_directory_is_never_more_open_than_its_giver_has_it() {
    let world = World::new();
    // Cut in the middle: the directory has no last mode yet.
    let entries = [Said::Directory(b"d".to_vec()), Said::Begun(b"d/large".to_vec(), 1 << 30, content(1, BLOCK))];
    let fake = Fake { mode: Some(0o500), ..Fake::new(entries) };
    let (sink, transfer) = take(world.options(&Get::default())).unwrap();
    let mut loopback = Loopback::open(Box::new(fake), Box::new(sink), true, FAIR);
    while transfer.progress().bytes_done == 0 {
        loopback.run(Duration::from_millis(10));
    }
    assert_eq!(modes(&world, &["d"]), [0o700]);
    loopback.cut();
    finish(&loopback, &transfer);
    assert_eq!(modes(&world, &["d"]), [0o700]);
}
