//! `fairwave cp`.

pub(crate) mod far;
mod far_lines;
mod identity;
mod install;
pub(crate) mod message;
pub(crate) mod place;
mod relay;
mod sftp;
mod ssh;
mod ssh_process;

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use clap::FromArgMatches;
use fairwave_files::{Compress, GetOptions, ListedEntry, Share, ShareOptions, TopNames, expand, is_glob};
use fairwave_host::{Carrier, Carriers, Keyring, Listen, ShareId, Ticket, Validity};
use fairwave_units::Duration;

use crate::common::failure::{CommandFailure, Done, plain};
use crate::common::output_args::OutputArgs;
use crate::common::screen::Screen;
use crate::transfer::choice::{Choice, ChoiceArgs, NOTHING, read_sources};
use crate::transfer::far_tunnel::FarRoute;
use crate::transfer::get::{self, Taking};
use crate::transfer::growing::repeat;
use crate::transfer::link::{LinkArgs, PathUse, Ports};
use crate::transfer::offer::of_state;
use crate::transfer::own_places::note_left_out;
use crate::transfer::pipe_ends::{PipeFile, is_pipe};
use crate::transfer::put;
use far::FarCopy;
use far_lines::FarLines;
use identity::identity;
use install::Install;
use message::{CpRequest, CpTask};
use place::{CpPlace, Target};
use sftp::SftpCopy;
use ssh::{FarEnd, SshCall};

/// Copy files to, from or between machines that ssh reaches; no server is needed there.
///
/// ssh starts `fairwave` on the other machine. The files then travel over UDP, next to ssh, or through ssh if UDP is
/// blocked. Between two other machines they travel directly, or through this one if the second cannot reach the first.
/// DEST is a directory, or the new name of a single SRC; missing directories are created. The other machine
/// expands wildcards (`*`, `?`, `[...]`) in HOST:SRC. Data that is already complete is not transferred again: after an
/// interrupt or a crash, repeat the command to resume. If the connection is lost, the transfer reconnects by itself
/// (--retry). A single SRC of - is stdin, and a DEST of - is stdout.
#[derive(Debug, clap::Args)]
#[command(override_usage = "fairwave cp [OPTIONS] [HOST:]SRC... [HOST:]DEST")]
#[command(after_help = "\
Examples:
  fairwave cp results server:data
  fairwave cp server:data/a.bin 'server:data/*.h5' .
  fairwave cp lab:run7 archive:runs/
  tar c results | fairwave cp - server:results.tar
  fairwave cp --ssh \"ssh -p 2222\" --port 50000-50010 me@server:big.bin downloads")]
pub(crate) struct Args {
    /// Files and directories of one machine, then the destination
    #[arg(required = true, value_name = "[HOST:]PATH")]
    words: Vec<OsString>,
    /// UDP ports, one of which the other machine listens on [default: 8642, or any]
    #[arg(long, value_name = "A-B")]
    port: Option<Ports>,
    #[command(flatten)]
    ssh: SshArgs,
    /// With --carrier sftp, read back each file that is sent, and compare it, before it gets its name
    #[arg(long, hide_short_help = true)]
    verify: bool,
    #[command(flatten)]
    choice: ChoiceArgs,
    #[command(flatten)]
    taking: Taking,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    link: LinkArgs,
}

/// How the other machine is reached.
#[derive(Debug, clap::Args)]
pub(crate) struct SshArgs {
    /// Command to run instead of ssh
    #[arg(long, value_name = "COMMAND", env = "FAIRWAVE_SSH", default_value = "ssh")]
    ssh: String,
    /// The other machine's fairwave command [default: fairwave, or that in ~/.local/bin or ~/.cargo/bin]
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    remote_command: Option<String>,
    /// Run a copy of this command in ~/.cache/fairwave there, made if it is missing; with =DIR that of the release in
    /// DIR, for another architecture
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "", hide_short_help = true)]
    install: Option<OsString>,
}

impl SshArgs {
    fn call(&self, host: String, request: CpRequest) -> SshCall {
        let release = |dir: &OsString| (!dir.is_empty()).then(|| dir.into());
        let install = self.install.as_ref().map(|dir| Install { release: release(dir) });
        SshCall {
            ssh: self.ssh.clone(),
            remote_command: self.remote_command.clone(),
            install,
            host,
            request,
            lines: None,
        }
    }
}

