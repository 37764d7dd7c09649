//! Archives: the same for every command and direction.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use super::user::Host;

fn fill(host: &Host, root: &str) {
    host.write(&format!("{root}/run"), b"#!");
    host.write(&format!("{root}/d/data"), &[7; 5000]);
    let at = |name: &str| host.path(root).join(name);
    fs::hard_link(at("d/data"), at("again")).unwrap();
    symlink("/etc/passwd", at("link")).unwrap();
    for (name, mode) in [("run", 0o4750), ("d", 0o2711)] {
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(at("link"), Some(54321), Some(54322)).unwrap();
    }
    rustix::fs::setxattr(at("run"), "user.note", b"x", rustix::fs::XattrFlags::empty()).unwrap();
}

/// The attributes of each entry that an archive keeps.
fn seen(root: &Path) -> Vec<String> {
    let note = |name: &str| {
        let mut value = [0; 9];
        rustix::fs::lgetxattr(root.join(name), "user.note", &mut value).unwrap_or(0)
    };
    let entry = |name: &&str| {
        let meta = fs::symlink_metadata(root.join(name)).unwrap();
        let links = if meta.is_dir() { 0 } else { meta.nlink() };
        let (mode, owner, mtime) = (meta.mode(), (meta.uid(), meta.gid()), (meta.mtime(), meta.mtime_nsec()));
        format!("{name} {mode:o} {owner:?} {mtime:?} {links} {}", note(name))
    };
    ["again", "d", "d/data", "link", "run"].iter().map(entry).collect()
}

#[test]
fn archive__with_every_command_and_direction() {
    let host = Host::new();
    fill(&host, "tree");
    fill(&host, "home/tree");
    let serve = host.serve(&["tree", "--listen", "127.0.0.1:0"]);
    for inbox in ["inbox", "closed"] {
        fs::create_dir(host.path(inbox)).unwrap();
    }
    let inbox = host.serve(&["inbox", "--writable", "--archive", "--links", "--listen", "127.0.0.1:0"]);
    let ssh = host.ssh();
    for (call, from, to) in [
        (&["cp", "-a", "tree", "here/"][..], "tree", "here"),
        (&["cp", "-a", "--ssh", &ssh, "server:tree", "there/"], "home/tree", "there"),
        (&["cp", "-a", "--ssh", &ssh, "tree", "server:far/"], "tree", "home/far"),
        (&["get", "--archive", &serve.at(), "got"], "tree", "got"),
        (&["put", "-a", "--numeric-ids", "tree", &inbox.at()], "tree", "inbox"),
    ] {
        for mode in [0o4750, 0o700] {
            host.run(call).good();
            let (from, to) = (host.path(from), host.path(to).join("tree"));
            assert_eq!(seen(&from), seen(&to), "{call:?}");
            // The second time only an attribute differs.
            fs::set_permissions(to.join("run"), fs::Permissions::from_mode(mode)).unwrap();
        }
    }
    let closed = host.serve(&["closed", "--writable", "--listen", "127.0.0.1:0"]);
    let refused = host.run(&["put", "-a", "tree", &closed.at()]);
    assert!(refused.stderr().contains("--archive"), "{}", refused.stderr());
    assert_eq!(fs::read_dir(host.path("closed")).unwrap().count(), 0);
}
