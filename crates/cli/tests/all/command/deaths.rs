//! A mirror whose process dies at each call that changes the file system, in turn.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use fairwave_testing::run_until_death;

use super::user::Host;

/// Names with the content of the file, or the target of the link.
type Tree = BTreeMap<String, Vec<u8>>;

fn look(root: &Path, below: &str, found: &mut Tree) {
    for entry in root.join(below).read_dir().into_iter().flatten().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            look(root, &path, found);
        } else if kind.is_symlink() {
            let target = std::fs::read_link(entry.path()).unwrap();
            found.insert(path, target.into_os_string().into_encoded_bytes());
        } else {
            found.insert(path, std::fs::read(entry.path()).unwrap());
        }
    }
}

fn tree(root: &Path) -> Tree {
    let mut found = Tree::new();
    look(root, "", &mut found);
    found
}

/// The source, and a destination with a file that is replaced, one that is complete and three that are deleted.
fn fill(host: &Host) {
    std::fs::remove_dir_all(host.path("to")).ok();
    for (name, content) in
        [("tree/keep", "same"), ("tree/replaced", "old"), ("tree/old/x", "gone"), ("outside", "stays")]
    {
        host.write(&format!("to/{name}"), content.as_bytes());
    }
    for name in ["tree/gone-1", "tree/old/deep/y"] {
        host.write(&format!("to/{name}"), b"gone");
    }
}

/// Afterwards each file is the old one or the new one, only what the source lacks has gone, and the same command
/// completes and leaves nothing behind.
#[test]
fn cp__a_process_that_dies_at_any_call_leaves_old_or_new_files_and_can_be_repeated() {
    let host = Host::new();
    for name in ["keep", "replaced", "new", "sub/a", "sub/deep/b"] {
        let content = if name == "keep" { b"same".to_vec() } else { super::user::bytes(3000 + name.len()) };
        host.write(&format!("tree/{name}"), &content);
    }
    std::os::unix::fs::symlink("new", host.path("tree/link")).unwrap();
    let source = tree(&host.path("tree"));
    let call = ["cp", "--delete", "tree", "to/"];
    fill(&host);
    let old = tree(&host.path("to"));
    let expected: Tree = source.iter().map(|(name, content)| (format!("tree/{name}"), content.clone())).collect();
    let expected: Tree = expected.into_iter().chain([("outside".to_owned(), b"stays".to_vec())]).collect();
    // The identity of this host is made before.
    host.run(&call).good();
    assert_eq!(tree(&host.path("to")), expected);
    for n in 1.. {
        fill(&host);
        let mut command = host.command(&call);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let Some(status) = run_until_death(&mut command, n) else {
            let left = tree(&host.path("to"));
            for (name, content) in left.iter().filter(|(name, _)| !name.contains(".fairwave-")) {
                let is_known = [old.get(name), expected.get(name)].contains(&Some(content));
                assert!(is_known, "call {n}: {name} is neither the old nor the new file");
            }
            for name in old.keys().filter(|name| expected.contains_key(*name)) {
                assert!(left.contains_key(name), "call {n}: {name} has gone");
            }
            host.run(&call).good();
            assert_eq!(tree(&host.path("to")), expected, "call {n}");
            continue;
        };
        assert!(status.success(), "call {n}: {status}");
        assert_eq!(tree(&host.path("to")), expected);
        // Five files, two directories and five deletions need some 60 calls.
        assert!(n > 40, "{n} calls");
        break;
    }
}
