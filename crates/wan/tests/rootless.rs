//! A network for unprivileged users: the test runs itself again as nobody, and makes one in a user namespace.

use std::error::Error;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use fairwave_wan::{Port, Relay, Space, Way, address, become_root};

/// Argument that marks the process that runs as nobody.
const CHILD: &str = "the-child";
const DELAY: Duration = Duration::from_millis(10);

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some(CHILD) {
        return echo();
    }
    // The user nobody can read neither the tree nor its build.
    let directory = tempfile::tempdir()?;
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755))?;
    let program = directory.path().join("rootless");
    std::fs::copy(std::env::current_exe()?, &program)?;
    let mut command = Command::new("setpriv");
    if rustix::process::geteuid().is_root() {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    }
    let output = command.arg(&program).arg(CHILD).current_dir("/").output()?;
    let (reported, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if complained.contains("no user namespace") {
        let says_what_to_type = complained.contains("sysctl") || complained.contains("sudo");
        assert!(says_what_to_type, "{complained}");
        println!("skipped: {complained}");
        return Ok(());
    }
    assert!(output.status.success(), "{reported}{complained}");
    println!("{reported}");
    Ok(())
}

/// A datagram goes to the other host and back.
fn echo() -> Result<(), Box<dyn Error>> {
    become_root()?;
    let spaces = [Space::new()?, Space::new()?];
    let ports = [Port::new(&spaces[0], 0, 1500)?, Port::new(&spaces[1], 1, 1500)?];
    let relay = Relay::start(ports.into(), 1)?;
    relay.set_both(0, Way::delay(DELAY));
    let bind = |port: usize| {
        let here = SocketAddr::new(address(port, 1, false), 9000);
        spaces[port].run(|| UdpSocket::bind(here))?.map(|socket| (socket, here))
    };
    let ((here, _), (there, far)) = (bind(0)?, bind(1)?);
    for socket in [&here, &there] {
        socket.set_read_timeout(Some(fairwave_testing::LIMIT))?;
    }
    fairwave_testing::wait_for("the delay is in force", || relay.is_up_to_date());
    let begin = Instant::now();
    here.send_to(b"hello", far)?;
    let mut buffer = [0; 16];
    let (bytes, from) = there.recv_from(&mut buffer)?;
    there.send_to(&buffer[..bytes], from)?;
    let bytes = here.recv(&mut buffer)?;
    assert_eq!(&buffer[..bytes], b"hello");
    let took = begin.elapsed();
    assert!(took >= DELAY * 2, "{took:?}");
    println!("{}", relay.stop()?);
    Ok(())
}
