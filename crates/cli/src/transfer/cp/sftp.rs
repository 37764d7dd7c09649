//! Copies to and from a machine that allows only SFTP, and runs no Fairwave.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use fairwave_files::{
    Compress, GetOptions, PutOptions, Sftp, SftpDestination, SftpServer, SftpTree, Share, ShareOptions, TopNames,
    put_sftp,
};
use fairwave_host::{Keyring, Listen, ShareId, Validity};

use super::far::home_relative;
use super::identity::identity;
use crate::common::failure::{CommandFailure, Done, plain};
use crate::common::screen::Screen;
use crate::transfer::choice::Choice;
use crate::transfer::follow::{KnownBefore, follow};
use crate::transfer::get::{self, DurableArg, Taking};
use crate::transfer::link::LinkArgs;
use crate::transfer::offer::of_state;
use crate::transfer::own_places::note_left_out;
use crate::transfer::put;

/// Exit status of ssh if it cannot connect.
const SSH_FAILED: i32 = 255;

/// An option that does not work, whether it is set, and why it does not.
pub(super) type RefusedOption = (bool, &'static str, &'static str);

/// A copy through an SFTP server.
pub(super) struct SftpCopy<'a> {
    pub(super) ssh: &'a str,
    pub(super) link: &'a LinkArgs,
    pub(super) taking: &'a Taking,
    pub(super) verifies: bool,
}

impl SftpCopy<'_> {
    /// Refuses these options if they are set, and others that an SFTP server cannot support.
    pub(super) fn refuse(&self, options: &[RefusedOption], choice: &Choice, is_send: bool) -> Done {
        let look = &self.taking.look;
        let more = [
            (look.archive, "--archive", "it has no owners by name, extended attributes and hard links"),
            (is_send && look.delete, "--delete", "uploads delete nothing"),
            (is_send && (look.append || look.follow), "--append", "uploads send changed files whole"),
            (look.fuzzy, "--fuzzy", "changed files are sent whole"),
            (look.compresses, "-z", "only ssh can compress: --ssh 'ssh -C'"),
            (matches!(look.compress, Compress::Level(_)), "--compress", "only ssh can compress: --ssh 'ssh -C'"),
            (is_send && look.backup()?.is_some(), "--backup", "uploads keep no old versions"),
            (!is_send && choice.filter.obeys_gitignore, "--gitignore", "downloads do not read .gitignore files"),
            (!is_send && choice.filter.stays_on_file_system, "--one-file-system", "it does not show file systems"),
            (!is_send && self.verifies, "--verify", "only uploads are read back"),
        ];
        match options.iter().chain(&more).find(|(is_set, ..)| *is_set) {
            Some((_, option, why)) => {
                let message = format!("cp: {option} does not work with --carrier sftp: {why}");
                Err(CommandFailure::usage(message, &format!("omit {option}")))
            }
            None => Ok(()),
        }
    }

    /// Copies from the server.
    pub(super) fn fetch(&self, screen: &Screen, options: GetOptions, host: &str, from: &[OsString]) -> Done {
        let ssh = SftpSsh::new(self.ssh, host);
        let tree =
            SftpTree::open(ssh.server()?, from).map_err(|error| CommandFailure::Run(format!("{host}: {error}")))?;
        // The server is not trusted: its list contains the names.
        let names = TopNames::of(from.iter().map(|path| home_relative(path.into())));
        // To find what changed, all of a file would be read.
        let options = GetOptions { top_names: Some(names), whole_file: true, compress: Compress::Never, ..options };
        let mut place = OsString::from(format!("sftp://{host}"));
        for path in from {
            place.extend([std::ffi::OsStr::new("/"), path]);
        }
        let place = PathBuf::from(place);
        let id = ShareId::of([&place], false);
        let share =
            Share::of_sftp(tree, place, ShareOptions { session: self.link.session(), ..ShareOptions::default() })
                .map_err(|error| CommandFailure::Run(error.to_string()))?;
        // Both ends of the session are this process; what is private goes through ssh.
        let link = LinkArgs { plain: true, ..self.link.clone() };
        let giver = link.bind_to("cp", &Listen::At(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))))?;
        let keyring = Keyring::in_memory(identity(|note| screen.note(note))?, id);
        let addresses = vec![giver.endpoint.local_addr()];
        let ticket =
            keyring.issue(Validity { lasts_s: None, is_once: false }, addresses).map_err(|error| of_state(&error))?;
        let share = Arc::new(share);
        giver.endpoint.listen_with(Arc::new(keyring), share.judges(), share.accept());
        let done = get::fetch(screen, &link, None, &ticket, &options, self.taking.look.strict);
        giver.endpoint.close();
        done
    }

    /// Copies to the server.
    pub(super) fn send(&self, screen: &Screen, choice: Choice, from: &[PathBuf], host: &str, path: OsString) -> Done {
        let look = &self.taking.look;
        let to = SftpDestination {
            path,
            // The inside of a directory is several things.
            is_single: from.len() == 1 && choice.names.is_none(),
            syncs: self.taking.durable != DurableArg::None,
            verifies: self.verifies,
        };
        let options = put::options(look, choice, self.taking.limit, self.taking.patience)?;
        let options = PutOptions { lists_files: screen.output.is_verbose(), ..options };
        let ssh = SftpSsh::new(self.ssh, host);
        note_left_out(screen, from);
        let transfer = put_sftp(ssh.server()?, from, to, &options);
        let transfer = transfer.map_err(|error| CommandFailure::Usage(error.to_string()))?;
        let dry = look.dry_run.then_some("send");
        let course = KnownBefore {
            capacity: None,
            places: host.into(),
            carriers: self.link.carrier,
            detour: None,
            dry,
            strict: look.strict,
        };
        follow(screen, &transfer, &course)
    }
}

