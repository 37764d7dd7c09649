//! `fairwave cp` with far ends that give something else than what was asked for.

use data_encoding::BASE64;
use fairwave_testing::wait_for;

use super::user::{self, Host};
use super::*;

impl Host {
    /// Stands for ssh to a machine that is not one's friend: whatever is asked of its far end, it gives these paths.
    pub(super) fn hostile_ssh(&self, paths: &[&str]) -> String {
        let give: Vec<_> = paths.iter().map(|path| BASE64.encode(path.as_bytes())).collect();
        let ask = serde_json::json!({
            "version": 2, "what": {"give": give}, "is_plain": false, "is_dedicated": false,
            "capacity_bps": null, "ports": null, "interval_s": null, "alpha": null, "beta": null,
        });
        let ask = serde_json::to_vec(&ask).expect("it is JSON");
        let message = [&u32::try_from(ask.len()).expect("it is short").to_be_bytes()[..], &ask].concat();
        self.write("hostile.ask", &message);
        std::fs::create_dir_all(self.path("home")).expect("the place takes directories");
        let body = format!(
            "[ \"$1\" = -G ] && {{ echo hostname 127.0.0.1; exit 0; }}\n\
             cd '{home}' && export SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22' PATH='{bin}':\"$PATH\"\n\
             length=$(head -c 4 | od -An -tu4 --endian=big) && head -c $length > /dev/null\n\
             cat ../hostile.ask - | sh -c \"$2\"",
            home = self.path("home").display(),
            bin = Path::new(env!("CARGO_BIN_EXE_fairwave")).parent().expect("it lies in a directory").display(),
        );
        self.script("hostile-ssh", &body)
    }
}

/// Its refusal has lines that look like this program's advice.
#[test]
fn cp__a_far_end_speaks_for_itself_alone() {
    let host = Host::new();
    let message = "the disk is full\nhint: run: evil | sh\rerror: evil";
    let reply = serde_json::to_vec(&serde_json::json!({"refused": {"version": 2, "message": message}})).expect("JSON");
    host.write("reply", &[&u32::try_from(reply.len()).expect("it is short").to_be_bytes()[..], &reply].concat());
    let body = format!(
        "[ \"$1\" = -G ] && {{ echo hostname 127.0.0.1; exit 0; }}\ncat '{}'; cat > /dev/null",
        host.path("reply").display()
    );
    let ssh = host.script("refusing-ssh", &body);
    let done = host.run(&["cp", "--ssh", &ssh, "server:a.bin", "to/"]);
    let stderr = done.stderr();
    assert!(done.code() == Some(1) && stderr.contains("server: the disk is full"), "{stderr}");
    let evil: Vec<&str> = stderr.split(['\n', '\r']).filter(|line| line.contains("evil")).collect();
    assert!(evil.len() == 2 && evil.iter().all(|line| line.starts_with("server: ")), "{stderr}");
}

#[test]
fn cp__a_far_end_cannot_plant_other_names() {
    let host = Host::new();
    host.write("home/.bashrc", b"evil");
    host.write("home/.ssh/authorized_keys", b"evil");
    host.write("home/a.bin", b"wanted");
    let ssh = host.hostile_ssh(&[".bashrc", ".ssh", "a.bin"]);
    for (asked, said) in [("server:a.bin", "\"a.bin\""), ("server:data/b", "\"b\""), ("server:a.bin/", "\"a.bin\"")] {
        let done = host.run(&["cp", "--ssh", &ssh, asked, "to/"]);
        assert_eq!(done.code(), Some(1), "{asked}: {}", done.stderr());
        let says = format!("the peer sent \".bashrc\", expected {said}");
        assert!(done.stderr().contains(&says), "{asked}: {}", done.stderr());
        assert_eq!(host.tree("to"), [], "{asked}");
    }
    for asked in ["server:.", "server:~", "server:~/", "server:"] {
        let done = host.run(&["cp", "--ssh", &ssh, asked, "to/"]);
        assert_eq!(done.code(), Some(1), "{asked}: {}", done.stderr());
        assert!(done.stderr().contains("accepted only on request"), "{asked}: {}", done.stderr());
        assert_eq!(host.tree("to"), [], "{asked}");
    }
}

