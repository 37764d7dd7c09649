//! Programs that know nothing of Fairwave, over a bridge.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::sync::LazyLock;
use std::thread::{self, sleep};
use std::time::Duration;

use fairwave_testing::{LIMIT, Process, wait_for, wait_some};
use rustix::process::{Pid, Signal, kill_process};

use super::user::{Host, Serving, bytes, finish, place, status_of};
use super::*;

/// An address of nobody's, which programs ask for.
const ASKED: &str = "10.9.9.9:8000";

/// Whether the preload library exists, next to the command as a build leaves it.
static LIBRARY: LazyLock<()> = LazyLock::new(|| {
    let dir = Path::new(env!("CARGO_BIN_EXE_fairwave")).parent().expect("it lies in a directory");
    let (target, name) = (dir.parent().expect("in one of the target"), dir.file_name().expect("it has a name"));
    let profile = if name == "debug" { "dev".as_ref() } else { name };
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--locked", "--quiet", "--package", "fairwave-preload", "--profile"]).arg(profile);
    build.arg("--target-dir").arg(target).current_dir(env!("CARGO_MANIFEST_DIR"));
    assert!(build.status().expect("cargo runs").success(), "the library cannot be built");
});

/// A server of TCP behind a bridge.
struct Bridged {
    far: Host,
    near: Host,
    bridge: Serving,
}

impl Bridged {
    /// Each connection to the server gets what `serve` does with it.
    fn new(serve: impl Fn(TcpStream) + Send + Sync + Copy + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
        let address = listener.local_addr().expect("it is bound");
        thread::spawn(move || {
            listener.incoming().flatten().for_each(|stream| _ = thread::spawn(move || serve(stream)));
        });
        Self::to(address)
    }

    fn to(address: SocketAddr) -> Self {
        LazyLock::force(&LIBRARY);
        let far = Host::new();
        let bridge = far.serve_with(&["bridge", "--to", &address.to_string(), "--listen", "127.0.0.1:0"]);
        Self { far, near: Host::new(), bridge }
    }

    /// A program whose connections to [`ASKED`] go over it.
    fn program(&self, program: &[&str]) -> Command {
        let map = format!("{ASKED}={}", self.bridge.at());
        self.near.command(&[&["run", "--map", &map, "--"], program].concat())
    }

    fn run(&self, program: &[&str]) -> Done {
        finish(self.program(program).stdin(Stdio::null()))
    }

    fn python(&self, script: &str) -> Done {
        self.run(&["python3", "-c", script])
    }

    /// The program's bridge process.
    fn beside(&self) -> Pid {
        let mut beside = None;
        wait_for("a process beside the program", || {
            let all = self.near.run(&["status", "--json"]).json().remove(0);
            let mut processes = all["processes"].as_array().expect("a list").iter();
            let found = processes.find(|process| process["command"] == "run");
            let pid = found.and_then(|process| process["pid"].as_i64());
            beside = pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
            beside.is_some()
        });
        beside.expect("found above")
    }
}

/// Gives back what it gets, to the end, and then ends.
fn echo(mut stream: TcpStream) {
    let mut room = [0; 16384];
    loop {
        match stream.read(&mut room) {
            Ok(0) | Err(_) => return,
            Ok(count) if stream.write_all(&room[..count]).is_err() => return,
            Ok(_) => {}
        }
    }
}

/// An answer of HTTP/1.0 without a length: its end is the connection's.
fn http(mut stream: TcpStream, body: &[u8]) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_exact(&mut byte).is_err() {
            return;
        }
        head.push(byte[0]);
    }
    let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n").and_then(|()| stream.write_all(body));
    let _ = stream.shutdown(Shutdown::Write);
    // Until the other end has it all.
    let _ = stream.read_to_end(&mut Vec::new());
}

/// Gives bytes for as long as somebody takes them.
fn endless(mut stream: TcpStream) {
    while stream.write_all(&[7; 16384]).is_ok() {
        sleep(Duration::from_millis(1));
    }
}

const LARGE: usize = 5_000_000;

fn large(stream: TcpStream) {
    http(stream, &bytes(LARGE));
}

/// Whether a program that a test needs exists; prints what is skipped otherwise.
fn has(program: &str) -> bool {
    let is_there = std::env::var_os("PATH")
        .is_some_and(|paths| std::env::split_paths(&paths).any(|dir| dir.join(program).is_file()));
    if !is_there {
        println!("left out: there is no {program} on this machine");
    }
    is_there
}