/// The ssh that carries SFTP: one at a time.
#[derive(Clone)]
struct SftpSsh {
    ssh: String,
    host: String,
    child: Arc<Mutex<Option<Child>>>,
}

impl SftpSsh {
    fn new(ssh: &str, host: &str) -> Self {
        Self { ssh: ssh.into(), host: host.into(), child: Arc::default() }
    }

    /// The server, which is reached.
    fn server(&self) -> Result<SftpServer, CommandFailure> {
        let (ssh, host) = (self.clone(), &self.host);
        SftpServer::open(Box::new(move || ssh.connect())).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => {
                CommandFailure::usage(error.to_string(), "use --ssh COMMAND to name another command")
            }
            _ => CommandFailure::Lost(format!("{host}: {error}")),
        })
    }

    fn connect(&self) -> io::Result<Sftp> {
        let mut words = self.ssh.split_whitespace();
        let program = words.next().unwrap_or_default();
        let (ours, theirs) = UnixStream::pair()?;
        let theirs = OwnedFd::from(theirs);
        let begun = Command::new(program)
            .args(words)
            .args(["-s", &self.host, "sftp"])
            .stdin(Stdio::from(theirs.try_clone()?))
            .stdout(Stdio::from(theirs))
            .spawn();
        let child = begun.map_err(|error| {
            let message = format!("{}: {}", program.escape_debug(), plain(&error));
            io::Error::new(io::ErrorKind::InvalidInput, message)
        })?;
        self.end(Some(child));
        Sftp::over(ours).map_err(|error| {
            let status = self.take().and_then(|mut child| {
                let _ = child.kill();
                child.wait().ok()
            });
            match status.and_then(|status| status.code()) {
                Some(SSH_FAILED) => io::Error::new(error.kind(), "ssh cannot connect"),
                _ if error.kind() == io::ErrorKind::Unsupported => error,
                _ => io::Error::new(
                    error.kind(),
                    format!("no SFTP server answers: {error}\nhint: try `{} -s {} sftp`", self.ssh, self.host),
                ),
            }
        })
    }

    fn take(&self) -> Option<Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends the ssh of now, and keeps the next one.
    fn end(&self, next: Option<Child>) {
        let before = std::mem::replace(&mut *self.child.lock().unwrap_or_else(PoisonError::into_inner), next);
        if let Some(mut child) = before {
            // It has ended or is not needed: no other process can be hit.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for SftpSsh {
    fn drop(&mut self) {
        // That of the server, and this one.
        if Arc::strong_count(&self.child) <= 2 {
            self.end(None);
        }
    }
}
