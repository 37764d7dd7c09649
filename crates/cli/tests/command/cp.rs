//! `fairwave cp` with far ends that give something else than what was asked for.

use data_encoding::BASE64;

use super::host::Host;
use super::*;

impl Host {
    /// Stands for ssh to a machine that is not one's friend: whatever is asked of its far end, it gives these paths.
    fn hostile_ssh(&self, paths: &[&str]) -> String {
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
             cat ../hostile.ask - | sh -c \"$2\"",
            home = self.path("home").display(),
            bin = Path::new(env!("CARGO_BIN_EXE_fairwave")).parent().expect("it lies in a directory").display(),
        );
        self.script("hostile-ssh", &body)
    }
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
        let says = format!("the other end sent \".bashrc\", and what was asked for is {said}");
        assert!(done.stderr().contains(&says), "{asked}: {}", done.stderr());
        assert_eq!(host.tree("to"), [], "{asked}");
    }
    for asked in ["server:.", "server:~", "server:~/", "server:"] {
        let done = host.run(&["cp", "--ssh", &ssh, asked, "to/"]);
        assert_eq!(done.code(), Some(1), "{asked}: {}", done.stderr());
        assert!(done.stderr().contains("only if it was asked for"), "{asked}: {}", done.stderr());
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