#[test]
fn run__curl_gets_a_file_whole() {
    let bridged = Bridged::new(large);
    if !has("curl") {
        return;
    }
    let url = format!("http://{ASKED}/big.bin");
    bridged.run(&["curl", "-sSf", "-o", "got", &url]).good();
    assert!(std::fs::read(bridged.near.path("got")).unwrap() == bytes(LARGE), "the file is another");
}

#[test]
fn run__python_does_as_with_a_connection_of_its_own() {
    // Names, a half-closed connection, a descriptor that does not block, a child after fork and one after exec.
    let done = Bridged::new(echo).python(
        r#"
import asyncio, os, socket, sys
asked = ("10.9.9.9", 8000)

def all_of(s):
    parts = []
    while part := s.recv(65536):
        parts.append(part)
    return b"".join(parts)

s = socket.create_connection(asked)
assert s.getpeername() == asked, s.getpeername()
assert s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
sent = os.urandom(300_000)
pid = os.fork()
if pid == 0:
    s.sendall(sent)
    s.shutdown(socket.SHUT_WR)
    os._exit(0)
assert all_of(s) == sent
assert os.waitpid(pid, 0)[1] == 0
s.close()

s = socket.create_connection(asked, timeout=120)
s.sendall(b"timed")
assert s.recv(5) == b"timed"
s.close()

v6 = socket.socket(socket.AF_INET6)
v6.connect(("::ffff:10.9.9.9", 8000))
assert v6.getpeername()[:2] == ("::ffff:10.9.9.9", 8000), v6.getpeername()
v6.sendall(b"mapped")
assert v6.recv(6) == b"mapped"

async def one(text):
    reader, writer = await asyncio.open_connection(*asked)
    assert writer.get_extra_info("peername") == asked
    writer.write(text)
    writer.write_eof()
    assert await reader.read() == text
    writer.close()

async def many():
    await asyncio.gather(*(one(bytes([n]) * 1000 * n) for n in range(20)))

asyncio.run(many())

s = socket.create_connection(asked)
os.set_inheritable(s.fileno(), True)
os.execv(sys.executable, [sys.executable, "-c", f"""
import socket
s = socket.socket(fileno={s.fileno()})
assert s.getpeername() == {asked}, s.getpeername()
s.sendall(b"after exec")
assert s.recv(10) == b"after exec"
print("all well")
"""])
"#,
    );
    assert_eq!(done.good(), "all well\n");
}

#[test]
fn run__a_server_that_refuses_is_one_that_refuses() {
    let bridged = Bridged::to(place());
    // The same socket may try again, as on Linux.
    let script = r#"
import errno, socket
s = socket.socket()
for _ in range(2):
    try:
        s.connect(("10.9.9.9", 8000))
        raise SystemExit("it is open")
    except ConnectionRefusedError:
        pass
try:
    s.getpeername()
except OSError as error:
    print(errno.errorcode[error.errno])
"#;
    assert_eq!(bridged.python(script).good(), "ENOTCONN\n");
}

#[test]
fn run__a_ticket_that_was_taken_back_is_no_access() {
    let bridged = Bridged::new(echo);
    let tickets = bridged.far.run(&["serve", "--tickets", "--json"]).json();
    assert!(tickets[0]["paths"][0].as_str().unwrap().starts_with("bridge to 127.0.0.1:"), "{tickets:?}");
    bridged.far.run(&["serve", "--revoke", tickets[0]["id"].as_str().unwrap()]).good();
    // The bridge looks at its keyring once a second: until then it may still let somebody in.
    let script = r#"
import socket, time
end = time.monotonic() + 120
while time.monotonic() < end:
    try:
        with socket.create_connection(("10.9.9.9", 8000)):
            time.sleep(0.05)
    except PermissionError as error:
        raise SystemExit(print(error.strerror))
"#;
    let done = bridged.python(script);
    assert_eq!(done.good(), "Permission denied\n");
    assert!(done.stderr().contains("the ticket has been revoked"), "{}", done.stderr());
}

