//! `fairwave bridge`.

use std::sync::Arc;
use std::time::Duration;

use fairwave_bridge::{Far, FarOptions};
use fairwave_host::{Offering, ShareId};
use fairwave_pipe::{PipeOptions, Pump};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::common::failure::{CommandFailure, Done};
use crate::common::interrupt;
use crate::common::screen::Screen;
use crate::common::terminal;
use crate::transfer::monitor::monitor;
use crate::transfer::offer::{ListenArgs, of_state};

/// Make a TCP server reachable over sessions for programs on other machines.
///
/// The ticket is the only output on stdout. It grants access to ADDR:PORT, as this machine reaches it, and to nothing
/// else. The other machine needs `fairwave run`, which works with any dynamically linked program. Each connection dials
/// the server separately. Ctrl-C closes all connections.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave bridge --to 127.0.0.1:8000 > web.ticket
  fairwave bridge --to 127.0.0.1:22 --listen 192.0.2.7:5000 > ssh.ticket")]
pub(crate) struct Args {
    /// Address of the server, as reached from here
    #[arg(long, value_name = "ADDR:PORT", value_parser = server)]
    to: String,
    #[command(flatten)]
    listen: ListenArgs,
}

const TICK: Duration = Duration::from_millis(50);

pub(crate) fn run(args: &Args) -> Done {
    let screen = Screen::new(args.listen.output);
    let pump = pump()?;
    let offered = args.listen.open(ShareId::of(["bridge", args.to.as_str()], false), false)?;
    let offering = Offering { paths: vec![format!("bridge to {}", args.to)], takes: false, gives: false };
    offered.keyring.keep_offering(offering).map_err(|error| of_state(&error))?;
    let options = FarOptions { to: args.to.clone(), session: args.listen.link.session(), pipe: PipeOptions::default() };
    let is_quiet = args.listen.output.quiet;
    let far = Far::new(options, pump, move |text| {
        if !is_quiet {
            terminal::note(text);
        }
    });
    offered.bound.endpoint.listen_with(Arc::clone(&offered.keyring), far.judge(), far.accept());
    let _socket = monitor(&screen, "bridge", &offered.bound, Vec::new);
    interrupt::be_gentle();
    offered.print_ticket(&screen, &format!("fairwave run --map {}=@FILE -- PROGRAM", args.to))?;
    while !interrupt::is_asked() {
        std::thread::sleep(TICK);
    }
    offered.bound.endpoint.close();
    Ok(())
}

/// Moves the bytes of connections. Each has a descriptor: the soft limit is raised to the hard limit.
pub(crate) fn pump() -> Result<Pump, CommandFailure> {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    Pump::start().map_err(|error| CommandFailure::Run(format!("cannot start: {error}")))
}

/// An address or a name, and a port.
fn server(text: &str) -> Result<String, String> {
    let (host, port) = text.rsplit_once(':').ok_or("port is missing: use the form 127.0.0.1:8000 or [::1]:8000")?;
    let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
    let is_host = if host.contains(':') {
        host.strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .is_some_and(|ip| ip.parse::<std::net::Ipv6Addr>().is_ok())
    } else {
        !host.is_empty()
    };
    match (is_host, is_port) {
        (true, true) => Ok(text.to_owned()),
        (true, false) => Err(format!("\"{}\" is not a valid port (1 to 65535)", port.escape_debug())),
        (false, _) => Err("not an address: use the form 127.0.0.1:8000, [::1]:8000 or name:8000".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server__is_an_address_or_a_name_with_a_port() {
        for good in ["127.0.0.1:8000", "[::1]:1", "name.example:65535"] {
            assert_eq!(server(good).as_deref(), Ok(good));
        }
        for wrong in ["127.0.0.1", "::1:80", "[::1]", ":80", "a:0", "a:70000", "a:http", "[::g]:1"] {
            assert!(server(wrong).is_err(), "{wrong}");
        }
    }
}
