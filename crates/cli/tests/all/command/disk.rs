//! Reports of a transfer whose disk blocks: a file system in a file, which is frozen for a while.

use std::time::{Duration, Instant};

use fairwave_testing::LIMIT;

use super::user::{Host, bytes};
use super::*;

/// A separate file system, mounted at a directory.
struct Mount {
    at: PathBuf,
}

/// While this exists, writes to a mount block. Threads that wait for its end have to be dropped after it.
struct Frozen<'a> {
    at: &'a str,
}

fn tool(name: &str, words: &[&str]) -> bool {
    let quiet = || Stdio::null();
    Command::new(name).args(words).stdout(quiet()).stderr(quiet()).status().is_ok_and(|status| status.success())
}

impl Mount {
    /// A file system of 300 MB; `None`, with a message, if mounting is not permitted.
    fn new(host: &Host) -> Option<Self> {
        let (image, at) = (host.path("image"), host.path("slow"));
        std::fs::create_dir(&at).expect("the place takes directories");
        let file = std::fs::File::create(&image).expect("the place takes files");
        file.set_len(300_000_000).expect("it may have holes");
        let [image, place] = [&image, &at].map(|path| path.to_str().expect("it is text"));
        let is_there = rustix::process::geteuid().is_root()
            && tool("mkfs.ext4", &["-q", "-F", image])
            && tool("mount", &["-o", "loop", image, place]);
        if !is_there {
            println!("skipped: it takes root, mkfs.ext4 and a loop device");
        }
        is_there.then_some(Self { at })
    }

    fn freeze(&self) -> Frozen<'_> {
        let at = self.at.to_str().expect("it is text");
        assert!(tool("fsfreeze", &["--freeze", at]), "fsfreeze --freeze");
        Frozen { at }
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        tool("fsfreeze", &["--unfreeze", self.at]);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let at = self.at.to_str().expect("it is text");
        // A process that writes there may need a moment to end.
        let begin = Instant::now();
        while !tool("umount", &[at]) {
            if begin.elapsed() > LIMIT {
                tool("umount", &["-l", at]);
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn why__names_the_disk_that_takes_nothing_at_either_end() {
    let host = Host::new();
    let Some(mount) = Mount::new(&host) else { return };
    host.write("big.bin", &bytes(40_000_000));
    for gets in [true, false] {
        let serve = if gets {
            host.serve(&["big.bin", "--listen", "127.0.0.1:0"])
        } else {
            host.serve(&["slow", "--writable", "--listen", "127.0.0.1:0"])
        };
        let (ticket, to) = (serve.at(), "slow/got");
        let words = if gets { ["get", &ticket, to] } else { ["put", "big.bin", &ticket] };
        // The limit is the only one here: all of the file arrives within a few seconds.
        let mut client = host.start(&[&words[..], &["--json", "--limit", "80 Mb/s"]].concat());
        client.wait_for(|event| event["bytes_done"].as_u64().unwrap_or(0) > 4_000_000);
        let frozen = mount.freeze();
        let (here, there) = if gets { ("disk", "peer disk") } else { ("peer disk", "disk") };
        // A shared disk may have been slow for a moment before.
        let mut in_turn = 0;
        client.wait_for(|event| {
            in_turn = if event["limited_by"] == here { in_turn + 1 } else { 0 };
            in_turn == 3
        });
        // It stays so, although few packets are sent.
        let mut says = Vec::new();
        for _ in 0..3 {
            client.wait_for(|event| {
                says.push((event["limited_by"].clone(), event["waits_for"].clone(), event["because"].clone()));
                true
            });
        }
        assert!(says.iter().all(|(by, _, _)| by == here), "{gets}: {says:?}");
        let reasons = host.run(&["why", "--json"]).json();
        let found: BTreeSet<_> = reasons.iter().map(|reason| reason["limited_by"].as_str().unwrap_or("-")).collect();
        assert_eq!(found, BTreeSet::from([here, there]), "{gets}: {reasons:?}");
        for text in host.run(&["why"]).good().split("\n\n") {
            let by = text.lines().find_map(|line| line.trim().strip_prefix("limited by: ")?.split([',', ':']).next());
            let marked = text.lines().find(|line| line.ends_with("<- this"));
            assert!(by.is_some() && marked.is_some_and(|line| line.trim().starts_with(by.unwrap())), "{text}");
        }
        drop(frozen);
        client.wait_for(|event| event["event"] == "done");
    }
}