#[test]
fn run__what_is_killed_on_the_way_is_a_reset_and_no_end() {
    // Only the end of the connection marks the end of the answer.
    let read_all = r#"
import socket, sys
s = socket.create_connection(("10.9.9.9", 8000))
s.sendall(b"go")
s.recv(1)
print("begun", flush=True)
try:
    while s.recv(65536):
        pass
    print("an end")
except ConnectionResetError:
    print("a reset")
"#;
    for kills_near in [true, false] {
        let bridged = Bridged::new(endless);
        let mut child = Process::spawn(bridged.program(&["python3", "-c", read_all]).stdout(Stdio::piped()));
        let mut stdout = child.stdout.take().unwrap();
        let mut begun = [0; 6];
        stdout.read_exact(&mut begun).unwrap();
        assert_eq!(&begun, b"begun\n");
        if kills_near {
            kill_process(bridged.beside(), Signal::KILL).unwrap();
        } else {
            bridged.bridge.process.signal(Signal::TERM);
        }
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "a reset\n", "near {kills_near}");
        assert!(status_of(&mut child).success());
    }
}

#[test]
fn run__a_program_that_is_killed_is_seen_by_its_server_as_over_tcp() {
    // It has not read what came, so the kernel resets its connection, and the bridge does the same at the other end.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let bridged = Bridged::to(listener.local_addr().unwrap());
    let script = r#"
import os, signal, socket
s = socket.create_connection(("10.9.9.9", 8000))
s.sendall(b"x")
s.recv(1)
os.kill(os.getpid(), signal.SIGKILL)
"#;
    let mut child = Process::spawn(&mut bridged.program(&["python3", "-c", script]));
    let (mut stream, _) = listener.accept().unwrap();
    stream.read_exact(&mut [0]).unwrap();
    let error = loop {
        if let Err(error) = stream.write_all(&[7; 16384]) {
            break error;
        }
    };
    assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error:?}");
    assert_eq!(status_of(&mut child).signal(), Some(9));
    // The bridge process has nothing left to do, and ends.
    wait_for("the process beside the program ends", || {
        !bridged.near.run(&["status", "--json"]).stdout().contains("\"run\"")
    });
}

#[test]
fn run__nobody_else_is_let_in_at_its_door() {
    let bridged = Bridged::new(echo);
    let script = r#"
import os, socket
_, token, _, way = os.environ["FAIRWAVE_RUN"].split()
port = int(way.rsplit("=", 1)[1])
good = b"FWRUN\0\0\x01" + bytes.fromhex(token) + bytes([0, 0]) + (8000).to_bytes(2, "big")
good += b"\0" * 10 + b"\xff\xff" + bytes([10, 9, 9, 9]) + b"\0" * 4
assert len(good) == 64

def answer(preamble):
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(preamble + b"hello")
    try:
        return s.recv(5)
    except ConnectionResetError:
        return "reset"

print(answer(good), answer(good[:8] + bytes(32) + good[40:]), answer(good[:59] + b"\x08" + good[60:]), answer(b"G" * 64))
"#;
    let done = bridged.python(script);
    assert_eq!(done.good(), "b'hello' reset reset reset\n");
}

#[test]
fn run__who_takes_the_port_of_a_door_that_is_gone_hears_nothing() {
    // A listener at another address than a near end's, as any user's may be; and one of another user, if there may be one.
    let script = r#"
import os, socket, sys
at, uid = sys.argv[1], int(sys.argv[2])
ready, report = os.pipe()
back, heard = os.pipe()
if os.fork() == 0:
    os.setuid(uid)
    s = socket.create_server((at, 0))
    os.write(report, str(s.getsockname()[1]).encode())
    taken, _ = s.accept()
    taken.settimeout(120)
    try:
        os.write(heard, b"heard %d" % len(taken.recv(64)))
    except ConnectionResetError:
        os.write(heard, b"heard 0")
    os._exit(0)
port = os.read(ready, 10).decode()
plan = os.environ["FAIRWAVE_RUN"].rsplit("=", 1)[0] + "=" + port
program = os.fork()
if program == 0:
    os.environ["FAIRWAVE_RUN"] = plan
    os.execv(sys.executable, [sys.executable, "-c", """
import socket
try:
    socket.create_connection(("10.9.9.9", 8000), timeout=120)
    print("connected")
except ConnectionRefusedError:
    print("refused")
"""])
os.waitpid(program, 0)
print(os.read(back, 20).decode())
"#;
    let bridged = Bridged::new(echo);
    let me = rustix::process::getuid();
    let mut cases = vec![("0.0.0.0", me.as_raw())];
    if me.is_root() {
        cases.push(("127.0.0.1", 65_534));
    } else {
        println!("left out: only root can become another user");
    }
    for (at, uid) in cases {
        let done = bridged.run(&["python3", "-c", script, at, &uid.to_string()]);
        assert_eq!(done.good(), "refused\nheard 0\n", "{at} of {uid}");
    }
}