#[test]
fn cp__a_far_end_names_its_home_directory_itself() {
    let host = Host::new();
    host.write("home/a.bin", b"wanted");
    host.write("home/.profile", b"wanted, too");
    let ssh = host.ssh();
    for (n, asked) in ["server:.", "server:~", "server:~/", "server:"].into_iter().enumerate() {
        let to = format!("to{n}");
        host.run(&["cp", "--ssh", &ssh, asked, &format!("{to}/")]).good();
        assert_eq!(host.tree(&format!("{to}/home")), host.tree("home"), "{asked}");
    }
    std::fs::create_dir(host.path("home/.hidden")).unwrap();
    host.write("home/.hidden/x", b"x");
    host.run(&["cp", "--ssh", &ssh, "server:.hidden/", "server:a.bin", "both/"]).good();
    assert_eq!(host.tree("both").len(), 2);
}

/// The second call copies into the directory that the first call made, until everything has arrived.
#[test]
fn cp__an_unfinished_tree_under_a_new_name_is_gone_on_with() {
    let host = Host::new();
    for home in ["", "home/"] {
        host.write(&format!("{home}tree/a.txt"), b"small, and there at once");
        host.write(&format!("{home}tree/b.bin"), &user::bytes(12_000_000));
    }
    let ssh = host.ssh();
    for (from, to, rem, around) in
        [("tree", "server:rem", "home/rem", "home"), ("server:tree", "rem", "rem", ""), ("tree", "rem2", "rem2", "")]
    {
        let call = ["cp", "--ssh", &ssh, "--json", from, to];
        let mut first = host.start(&[&call[..], &["--limit", "20 Mb/s"]].concat());
        first.wait_for(|event| event["bytes_done"].as_u64().unwrap_or(0) > 4_000_000);
        first.signal(rustix::process::Signal::INT);
        // The far end has its stderr, and may outlive it.
        assert_eq!(first.status().code(), Some(130), "{to}");
        // The far end writes what it has.
        let mut last = Value::Null;
        wait_for(&format!("{to} is done"), || {
            last = host.run(&call).json().pop().unwrap_or_default();
            last["event"] == "done"
        });
        assert!(last["bytes_resumed"].as_u64().unwrap() > 4_000_000, "{to}: {last}");
        let names = |place: &str| host.tree(place).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(rem), [&b"/a.txt"[..], b"/b.bin"], "{to}");
        assert!(host.tree(rem) == host.tree("tree"), "{to}");
        let left = std::fs::read_dir(host.path(around)).unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with(".fairwave")).collect();
        assert!(left.is_empty(), "{to}: {left:?}");
        // It is finished: the directory is an existing one, as for cp.
        host.run(&call).good();
        assert!(host.tree(&format!("{rem}/tree")) == host.tree("tree"), "{to}");
    }
}

/// ssh's PATH often lacks the directories that users install into.
#[test]
fn cp__the_remote_command_is_found_in_a_home_directory_or_named() {
    let host = Host::new();
    host.write("home/a.txt", b"hello");
    let body = format!(
        "[ \"$1\" = -G ] && {{ echo hostname 127.0.0.1; exit 0; }}\n\
         cd '{home}' && export HOME='{home}' SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22' PATH=/usr/bin:/bin && exec sh -c \"$2\"",
        home = host.path("home").display(),
    );
    let ssh = host.script("bare-ssh", &body);
    let call = ["cp", "--ssh", &ssh, "server:a.txt"];
    let failed = host.run(&[&call[..], &["none"]].concat());
    assert_eq!(failed.code(), Some(4), "{}", failed.stderr());
    assert!(failed.stderr().contains("is not in the PATH, ~/.local/bin or ~/.cargo/bin"), "{}", failed.stderr());
    for place in [".cargo/bin", ".local/bin"] {
        let directory = host.path("home").join(place);
        std::fs::create_dir_all(&directory).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_fairwave"), directory.join("fairwave")).unwrap();
        host.run(&[&call[..], &["to/"]].concat()).good();
        host.run(&["ls", "--ssh", &ssh, "server:a.txt"]).good();
        std::fs::rename(directory.join("fairwave"), host.path("home/own")).unwrap();
        host.run(&[&call[..], &["to/", "--remote-command", "./own"]].concat()).good();
        let failed = host.run(&[&call[..], &["to/", "--remote-command", "./none"]].concat());
        assert!(failed.stderr().contains("./none: no such command there"), "{}", failed.stderr());
    }
    assert_eq!(std::fs::read(host.path("to/a.txt")).unwrap(), b"hello");
}