/// Direction of a copy.
enum CopyDirection {
    Local { from: Vec<PathBuf>, to: PathBuf },
    Fetch { host: String, from: Vec<OsString>, to: PathBuf },
    Send { from: Vec<PathBuf>, host: String, to: OsString },
    Between { from_host: String, from: Vec<OsString>, host: String, to: OsString },
}

/// Whether files go through an SFTP server.
fn is_sftp(args: &Args) -> bool {
    args.link.carrier == Carriers::Only(Carrier::Sftp)
}

pub(crate) fn run(args: &Args) -> Done {
    let screen = Screen::new(args.output);
    let why = "cp supports udp, ssh and sftp only";
    args.link.check_carrier("cp", &[Carrier::Udp, Carrier::Ssh, Carrier::Sftp], why)?;
    if args.verify && !is_sftp(args) {
        let message = "cp: --verify is for --carrier sftp: other carriers verify every block";
        return Err(CommandFailure::usage(message, "omit --verify"));
    }
    let mut way = way(&args.words)?;
    let (mut choice, lists) = match way {
        CopyDirection::Between { .. } => args.choice.read_and_keep("cp")?,
        _ => (args.choice.read("cp")?, Vec::new()),
    };
    if choice.is_nothing() {
        screen.note(NOTHING);
        return Ok(());
    }
    read_sources("cp", &mut choice, &args.words[..args.words.len() - 1])?;
    if args.words.iter().any(is_pipe) {
        args.taking.look.check_pipe("cp")?;
    }
    let output = match &mut way {
        CopyDirection::Local { from, to } if is_pipe(&*to) => Some((from.len(), to)),
        CopyDirection::Fetch { from, to, .. } if is_pipe(&*to) => Some((from.len(), to)),
        _ => None,
    };
    let output = output.map(|(count, to)| PipeFile::for_output("cp", Some(count), args.output, to)).transpose()?;
    let _input = match &mut way {
        CopyDirection::Local { from, .. } | CopyDirection::Send { from, .. } => PipeFile::of_input("cp", from)?,
        CopyDirection::Fetch { .. } | CopyDirection::Between { .. } => None,
    };
    repeat(args.taking.look.follow, |is_first| {
        copy(&Screen::new(args.output.or_quiet(!is_first)), args, choice.clone(), lists.clone(), &way)
    })?;
    output.map_or(Ok(()), |output| output.write_out())
}

fn copy(screen: &Screen, args: &Args, choice: Choice, lists: Vec<Vec<u8>>, way: &CopyDirection) -> Done {
    match way {
        way if is_sftp(args) => copy_over_sftp(screen, args, choice, way),
        CopyDirection::Local { from, to } => copy_here(screen, args, choice, from, to, from.len() == 1),
        CopyDirection::Fetch { host, from, to } => {
            let far = FarEnd::start(args.ssh.call(host.clone(), ask(args, give(from))))?;
            let done = fetch(screen, args, choice, from, to, &far.ticket, far.route(args.link.carrier));
            far.end();
            done
        }
        CopyDirection::Send { from, host, to } => {
            let what = CpTask::Take {
                place: message::RemotePath::new(to),
                // The inside of a directory is several things.
                is_single: from.len() == 1 && choice.names.is_none(),
                is_dry: args.taking.look.dry_run,
                durable: args.taking.durable,
                keeps_links: args.taking.look.keeps_links(),
                deletes: args.taking.look.delete,
                archives: args.taking.look.archive,
            };
            let far = FarEnd::start(args.ssh.call(host.clone(), ask(args, what)))?;
            let options = put::options(&args.taking.look, choice, args.taking.limit, args.taking.patience)?;
            let ssh = far.route(args.link.carrier);
            let done = put::send(screen, &args.link, ssh, &far.ticket, from, &options, args.taking.look.strict);
            far.end();
            done
        }
        CopyDirection::Between { from_host, from, host, .. } => {
            if args.taking.look.follow {
                let message = "cp: --follow does not work between two other machines";
                return Err(CommandFailure::usage(message, "run it on one of them: ssh HOST fairwave cp ..."));
            }
            let call = relay::Call { arguments: std::env::args_os().skip(2).collect(), lists };
            let far = if from_host == host {
                None
            } else {
                let request = CpRequest { ends_with_ssh: true, ..ask(args, give(from)) };
                Some(FarEnd::start(args.ssh.call(from_host.clone(), request))?)
            };
            let taker = |what| SshCall {
                lines: Some(FarLines::new(args.output.json)),
                ..args.ssh.call(host.clone(), ask(args, what))
            };
            relay::run(screen, far, call, taker)
        }
    }
}