#[test]
fn run__has_the_exit_status_of_the_program_and_its_own_for_what_cannot_run() {
    LazyLock::force(&LIBRARY);
    let host = Host::new();
    let code = |program: &[&str]| host.run(&[&["run", "--"], program].concat());
    assert_eq!(code(&["sh", "-c", "exit 7"]).code(), Some(7));
    assert_eq!(code(&["no-such-program-anywhere"]).code(), Some(127));
    host.write("text", b"hello");
    assert_eq!(code(&["./text"]).code(), Some(126));
    // The head of a program for this machine that names no loader: a static one.
    let mut head = std::fs::read(env!("CARGO_BIN_EXE_fairwave")).unwrap();
    head.truncate(64);
    head[56] = 0;
    host.write("static", &head);
    std::fs::set_permissions(host.path("static"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let done = code(&["./static"]);
    assert_eq!(done.code(), Some(126));
    assert!(done.stderr().contains("./static is statically linked"), "{}", done.stderr());
    let missing = finish(host.command(&["run", "--", "true"]).env("FAIRWAVE_PRELOAD", "/nowhere.so")).refused();
    assert!(missing.contains("FAIRWAVE_PRELOAD /nowhere.so: no such file"), "{missing}");
    let both = host.run(&["run", "--map", "10.9.9.9:80", "--", "true"]).refused();
    assert!(both.contains("--map 10.9.9.9:80: missing ticket"), "{both}");
}

/// Runs the command in a shell after something else.
fn after(first: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{first}; exec \"$0\" \"$@\"")]).arg(command.get_program()).args(command.get_args());
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(command.get_current_dir().expect("a host's commands have one"));
    shell
}

