//! `fairwave daemon`.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration as StdDuration, Instant};

use clap::ValueEnum;
use fairwave_daemon::metrics::{MetricsAddress, MetricsServer, serve};
use fairwave_daemon::notify::{Notifier, handed_sockets};
use fairwave_daemon::{BindError, Daemon, DaemonError, Settings, config, on_hangup};
use fairwave_host::control_socket::usual_sockets;
use fairwave_node::{CardCapacity, ShareBy};
use fairwave_units::{Duration, Rate};

use crate::common::failure::{CommandFailure, Done};
use crate::common::interrupt;
use crate::common::output_args::OutputArgs;
use crate::common::quantity::{positive_rate, quantity, weight};
use crate::common::screen::Screen;
use crate::common::terminal;

/// Share this machine's capacity among the Fairwave sessions of all its users.
///
/// Fairwave processes find the daemon at its socket and follow its rates; the data does not pass through it. By default
/// each network card has 95 % of its speed; traffic over interfaces that report no speed, such as loopback, is not
/// limited. If the daemon stops, processes with sessions keep their last rates, reduced by a tenth each minute, until a
/// daemon runs again; other processes are not limited. Ctrl-C stops it.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave daemon
  fairwave daemon --capacity \"700 Mb/s\" --socket /tmp/fairwave.sock
  FAIRWAVE_DAEMON=/tmp/fairwave.sock fairwave get @big.ticket .")]
pub(crate) struct Args {
    /// Control socket [default: $FAIRWAVE_DAEMON, or /run/fairwave/daemon.sock for root, or
    /// $XDG_RUNTIME_DIR/fairwave/daemon.sock]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Capacity of the whole machine in each direction, loopback included, such as "1 Gb/s"
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    capacity: Option<Rate>,
    /// Send capacity, if it differs from --capacity
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    send: Option<Rate>,
    /// Receive capacity, if it differs from --capacity
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    receive: Option<Rate>,
    /// Control interval, from 1 ms to 200 ms; lengthened if a tick takes more than 2 % of it
    #[arg(long, value_name = "T", value_parser = interval, default_value = "20 ms")]
    interval: Duration,
    /// Groups that share the capacity equally; each group divides its part among its sessions
    #[arg(long, value_enum, value_name = "WHO", default_value = "user")]
    share_by: ShareByName,
    /// Weight of other traffic of a network card, such as TCP, relative to 1 per user [default: none]
    #[arg(long = "yield", value_name = "W", value_parser = weight)]
    yields: Option<f64>,
    /// Serve Prometheus metrics and a live page on this port of loopback, or on ADDRESS:PORT
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<MetricsAddress>,
    /// Configuration of users and network cards, read again on SIGHUP [default: /etc/fairwave/daemon.toml if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ShareByName {
    /// Users of this machine
    User,
    /// Processes
    Process,
    /// Sessions
    Session,
}

const LOOK_EVERY: StdDuration = StdDuration::from_millis(50);
const LETS_GO: StdDuration = StdDuration::from_secs(2);

/// Path of the system's configuration file.
const CONFIG: &str = "/etc/fairwave/daemon.toml";

/// Whether SIGHUP came since that was looked at.
static HANGUP: AtomicBool = AtomicBool::new(false);

/// Call before any thread starts: one that takes SIGHUP would end the process.
pub(crate) fn enter() {
    if let Err(error) = on_hangup(|| HANGUP.store(true, Ordering::SeqCst)) {
        terminal::note(&format!("cannot handle SIGHUP: {error}; the configuration will not be reloaded"));
    }
}

