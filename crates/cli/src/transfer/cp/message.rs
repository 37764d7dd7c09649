//! Messages between the two ends of a copy over ssh, on the far end's stdin and stdout: each is a length (4 bytes, big
//! endian) and that many bytes of JSON.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use data_encoding::BASE64;
use fairwave_files::{ListedEntry, ListedKind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::transfer::get::DurableArg;
use crate::transfer::link::PathControlName;

/// Of these messages.
pub(crate) const VERSION: u32 = 2;
/// Some 100 000 paths.
const MOST_BYTES: u32 = 16 << 20;

/// The near end's request.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CpRequest {
    pub(crate) version: u32,
    pub(crate) what: CpTask,
    /// The far end's own capacity, bit/s.
    pub(crate) capacity_bps: Option<f64>,
    /// The ports that it may listen at.
    pub(crate) ports: Option<(u16, u16)>,
    pub(crate) is_plain: bool,
    pub(crate) is_dedicated: bool,
    pub(crate) interval_s: Option<f64>,
    pub(crate) alpha: Option<f64>,
    pub(crate) beta: Option<f64>,
    /// The rule of the far end's node. A far end that does not know of it runs gtp.
    #[serde(default)]
    pub(crate) rule: Option<String>,
    /// By what the far end sends on a shared path.
    #[serde(default)]
    pub(crate) path_control: PathControlName,
    /// Names the copy: a far end that an earlier ssh of the same copy started leaves for this one.
    #[serde(default)]
    pub(crate) run: Option<String>,
    /// Whether the far end leaves as soon as it has neither ssh nor a session, because its peer is a third machine.
    #[serde(default)]
    pub(crate) ends_with_ssh: bool,
}

/// Which way files go.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CpTask {
    /// The far end gives these paths.
    Give(Vec<RemotePath>),
    /// The far end lists these paths. One that does not know of it ends without a reply.
    List {
        /// As the call has them.
        paths: Vec<RemotePath>,
        /// Whether it lists everything below directories.
        is_recursive: bool,
    },
    /// The far end copies to itself by the call of the near end. One that does not know of it ends without a reply.
    Copy {
        /// Arguments of `cp`.
        arguments: Vec<RemotePath>,
        /// Contents of the files that they name, in the order in which they are read.
        lists: Vec<RemotePath>,
        /// Ticket of the far end that has the sources; without one it is this one.
        ticket: Option<String>,
    },
    /// It takes what comes to this place: a single thing, which may get a new name there, or several.
    Take {
        /// As the call has it.
        place: RemotePath,
        /// Whether a single thing comes.
        is_single: bool,
        /// Whether nothing is written.
        is_dry: bool,
        /// When files are safe from a power failure.
        durable: DurableArg,
        /// Whether links that lead out of what is sent are kept as they are. A far end that does not know of it does
        /// not.
        #[serde(default)]
        keeps_links: bool,
        /// Whether what the source lacks is deleted. A far end that does not know of it refuses.
        #[serde(default)]
        deletes: bool,
        /// Whether all attributes are set. A far end that does not know of it refuses.
        #[serde(default)]
        archives: bool,
    },
}

/// A path, whose bytes need not be text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct RemotePath(String);

/// The far end's reply.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CpReply {
    /// It can be reached with this.
    Ready {
        version: u32,
        ticket: String,
        /// The address at which ssh found it, as it knows it.
        ssh_address: Option<std::net::IpAddr>,
        /// Whether sessions may use its standard input and output from here on. `false` for a version without this
        /// field.
        #[serde(default)]
        carries: bool,
    },
    /// Some entries of a list; an empty message ends it.
    Entries(Vec<FarEntry>),
    /// It copies, with its standard input and output as a tunnel to the other far end, and prints on stderr. Lines for
    /// stdout are marked. A hang-up is an interrupt.
    Begun,
    /// It cannot do that.
    Refused { version: u32, message: String },
}

impl CpRequest {
    /// A request with the defaults of the other fields.
    pub(crate) fn of(what: CpTask) -> Self {
        Self {
            version: VERSION,
            what,
            capacity_bps: None,
            ports: None,
            is_plain: false,
            is_dedicated: false,
            interval_s: None,
            alpha: None,
            beta: None,
            rule: None,
            path_control: PathControlName::default(),
            run: None,
            ends_with_ssh: false,
        }
    }
}