/// Work of the machine with the sources.
fn give(from: &[OsString]) -> CpTask {
    CpTask::Give(from.iter().map(|path| message::RemotePath::new(path)).collect())
}

/// Fetches sources of another machine.
fn fetch(
    screen: &Screen,
    args: &Args,
    choice: Choice,
    from: &[OsString],
    to: &std::path::Path,
    ticket: &Ticket,
    route: Option<FarRoute>,
) -> Done {
    // The far end is not trusted: its list contains the names.
    let names = TopNames::of(from.iter().map(|path| far::home_relative(path.into())));
    let options = GetOptions { top_names: Some(names), ..into(args, choice, to, is_single(from))? };
    get::fetch(screen, &args.link, route, ticket, &options, args.taking.look.strict)
}

fn is_single(from: &[OsString]) -> bool {
    from.len() == 1 && !is_glob(&from[0])
}

/// Copies to this machine by a call at a third one.
pub(crate) fn copy_for_another(far: FarCopy) -> Done {
    let call = <Args as clap::Args>::augment_args(clap::Command::new("cp").no_binary_name(true));
    let parsed = call.try_get_matches_from(far.arguments).and_then(|matches| Args::from_arg_matches(&matches));
    let wrong = |error: clap::Error| CommandFailure::Usage(format!("incompatible fairwave versions: {error}"));
    let args = &parsed.map_err(wrong)?;
    let screen = Screen::new(args.output);
    let mut choice = args.choice.read_from("cp", far.lists)?;
    read_sources("cp", &mut choice, &args.words[..args.words.len() - 1])?;
    let CopyDirection::Between { from, to, .. } = way(&args.words)? else {
        return Err(CommandFailure::Usage("cp: the call is not for this machine".to_owned()));
    };
    let to = far::home_relative(to.into());
    if let Some((ticket, route)) = far.from {
        let route = Some(route).filter(|_| args.link.carrier.allow(Carrier::Ssh));
        return fetch(&screen, args, choice, &from, &to, &ticket, route);
    }
    let mut paths = Vec::new();
    for path in &from {
        let path = far::home_relative(path.into());
        paths.extend(expand(&path).map_err(|error| CommandFailure::Usage(error.to_string()))?);
    }
    copy_here(&screen, args, choice, &paths, &to, is_single(&from))
}

