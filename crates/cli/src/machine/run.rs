//! `fairwave run`.
//!
//! The program replaces this process, so that it owns its exit, its signals and its terminal. A second, detached
//! process (`beside`) is the near end of the bridge. It lives until the program has ended and its
//! connections with it, as the kernel does for those of TCP.

mod bridge_process;
mod map;
mod preload;

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use fairwave_bridge::{Unfit, fit};

use crate::common::failure::{CommandFailure, plain};
use crate::transfer::link::LinkArgs;
use map::Map;

/// Run a program with its TCP connections to given addresses carried over sessions.
///
/// The machine of the server runs `fairwave bridge --to ADDR:PORT` and prints the ticket. The program needs no change.
/// ADDR is the address that the program connects to, which need not exist, or a name, which must resolve. If UDP is not
/// answered within 300 ms, the session uses TCP. A connection that breaks is reset, so truncated data never looks
/// complete.
///
/// The program must be dynamically linked to the system's C library. Go programs and static programs are refused. Child
/// processes are covered but not checked in advance.
#[derive(Debug, clap::Args)]
#[command(override_usage = "fairwave run [OPTIONS] [--map ADDR:PORT=@TICKET]... -- PROGRAM [ARGUMENT]...")]
#[command(after_help = "\
Examples:
  fairwave run --map 10.9.9.9:8000=@web.ticket -- curl -O http://10.9.9.9:8000/big.bin
  fairwave run --map server:22=@ssh.ticket -- rsync -a data server:

Exit status: the program's; 126 not executable; 127 not found; 1 no bridge; 2 wrong usage.")]
pub(crate) struct Args {
    /// Carry connections to ADDR:PORT to the bridge of this ticket (@FILE, or its text); ADDR may be a name
    #[arg(long = "map", value_name = "ADDR:PORT=@TICKET")]
    maps: Vec<OsString>,
    /// Program and its arguments
    #[arg(last = true, value_name = "PROGRAM", required_unless_present = "beside")]
    program: Vec<OsString>,
    /// Print errors only
    #[arg(long, short)]
    quiet: bool,
    /// Run as the near end of the bridge for the process with this PID
    #[arg(long, hide = true, value_name = "PID")]
    beside: Option<i32>,
    /// Run it in this process
    #[arg(long, hide = true, requires = "beside")]
    detached: bool,
    #[command(flatten)]
    link: LinkArgs,
}

impl Args {
    /// Whether the process is to become the program, and is not the bridge process.
    pub(crate) fn is_start(&self) -> bool {
        self.beside.is_none()
    }
}

/// A shell's exit codes if a program cannot be run, and if it does not exist.
const CANNOT_RUN: u8 = 126;
const NO_PROGRAM: u8 = 127;

/// Runs the program in this process's place. Comes back where that cannot be.
pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandFailure> {
    match args.beside {
        Some(_) if !args.detached => bridge_process::detach().map(|()| ExitCode::SUCCESS),
        Some(program) => bridge_process::stay(program, &args.link, args.quiet).map(|()| ExitCode::SUCCESS),
        None => start(args),
    }
}

fn start(args: &Args) -> Result<ExitCode, CommandFailure> {
    let Some((program, arguments)) = args.program.split_first() else {
        return Err(CommandFailure::usage(
            "run: missing program",
            "usage: fairwave run --map 10.9.9.9:80=@TICKET -- curl ...",
        ));
    };
    let maps = args.maps.iter().map(Map::read).collect::<Result<Vec<_>, _>>()?;
    map::check_ways(&maps)?;
    let library = preload::find()?;
    let found = match fit(program, std::env::var_os("PATH").as_deref(), &library) {
        Ok(found) => found,
        Err(unfit) => return Ok(said(&unfit)),
    };
    let mut command = Command::new(&found);
    command.arg0(program).args(arguments);
    if !maps.is_empty() {
        let (variable, plan) = bridge(&maps)?;
        command.env(variable, plan).env(preload::VARIABLE, loads(&library));
    }
    let error = command.exec();
    crate::common::terminal::complain(&format!("{}: {}", found.display(), plain(&error)));
    Ok(ExitCode::from(CANNOT_RUN))
}

/// The library, before those that are loaded already.
fn loads(library: &Path) -> OsString {
    let mut all = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os(preload::VARIABLE).filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}

fn said(unfit: &Unfit) -> ExitCode {
    let hint = match unfit {
        Unfit::NotFound(_) | Unfit::NotExecutable(_) => "",
        _ => "\nhint: use a dynamically linked program, such as curl, rsync, ssh or python3",
    };
    crate::common::terminal::complain(&format!("{unfit}{hint}"));
    ExitCode::from(if matches!(unfit, Unfit::NotFound(_)) { NO_PROGRAM } else { CANNOT_RUN })
}

/// Starts the near end of the bridge as a second process, and returns the settings for the program.
fn bridge(maps: &[Map]) -> Result<(String, String), CommandFailure> {
    let failed = |what: &str, error: &io::Error| CommandFailure::Run(format!("the bridge: {what}: {}", plain(error)));
    let mut child = spawn_beside().map_err(|error| failed("cannot start", &error))?;
    let asked = tell(&mut child, maps);
    let mut line = String::new();
    let heard = match child.stdout.take() {
        Some(stdout) => BufReader::new(stdout).read_line(&mut line),
        None => Err(io::ErrorKind::BrokenPipe.into()),
    };
    // It exits at once; the bridge process is not a child of this process, or the program would have an unknown child.
    let left = child.wait();
    asked.and(heard.map(drop)).and(left.map(drop)).map_err(|error| failed("no reply", &error))?;
    let (variable, plan) = line.trim_end().split_once('=').ok_or_else(|| {
        // It has said why, on stderr.
        CommandFailure::Run("the bridge did not start; the program was not run".to_owned())
    })?;
    Ok((variable.to_owned(), plan.to_owned()))
}

/// This command again, with the options of this call.
fn spawn_beside() -> io::Result<Child> {
    let options = std::env::args_os().skip(1).take_while(|word| word != OsStr::new("--"));
    Command::new(bridge_process::this_program())
        .arg0("fairwave")
        .args(options)
        .args(["--beside", &std::process::id().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
}

/// A line per map: tickets are secrets, and must not be on a command line.
fn tell(child: &mut Child, maps: &[Map]) -> io::Result<()> {
    let mut stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    maps.iter().try_for_each(|map| writeln!(stdin, "{map}"))
}