/// An entry of a list.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FarEntry {
    /// As the near end may ask for it.
    pub(crate) path: RemotePath,
    kind: FarKind,
    mode: u16,
    modified: (i64, u32),
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FarKind {
    File(u64),
    Directory,
    Symlink(RemotePath),
    Skipped(String),
    Failed(String),
}

impl FarEntry {
    pub(crate) fn new(path: &OsStr, entry: &ListedEntry<'_>) -> Self {
        let kind = match entry.kind {
            ListedKind::File(bytes) => FarKind::File(bytes),
            ListedKind::Directory => FarKind::Directory,
            ListedKind::Symlink(target) => FarKind::Symlink(RemotePath::new(OsStr::from_bytes(target))),
            ListedKind::Skipped(reason) => FarKind::Skipped(reason.to_owned()),
            ListedKind::Failed(reason) => FarKind::Failed(reason.to_owned()),
        };
        Self { path: RemotePath::new(path), kind, mode: entry.mode, modified: entry.modified }
    }

    /// Calls `found` with the entry.
    pub(crate) fn read<T>(&self, found: impl FnOnce(&ListedEntry<'_>) -> T) -> io::Result<T> {
        let path = self.path.to_os_string()?;
        let target;
        let kind = match &self.kind {
            FarKind::File(bytes) => ListedKind::File(*bytes),
            FarKind::Directory => ListedKind::Directory,
            FarKind::Symlink(path) => {
                target = path.to_os_string()?;
                ListedKind::Symlink(target.as_bytes())
            }
            FarKind::Skipped(reason) => ListedKind::Skipped(reason),
            FarKind::Failed(reason) => ListedKind::Failed(reason),
        };
        Ok(found(&ListedEntry { path: path.as_bytes(), kind, mode: self.mode, modified: self.modified }))
    }
}

impl RemotePath {
    pub(crate) fn new(path: &OsStr) -> Self {
        Self(BASE64.encode(path.as_bytes()))
    }

    pub(crate) fn to_os_string(&self) -> io::Result<OsString> {
        let bytes = BASE64.decode(self.0.as_bytes());
        bytes.map(OsString::from_vec).map_err(|_| io::Error::other("a path is not valid base64"))
    }
}

/// Sends a message.
pub(crate) fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= MOST_BYTES);
    let length = length.ok_or_else(|| io::Error::other("too many paths for one call: the limit is 16 MiB"))?;
    to.write_all(&length.to_be_bytes())?;
    to.write_all(&bytes)?;
    to.flush()
}

/// Receives a message.
pub(crate) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > MOST_BYTES {
        // Output of a login script is not a message.
        return Err(io::Error::other("the reply is not a Fairwave message"));
    }
    let mut bytes = Vec::new();
    from.take(length.into()).read_to_end(&mut bytes)?;
    if bytes.len() < length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&bytes).map_err(|error| io::Error::other(format!("invalid message: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receive__reads_what_send_wrote() {
        let ask = CpRequest {
            version: VERSION,
            what: CpTask::Give(vec![RemotePath::new(OsStr::from_bytes(b"a\xff\n")), RemotePath::new(OsStr::new(""))]),
            capacity_bps: Some(1e9),
            ports: Some((5000, 5010)),
            is_plain: false,
            is_dedicated: true,
            interval_s: None,
            alpha: Some(0.25),
            beta: None,
            rule: Some("abr-hou".to_owned()),
            path_control: PathControlName::Cubic,
            run: Some("7".to_owned()),
            ends_with_ssh: true,
        };
        let mut bytes = Vec::new();
        send(&mut bytes, &ask).unwrap();
        let read: CpRequest = receive(&mut bytes.as_slice()).unwrap();
        assert_eq!(read, ask);
        let CpTask::Give(paths) = read.what else { panic!("{read:?}") };
        assert_eq!(paths[0].to_os_string().unwrap().as_bytes(), b"a\xff\n");
    }

    #[test]
    fn receive__refuses_what_is_no_message() {
        let error = |bytes: &[u8]| receive::<CpRequest>(&mut &*bytes).unwrap_err();
        assert_eq!(error(b"Welcome to host\n").to_string(), "the reply is not a Fairwave message");
        assert_eq!(error(&[0, 0, 0, 9, b'{']).kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(error(&[0]).kind(), io::ErrorKind::UnexpectedEof);
        assert!(error(&[0, 0, 0, 2, b'{', b'}']).to_string().contains("missing field"));
    }
}