/// Lists files of a machine that ssh reaches.
pub(crate) fn list(
    ssh: &SshArgs,
    host: String,
    paths: &[OsString],
    is_recursive: bool,
    found: &mut dyn FnMut(&ListedEntry<'_>) -> Done,
) -> Done {
    let paths = paths.iter().map(|path| message::RemotePath::new(path)).collect();
    let request = CpRequest::of(CpTask::List { paths, is_recursive });
    ssh::list(&ssh.call(host, request), found)
}

fn way(words: &[OsString]) -> Result<CopyDirection, CommandFailure> {
    let wrong = |message: String, hint: &str| CommandFailure::usage(format!("cp: {message}"), hint);
    let hint = "fairwave cp [HOST:]SRC... [HOST:]DEST";
    let places: Vec<_> = words
        .iter()
        .map(|word| CpPlace::read(word))
        .collect::<Result<_, _>>()
        .map_err(|message| wrong(message, hint))?;
    let Some((to, from)) = places.split_last().filter(|(_, from)| !from.is_empty()) else {
        return Err(wrong("missing destination".into(), hint));
    };
    let (mut here, mut there, mut hosts) = (Vec::new(), Vec::new(), Vec::new());
    for place in from {
        match place {
            CpPlace::Here(path) => here.push(path.clone()),
            CpPlace::There { host, path } => {
                there.push(path.clone());
                if !hosts.contains(host) {
                    hosts.push(host.clone());
                }
            }
        }
    }
    match (to, hosts.as_slice()) {
        (CpPlace::Here(to), []) => Ok(CopyDirection::Local { from: here, to: to.clone() }),
        (CpPlace::Here(to), [host]) if here.is_empty() => {
            Ok(CopyDirection::Fetch { host: host.clone(), from: there, to: to.clone() })
        }
        (CpPlace::There { host, path }, []) => {
            Ok(CopyDirection::Send { from: here, host: host.clone(), to: path.clone() })
        }
        (CpPlace::There { host, path }, [from_host]) if here.is_empty() => Ok(CopyDirection::Between {
            from_host: from_host.clone(),
            from: there,
            host: host.clone(),
            to: path.clone(),
        }),
        _ => Err(wrong("the sources are on more than one machine".into(), "run one copy per machine")),
    }
}

fn ask(args: &Args, what: CpTask) -> CpRequest {
    CpRequest {
        capacity_bps: args.link.capacity.map(fairwave_units::Rate::as_bps),
        ports: args.port.as_ref().map(|ports| (*ports.0.start(), *ports.0.end())),
        is_plain: args.link.plain,
        is_dedicated: args.link.path == PathUse::Dedicated,
        interval_s: args.link.interval.map(Duration::as_secs_f64),
        alpha: args.link.alpha,
        beta: args.link.beta,
        rule: args.link.rule.clone(),
        path_control: args.link.path_control,
        // Without a number it is as one of before that knew of none.
        run: getrandom::u64().ok().map(|run| format!("{run:016x}")),
        ..CpRequest::of(what)
    }
}

/// Copies through an SFTP server.
fn copy_over_sftp(screen: &Screen, args: &Args, choice: Choice, way: &CopyDirection) -> Done {
    let copy = SftpCopy { ssh: &args.ssh.ssh, link: &args.link, taking: &args.taking, verifies: args.verify };
    let refused = [
        (args.port.is_some(), "--port", "it opens no port"),
        (args.ssh.remote_command.is_some(), "--remote-command", "it runs no command there"),
        (args.ssh.install.is_some(), "--install", "it runs no command there"),
    ];
    copy.refuse(&refused, &choice, matches!(way, CopyDirection::Send { .. }))?;
    match way {
        CopyDirection::Local { .. } => Err(CommandFailure::usage(
            "cp: --carrier sftp: neither side is on another machine",
            "write HOST:PATH on one side",
        )),
        CopyDirection::Between { .. } => Err(CommandFailure::usage(
            "cp: --carrier sftp: source and destination are both on other machines",
            "copy to this machine first",
        )),
        CopyDirection::Fetch { host, from, to } => {
            let is_single = from.len() == 1 && !is_glob(&from[0]);
            copy.fetch(screen, into(args, choice, to, is_single)?, host, from)
        }
        CopyDirection::Send { from, host, to } => copy.send(screen, choice, from, host, to.clone()),
    }
}

/// Options of receiving a single source, or several.
fn into(args: &Args, choice: Choice, to: &std::path::Path, is_single: bool) -> Result<GetOptions, CommandFailure> {
    let is_inside = choice.names.is_some();
    let one_file = args.words.last().is_some_and(is_pipe);
    let Target { directory, rename, may_be_own } = Target::read(to, one_file || (is_single && !is_inside));
    Ok(GetOptions {
        one_file,
        rename,
        continues_rename: may_be_own,
        is_inside,
        ..args.taking.options(choice, directory)?
    })
}

/// A directory is not copied into itself, however the destination is written: each copy would be part of the next.
fn refuse_into_itself(from: &[PathBuf], to: &std::path::Path) -> Done {
    use std::os::unix::fs::MetadataExt;
    let Ok(to) = std::path::absolute(to) else { return Ok(()) };
    // A path that does not exist is in its nearest existing ancestor.
    let Some(there) = to.ancestors().find_map(|path| path.canonicalize().ok()) else { return Ok(()) };
    let around: Vec<_> = there.ancestors().filter_map(|path| path.metadata().ok()).collect();
    for path in from {
        let Ok(meta) = path.metadata() else { continue };
        let is_same = |other: &std::fs::Metadata| (other.dev(), other.ino()) == (meta.dev(), meta.ino());
        if meta.is_dir() && around.iter().any(is_same) {
            let [from, to] = [path, &to].map(|path| fairwave_files::escaped(path.as_os_str().as_bytes()));
            let message = format!("cp: cannot copy the directory {from} into itself, {to}");
            return Err(CommandFailure::usage(message, "name a destination outside of it"));
        }
    }
    Ok(())
}

/// A mirror does not delete its own source, which may lie below its destination.
fn refuse_to_delete_source(from: &[PathBuf], options: &GetOptions) -> Done {
    for path in from {
        let Ok(source) = path.canonicalize() else { continue };
        let name = options.rename.as_deref().or_else(|| path.file_name().or(source.file_name()));
        let target = match name.filter(|_| !options.is_inside) {
            Some(name) => options.destination.join(name),
            None => options.destination.clone(),
        };
        if target.canonicalize().is_ok_and(|target| source != target && source.starts_with(target)) {
            let message = format!(
                "cp: --delete would delete the source {}",
                fairwave_files::escaped(path.as_os_str().as_bytes())
            );
            return Err(CommandFailure::usage(message, "name a destination that does not contain it"));
        }
    }
    Ok(())
}

/// Both ends are this process: resuming after an interrupt works here as well.
fn copy_here(
    screen: &Screen,
    args: &Args,
    choice: Choice,
    from: &[PathBuf],
    to: &std::path::Path,
    is_single: bool,
) -> Done {
    let absolute = |path: &PathBuf| {
        std::path::absolute(path)
            .map_err(|error| CommandFailure::usage(plain(&error), "name existing files or directories"))
    };
    let paths = from.iter().map(absolute).collect::<Result<Vec<_>, _>>()?;
    refuse_into_itself(&paths, to)?;
    let options = GetOptions { compress: Compress::Never, ..into(args, choice, to, is_single)? };
    if options.deletes.is_some() {
        refuse_to_delete_source(&paths, &options)?;
    }
    let id = ShareId::of(&paths, false);
    note_left_out(screen, &paths);
    let share = Share::new(paths, ShareOptions { session: args.link.session(), ..ShareOptions::default() })
        .map_err(|error| CommandFailure::Usage(error.to_string()))?;
    let loopback = Listen::At(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let giver = args.link.bind_to("cp", &loopback)?;
    let identity = identity(|note| screen.note(note))?;
    let keyring = Keyring::in_memory(identity, id);
    let addresses = vec![giver.endpoint.local_addr()];
    let ticket =
        keyring.issue(Validity { lasts_s: None, is_once: false }, addresses).map_err(|error| of_state(&error))?;
    let share = Arc::new(share);
    giver.endpoint.listen_with(Arc::new(keyring), share.judges(), share.accept());
    let done = get::fetch(screen, &args.link, None, &ticket, &options, args.taking.look.strict);
    giver.endpoint.close();
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuse_into_itself__by_any_name_of_the_directory() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::create_dir_all(at("src/sub")).unwrap();
        std::fs::create_dir(at("other")).unwrap();
        std::fs::write(at("file"), "").unwrap();
        std::os::unix::fs::symlink("src", at("link")).unwrap();
        for (from, to, is_refused) in [
            ("src", "src/copy", true),
            ("src", "src", true),
            ("src", "src/sub/new/deep", true),
            ("src", "link/copy", true),
            ("link", "src/copy", true),
            ("src/sub", "src/sub/../sub/x", true),
            ("src/sub", "src", false),
            ("src", "src-copy", false),
            ("src", "other", false),
            ("file", "src", false),
            ("file", "file", false),
        ] {
            let refused = refuse_into_itself(&[at(from)], &at(to));
            assert_eq!(refused.is_err(), is_refused, "{from} into {to}");
        }
        let code = refuse_into_itself(&[at("src")], &at("src/x")).unwrap_err().code();
        assert_eq!(code, 2);
    }

    #[test]
    fn way__of_one_machine_to_one() {
        let of = |words: &[&str]| way(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(matches!(of(&["a", "b", "c"]), Ok(CopyDirection::Local { from, .. }) if from.len() == 2));
        assert!(
            matches!(of(&["h:a", "h:b", "c"]), Ok(CopyDirection::Fetch { host, from, .. }) if host == "h" && from.len() == 2)
        );
        assert!(
            matches!(of(&["h:a", "h:b", "i:c"]), Ok(CopyDirection::Between { from_host, from, host, .. }) if from_host == "h" && from.len() == 2 && host == "i")
        );
        assert!(matches!(of(&["a", "h:"]), Ok(CopyDirection::Send { host, to, .. }) if host == "h" && to.is_empty()));
        for (words, says) in [
            (["h:a", "b", "c"], "more than one machine"),
            (["h:a", "i:b", "c"], "more than one machine"),
            (["h:a", "i:b", "j:c"], "more than one machine"),
            (["h:a", "b", "i:c"], "more than one machine"),
            ([":a", "b", "c"], "missing host"),
        ] {
            let failure = of(&words).err().unwrap();
            assert!(failure.message().unwrap().contains(says), "{words:?}");
            assert_eq!(failure.code(), 2);
        }
    }
}