pub(crate) fn run(args: &Args) -> Done {
    let screen = Screen::new(args.output);
    let handed = handed()?;
    let settings = settings(args, handed.as_ref().map(|(_, path)| path.clone()))?;
    let socket = settings.socket.clone();
    let capacity = settings.everything;
    let daemon = match handed {
        Some((listener, _)) => Daemon::start_at(listener, settings),
        None => Daemon::start(settings),
    };
    let daemon = daemon.map(Arc::new).map_err(|error| match error {
        DaemonError::Bind(error) => {
            let hint = match error {
                BindError::NoDirectory { .. } => "create the directory, or choose another socket with --socket PATH",
                BindError::Taken(_) => "run `fairwave status` to see the daemon that is running",
                BindError::System { .. } => "choose another socket with --socket PATH",
            };
            CommandFailure::usage(format!("--socket {error}"), hint)
        }
        DaemonError::System(_) => CommandFailure::Run(error.to_string()),
    })?;
    interrupt::be_gentle();
    let shows = args.metrics.map(|metrics| answer(metrics, &daemon)).transpose()?;
    let words = |rate: Option<Rate>| rate.map_or_else(|| "unlimited".to_owned(), |rate| format!("{rate:.2}"));
    let shares = match capacity {
        None => "each network card".to_owned(),
        Some(CardCapacity { send, receive }) if send == receive => words(send),
        Some(CardCapacity { send, receive }) => format!("{} out, {} in", words(send), words(receive)),
    };
    if let Some(made) = daemon.made_directory() {
        screen.note(&format!("created the directory {}", made.display()));
    }
    screen.note(&format!("sharing {shares}; socket {}", socket.display()));
    if let Some(server) = &shows {
        screen.note(&format!("metrics and live page at http://{}", server.address()));
    }
    let notifier = Notifier::of_environment();
    notifier.ready();
    let mut said = Instant::now();
    let mut reading: Option<Reading> = None;
    while !interrupt::is_asked() {
        std::thread::sleep(LOOK_EVERY);
        if daemon.is_over() {
            return Err(CommandFailure::Run("the daemon's threads ended unexpectedly".to_owned()));
        }
        // One that comes while a file is read is taken up after that.
        if reading.is_none() && HANGUP.swap(false, Ordering::SeqCst) {
            notifier.reloading();
            reading = Some(read_again(args, &socket)?);
        }
        if let Some(read) = reading.take_if(|reading| reading.is_finished()) {
            screen.note(&reload(read, &daemon));
            notifier.ready();
        }
        if notifier.watchdog_interval().is_some_and(|interval| said.elapsed() >= interval) {
            notifier.alive();
            said = Instant::now();
        }
    }
    notifier.stopping();
    drop(shows);
    // Watchers release the daemon within a moment: its socket is removed with it.
    let begin = Instant::now();
    while Arc::strong_count(&daemon) > 1 && begin.elapsed() < LETS_GO {
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

fn answer(metrics: MetricsAddress, daemon: &Arc<Daemon>) -> Result<MetricsServer, CommandFailure> {
    let seen = Arc::clone(daemon);
    serve(metrics.0, move || Arc::new(seen.snapshot())).map_err(|error| {
        CommandFailure::usage(
            format!("--metrics {}: {error}", metrics.0),
            "run `ss -ltp` to see which process uses the port",
        )
    })
}

/// A file that is being read: names of users may be looked up over a network that does not answer, and the watchdog
/// must not wait for that.
type Reading = JoinHandle<Result<Settings, CommandFailure>>;

fn read_again(args: &Args, socket: &Path) -> Result<Reading, CommandFailure> {
    let (args, socket) = (args.clone(), socket.to_owned());
    let thread = std::thread::Builder::new().name("fairwave-config".to_owned());
    let reading = thread.spawn(move || settings(&args, Some(socket)));
    reading.map_err(|error| CommandFailure::Run(format!("cannot start a thread to reload the configuration: {error}")))
}

/// Applies the settings that were read; on an error everything stays unchanged. Returns the message.
fn reload(read: Reading, daemon: &Daemon) -> String {
    match read.join() {
        Ok(Ok(settings)) => {
            daemon.reload(settings);
            "reloaded the configuration".to_owned()
        }
        Ok(Err(failure)) => {
            let problem = failure.message().unwrap_or("cannot read the configuration").to_owned();
            format!("{problem}\nthe old configuration stays in force")
        }
        // The panic has been printed.
        Err(_) => "cannot read the configuration\nthe old configuration stays in force".to_owned(),
    }
}

/// The socket that who started this process hands over, if it does, and where it is.
fn handed() -> Result<Option<(UnixListener, PathBuf)>, CommandFailure> {
    let failed = |error: std::io::Error| CommandFailure::Run(format!("LISTEN_FDS: {error}"));
    let Some(first) = handed_sockets().map_err(failed)?.into_iter().next() else { return Ok(None) };
    let listener = UnixListener::from(first);
    let address = listener.local_addr().map_err(failed)?;
    let path = address.as_pathname().map_or_else(|| PathBuf::from("a socket without a path"), Path::to_path_buf);
    Ok(Some((listener, path)))
}

fn settings(args: &Args, handed: Option<PathBuf>) -> Result<Settings, CommandFailure> {
    let socket = match (handed, &args.socket) {
        (Some(handed), _) => handed,
        (None, Some(socket)) => socket.clone(),
        (None, None) => usual_socket()?,
    };
    let socket = std::path::absolute(&socket).map_err(|error| {
        CommandFailure::usage(format!("--socket {}: {error}", socket.display()), "use --socket PATH")
    })?;
    let (send, receive) = (args.send.or(args.capacity), args.receive.or(args.capacity));
    let everything = (send.is_some() || receive.is_some()).then_some(CardCapacity { send, receive });
    let share_by = match args.share_by {
        ShareByName::User => ShareBy::User,
        ShareByName::Process => ShareBy::Process,
        ShareByName::Session => ShareBy::Session,
    };
    let base = Settings { interval: args.interval, share_by, everything, yields: args.yields, ..Settings::at(socket) };
    let usual = Path::new(CONFIG);
    let Some(path) = args.config.as_deref().or_else(|| usual.exists().then_some(usual)) else { return Ok(base) };
    let said = config::read(path, &base).map_err(|error| CommandFailure::Usage(error.to_string()))?;
    // Options take precedence over the file.
    Ok(Settings { yields: args.yields.or(said.yields), ..said })
}

/// The socket of the system for root; another for each other user.
fn usual_socket() -> Result<PathBuf, CommandFailure> {
    let is_root = rustix::process::geteuid().is_root();
    let sockets = usual_sockets();
    let found = if is_root || sockets.len() == 1 { sockets.first() } else { sockets.get(1) };
    let is_system = |path: &PathBuf| path.starts_with("/run/fairwave");
    found.filter(|path| is_root || !is_system(path)).cloned().ok_or_else(|| {
        CommandFailure::usage(
            "daemon: no default directory for the socket: XDG_RUNTIME_DIR is not set",
            "use --socket PATH",
        )
    })
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = quantity::<Duration>(text)?;
    let bounds = Duration::from_millis(1)..=Duration::from_millis(200);
    if bounds.contains(&interval) { Ok(interval) } else { Err("must be between 1 ms and 200 ms".into()) }
}