#[test]
fn run__a_descriptor_that_the_program_closes_is_closed() {
    let bridged = Bridged::new(echo);
    // The program's third descriptor is what this test reads; it lives until its stdin ends.
    let program = bridged.program(&["sh", "-c", "exec 3>&-; read line"]);
    let mut shell = after("exec 3>&1 >/dev/null", &program);
    let mut child = Process::spawn(shell.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut stdout = child.stdout.take().unwrap();
    let (tell, heard) = std::sync::mpsc::channel();
    thread::spawn(move || _ = tell.send(stdout.read_to_end(&mut Vec::new())));
    let is_closed = heard.recv_timeout(LIMIT).is_ok();
    let lives = child.try_wait().unwrap().is_none();
    drop(child.stdin.take());
    status_of(&mut child);
    assert!(lives && is_closed, "lives {lives}, closed {is_closed}");
}

#[test]
fn run__a_program_may_have_more_connections_than_descriptors_that_a_process_begins_with() {
    let bridged = Bridged::new(echo);
    let script = r#"
import resource, socket
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
socket.setdefaulttimeout(120)
all = [socket.create_connection(("10.9.9.9", 8000)) for _ in range(100)]
for n, s in enumerate(all):
    s.sendall(b"%3d" % n)
print(all[0].recv(3), sum(s.recv(3) == b"%3d" % n for n, s in enumerate(all) if n > 0))
"#;
    let program = bridged.program(&["python3", "-c", script]);
    let done = finish(&mut after("ulimit -Sn 64", &program));
    assert_eq!(done.good(), "b'  0' 99\n");
    assert!(!done.stderr().contains("Too many open files"), "{}", done.stderr());
}

#[test]
fn run__an_address_of_ipv4_written_as_ipv6_is_the_same() {
    let bridged = Bridged::new(echo);
    let map = format!("[::ffff:10.9.9.9]:8000={}", bridged.bridge.at());
    let script = r#"
import socket
for family, address in ((socket.AF_INET, "10.9.9.9"), (socket.AF_INET6, "::ffff:10.9.9.9")):
    s = socket.socket(family)
    s.connect((address, 8000))
    s.sendall(b"hello")
    print(s.recv(5).decode(), s.getpeername()[0])
"#;
    let done = bridged.near.run(&["run", "--map", &map, "--", "python3", "-c", script]);
    assert_eq!(done.good(), "hello 10.9.9.9\nhello ::ffff:10.9.9.9\n");
}

#[test]
fn run__without_its_library_says_where_it_looked() {
    let host = Host::new();
    std::fs::create_dir(host.path("bin")).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_fairwave"), host.path("bin/fairwave")).unwrap();
    // A child that another thread started may still hold the copy open for writing: "text file busy".
    let run = || Command::new(host.path("bin/fairwave")).args(["run", "--", "true"]).output().ok().map(Done);
    let done = wait_some("the copy can run", run);
    assert_eq!(done.code(), Some(1));
    for place in ["bin/libfairwave_preload.so", "lib/fairwave/libfairwave_preload.so"] {
        assert!(done.stderr().contains(&*host.path(place).to_string_lossy()), "{}", done.stderr());
    }
    // The place of packages.
    LazyLock::force(&LIBRARY);
    let built = Path::new(env!("CARGO_BIN_EXE_fairwave")).with_file_name("libfairwave_preload.so");
    std::fs::create_dir_all(host.path("lib/fairwave")).unwrap();
    std::fs::copy(built, host.path("lib/fairwave/libfairwave_preload.so")).unwrap();
    assert_eq!(wait_some("the copy can run", run).good(), "");
}

#[test]
fn bridge__takes_no_ticket_for_something_else() {
    let bridged = Bridged::new(echo);
    let at = bridged.bridge.at();
    let done = bridged.near.run(&["get", &at, "to"]);
    assert!(done.code() == Some(1) && done.stderr().contains("the ticket is for another purpose"), "{}", done.stderr());
    bridged.far.write("file", b"hello");
    let serve = bridged.far.serve(&["file", "--listen", "127.0.0.1:0"]);
    let map = format!("{ASKED}={}", serve.at());
    let script =
        "import socket\ntry:\n    socket.socket().connect((\"10.9.9.9\", 8000))\nexcept PermissionError:\n    print(1)";
    let done = bridged.near.run(&["run", "--map", &map, "--", "python3", "-c", script]);
    assert_eq!(done.good(), "1\n");
}

/// Many small files over rsync's own protocol, as a server of it is started by hand.
#[test]
fn run__rsync_brings_a_tree_as_it_is_and_fails_where_it_is_cut() {
    if !has("rsync") {
        return;
    }
    let count: usize = std::env::var("FAIRWAVE_FILES").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    let far = Host::new();
    for at in 0..count {
        far.write(&format!("tree/{}/{at}.bin", at % 37), &bytes(at * 7919 % 40_000));
    }
    far.write("tree/large.bin", &bytes(20_000_000));
    let place = place();
    let config = format!(
        "address = 127.0.0.1\nport = {}\nuse chroot = no\nuid = {}\ngid = {}\n[tree]\npath = {}\nread only = yes\n",
        place.port(),
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
        far.path("tree").display()
    );
    far.write("rsyncd.conf", config.as_bytes());
    let config = format!("--config={}", far.path("rsyncd.conf").display());
    let _daemon = Process::spawn(Command::new("rsync").args(["--daemon", "--no-detach", &config]));
    wait_for("rsync serves", || TcpStream::connect(place).is_ok());
    let bridged = Bridged::to(place);
    let from = format!("rsync://{ASKED}/tree/");
    bridged.run(&["rsync", "-a", &from, "to"]).good();
    assert!(far.tree("tree") == bridged.near.tree("to"), "a tree of {count} files is another");

    // So slow that it is under way when its bridge is killed: 200 s for the large file.
    let cut = ["rsync", "-a", "--bwlimit=100", &from, "cut"];
    let mut child = Process::spawn(bridged.program(&cut).stderr(Stdio::piped()));
    let beside = bridged.beside();
    wait_for("the first file", || bridged.near.path("cut").exists());
    kill_process(beside, Signal::KILL).unwrap();
    let status = status_of(&mut child);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    // 12: an error in rsync's data stream; 10: in its socket.
    assert!(matches!(status.code(), Some(10 | 12)), "{status:?}: {said}");
    assert!(!bridged.near.path("cut/large.bin").exists(), "a file that was cut has its name");
}
