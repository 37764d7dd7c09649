//! A connection to an SFTP server: its requests, with many in flight.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use russh_sftp::client::error::Error;
use russh_sftp::client::rawsession::SftpResult;
use russh_sftp::client::{Config, RawSftpSession};
use russh_sftp::protocol::{FileAttributes, OpenFlags, Packet, StatusCode};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

/// Bytes of a read or a write. OpenSSH takes up to 255 KiB, and every server takes 32 KiB (draft-ietf-secsh-filexfer-02
/// s3).
pub(crate) const CHUNK_BYTES: u64 = 32 << 10;
/// Reads and writes in flight, as with `sftp -R`: their 4 MiB are twice the window that OpenSSH gives a channel.
pub(crate) const MAX_IN_FLIGHT: usize = 128;
/// Max bytes between the first byte of a file that is not acknowledged and the last that was sent.
pub(crate) const WINDOW_BYTES: u64 = CHUNK_BYTES * MAX_IN_FLIGHT as u64;
/// Max size of a reply, as OpenSSH's `SFTP_MAX_MSG_LENGTH`, bytes.
const MAX_PACKET_BYTES: u32 = 256 << 10;
/// Time for one reply. A window of requests is answered within it at 0.3 Mb/s.
const REPLY_WITHIN_S: u64 = 120;
/// Max memory of the entries of one directory: some hundred thousand.
const MAX_DIRECTORY_BYTES: usize = 64 << 20;
/// Memory of an entry besides its name, bytes.
const ENTRY_BYTES: usize = 128;

const POSIX_RENAME: &str = "posix-rename@openssh.com";
const FSYNC: &str = "fsync@openssh.com";

/// A connection to an SFTP server. Its requests are answered while it lives.
pub struct Sftp {
    raw: Arc<RawSftpSession>,
    handle: Handle,
    /// Bounds the reads and writes in flight.
    permits: Arc<Semaphore>,
    has_posix_rename: bool,
    has_fsync: bool,
    is_lost: Arc<AtomicBool>,
    /// Ends the thread when it is dropped.
    _end: oneshot::Sender<()>,
}

/// Attributes of a remote entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FarStat {
    pub(crate) kind: FarKind,
    pub(crate) bytes: u64,
    /// Permission bits.
    pub(crate) mode: u16,
    /// Modification time in seconds since 1970: version 3 has no fractions.
    pub(crate) mtime_s: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FarKind {
    File,
    Directory,
    Symlink,
    Other,
}

/// An entry of a remote directory. Its name is the server's: it may be anything.
pub(crate) struct FarEntry {
    pub(crate) name: String,
    /// `None` if the server sends no mode with the list.
    pub(crate) stat: Option<FarStat>,
}

impl Sftp {
    /// Opens a session over a stream to a server, as `ssh -s HOST sftp` carries it.
    pub fn over(stream: UnixStream) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let (handle, (end, ended)) = (runtime.handle().clone(), oneshot::channel::<()>());
        std::thread::Builder::new().name("fairwave-sftp".to_owned()).spawn(move || {
            // An error means that the sender was dropped: the end.
            let _ = runtime.block_on(ended);
        })?;
        stream.set_nonblocking(true)?;
        let config =
            Config { max_packet_len: MAX_PACKET_BYTES, request_timeout_secs: REPLY_WITHIN_S, ..Config::default() };
        let (raw, version) = handle.block_on(async {
            let raw = RawSftpSession::new_with_config(tokio::net::UnixStream::from_std(stream)?, config);
            let version = raw.init().await.map_err(|error| failure(&error))?;
            Ok::<_, io::Error>((raw, version))
        })?;
        if version.version != 3 {
            let message = format!("the server speaks version {} of SFTP, expected 3", version.version);
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        let has = |name: &str| version.extensions.contains_key(name);
        Ok(Self {
            has_posix_rename: has(POSIX_RENAME),
            has_fsync: has(FSYNC),
            raw: Arc::new(raw),
            handle,
            permits: Arc::new(Semaphore::new(MAX_IN_FLIGHT)),
            is_lost: Arc::default(),
            _end: end,
        })
    }

    /// Runs requests to their end, on a thread that may wait.
    pub(crate) fn wait<F: Future>(&self, requests: F) -> F::Output {
        fairwave_host::assert_may_wait();
        self.handle.block_on(requests)
    }

    /// Starts requests that are not waited for here.
    pub(crate) fn spawn<T: Send + 'static>(&self, requests: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.handle.spawn(requests)
    }

    /// Whether the connection is over: no request is answered any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    /// Whether a rename replaces an existing file in one step.
    pub(crate) fn replaces_by_rename(&self) -> bool {
        self.has_posix_rename
    }

    fn done<T>(&self, result: SftpResult<T>) -> io::Result<T> {
        result.map_err(|error| {
            if !matches!(error, Error::Status(_)) {
                self.is_lost.store(true, Ordering::Relaxed);
            }
            failure(&error)
        })
    }

    /// Attributes of an entry itself.
    pub(crate) async fn lstat(&self, path: &str) -> io::Result<FarStat> {
        let attrs = self.done(self.raw.lstat(path).await)?.attrs;
        stat(&attrs).ok_or_else(|| nonsense("the server sends no modes"))
    }

    /// Attributes of an entry, that of its target if it is a link.
    pub(crate) async fn stat(&self, path: &str) -> io::Result<FarStat> {
        let attrs = self.done(self.raw.stat(path).await)?.attrs;
        stat(&attrs).ok_or_else(|| nonsense("the server sends no modes"))
    }

    /// Attributes of an open file.
    pub(crate) async fn fstat(&self, handle: &str) -> io::Result<FarStat> {
        let attrs = self.done(self.raw.fstat(handle).await)?.attrs;
        stat(&attrs).ok_or_else(|| nonsense("the server sends no modes"))
    }

    /// The absolute path, without links.
    pub(crate) async fn real_path(&self, path: &str) -> io::Result<String> {
        only(self.done(self.raw.realpath(path).await)?.files)
    }

    /// The target of a link.
    pub(crate) async fn read_link(&self, path: &str) -> io::Result<String> {
        only(self.done(self.raw.readlink(path).await)?.files)
    }

    /// The entries of a directory, in any order, except itself and its parent.
    pub(crate) async fn list(&self, path: &str) -> io::Result<Vec<FarEntry>> {
        let handle = self.done(self.raw.opendir(path).await)?.handle;
        let listed = self.read_directory(&handle).await;
        self.close_later(handle);
        listed
    }

    async fn read_directory(&self, handle: &str) -> io::Result<Vec<FarEntry>> {
        let (mut entries, mut bytes) = (Vec::new(), 0);
        loop {
            let files = match self.raw.readdir(handle).await {
                Ok(name) if name.files.is_empty() => return Ok(entries),
                Ok(name) => name.files,
                Err(Error::Status(status)) if status.status_code == StatusCode::Eof => return Ok(entries),
                Err(error) => return self.done(Err(error)),
            };
            for file in files {
                if matches!(file.filename.as_str(), "." | "..") {
                    continue;
                }
                bytes += ENTRY_BYTES + file.filename.len();
                entries.push(FarEntry { stat: stat(&file.attrs), name: file.filename });
            }
            if bytes > MAX_DIRECTORY_BYTES {
                return Err(nonsense("the list of the directory has more than 64 MiB"));
            }
        }
    }

    /// Opens a file to be read.
    pub(crate) async fn open(&self, path: &str) -> io::Result<String> {
        let opened = self.raw.open(path, OpenFlags::READ, FileAttributes::empty()).await;
        Ok(self.done(opened)?.handle)
    }

    /// Opens a file to be written, which only its owner may read before it is complete; an existing one is emptied
    /// unless it `continues`.
    pub(crate) async fn create(&self, path: &str, continues: bool) -> io::Result<String> {
        let flags =
            if continues { OpenFlags::WRITE } else { OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::TRUNCATE };
        let attrs = FileAttributes { permissions: Some(0o600), ..FileAttributes::empty() };
        Ok(self.done(self.raw.open(path, flags, attrs).await)?.handle)
    }

    /// Closes a file; its reply is not waited for.
    pub(crate) fn close_later(&self, handle: String) {
        let raw = Arc::clone(&self.raw);
        self.handle.spawn(async move { raw.close(handle).await });
    }

    /// Closes a file. A server may report a failed write only here.
    pub(crate) async fn close(&self, handle: String) -> io::Result<()> {
        self.done(self.raw.close(handle).await).map(|_| ())
    }

    /// Reads a range of an open file, with many requests in flight, and passes its bytes on in order.
    pub(crate) async fn read(
        &self,
        handle: &str,
        range: Range<u64>,
        take: &mut (dyn FnMut(&[u8]) + Send),
    ) -> io::Result<()> {
        let (mut at, mut flying) = (range.start, VecDeque::new());
        loop {
            while at < range.end && flying.len() < MAX_IN_FLIGHT {
                let length = CHUNK_BYTES.min(range.end - at);
                flying.push_back((at, length, self.begin_read(handle, at, length).await));
                at += length;
            }
            let Some((offset, length, reading)) = flying.pop_front() else { return Ok(()) };
            let read = reading.await.unwrap_or_else(|_| Err(Error::UnexpectedBehavior("cancelled".to_owned())));
            let data = self.done(read)?;
            if data.is_empty() || data.len() as u64 > length {
                return Err(nonsense("the server sent bytes that were not requested"));
            }
            take(&data);
            // A server may return less than was asked for.
            let rest = length - data.len() as u64;
            if rest > 0 {
                let from = offset + data.len() as u64;
                flying.push_front((from, rest, self.begin_read(handle, from, rest).await));
            }
        }
    }

    async fn begin_read(&self, handle: &str, offset: u64, length: u64) -> JoinHandle<SftpResult<Vec<u8>>> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let (raw, handle) = (Arc::clone(&self.raw), handle.to_owned());
        self.handle.spawn(async move {
            let _permit = permit;
            Ok(raw.read(handle, offset, length as u32).await?.data)
        })
    }

    /// Writes a part of a file: the reply is in the handle.
    pub(crate) async fn begin_write(&self, handle: &str, offset: u64, data: Vec<u8>) -> JoinHandle<io::Result<()>> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let (raw, handle, is_lost) = (Arc::clone(&self.raw), handle.to_owned(), Arc::clone(&self.is_lost));
        self.handle.spawn(async move {
            let _permit = permit;
            raw.write(handle, offset, data).await.map(|_| ()).map_err(|error| {
                is_lost.fetch_or(!matches!(error, Error::Status(_)), Ordering::Relaxed);
                failure(&error)
            })
        })
    }

    /// Flushes a file to the server's disk, if the server can.
    pub(crate) async fn sync(&self, handle: &str) -> io::Result<()> {
        if !self.has_fsync {
            return Ok(());
        }
        self.done(self.raw.fsync(handle).await).map(|_| ())
    }

    /// Sets permissions and modification time.
    pub(crate) async fn set(&self, path: &str, mode: u16, mtime_s: i64) -> io::Result<()> {
        // Version 3 counts seconds from 1970 to 2106.
        let time = u32::try_from(mtime_s).map_err(|_| nonsense("SFTP has no such time"));
        let attrs = FileAttributes {
            permissions: Some(u32::from(mode)),
            atime: time.as_ref().ok().copied(),
            mtime: time.as_ref().ok().copied(),
            ..FileAttributes::empty()
        };
        self.done(self.raw.setstat(path, attrs).await)?;
        time.map(|_| ())
    }

    /// Makes a directory that its owner may write.
    pub(crate) async fn make_directory(&self, path: &str) -> io::Result<()> {
        let attrs = FileAttributes { permissions: Some(0o777), ..FileAttributes::empty() };
        self.done(self.raw.mkdir(path, attrs).await).map(|_| ())
    }

    /// Removes a file.
    pub(crate) async fn remove(&self, path: &str) -> io::Result<()> {
        self.done(self.raw.remove(path).await).map(|_| ())
    }

    /// Makes a link.
    pub(crate) async fn link(&self, path: &str, target: &str) -> io::Result<()> {
        // OpenSSH, and servers like it, take the target first (its PROTOCOL, s4.1): the draft has the link first.
        self.done(self.raw.symlink(target, path).await).map(|_| ())
    }

    /// Moves a file to another name. An existing file is replaced in one step if the server can, else it is removed
    /// first.
    pub(crate) async fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        if !self.has_posix_rename {
            if let Err(error) = self.remove(to).await
                && error.kind() != io::ErrorKind::NotFound
            {
                return Err(error);
            }
            return self.done(self.raw.rename(from, to).await).map(|_| ());
        }
        let mut data = Vec::with_capacity(from.len() + to.len() + 8);
        for path in [from, to] {
            data.extend(u32::try_from(path.len()).unwrap_or(u32::MAX).to_be_bytes());
            data.extend(path.bytes());
        }
        match self.done(self.raw.extended(POSIX_RENAME, data).await)? {
            Packet::Status(status) if status.status_code == StatusCode::Ok => Ok(()),
            Packet::Status(status) => Err(failure(&Error::Status(status))),
            _ => Err(nonsense("the server sent an unexpected reply")),
        }
    }
}

fn stat(attrs: &FileAttributes) -> Option<FarStat> {
    /// File types of a mode, as in `stat.h`.
    const TYPES: u32 = 0o170_000;
    let mode = attrs.permissions?;
    let kind = match mode & TYPES {
        0o100_000 => FarKind::File,
        0o040_000 => FarKind::Directory,
        0o120_000 => FarKind::Symlink,
        _ => FarKind::Other,
    };
    let mtime_s = i64::from(attrs.mtime.unwrap_or(0));
    Some(FarStat { kind, bytes: attrs.size.unwrap_or(0), mode: (mode & 0o777) as u16, mtime_s })
}

fn only(files: Vec<russh_sftp::protocol::File>) -> io::Result<String> {
    files.into_iter().next().map(|file| file.filename).ok_or_else(|| nonsense("the server sent no name"))
}

fn nonsense(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// A failed request as a system's error. The server's own words are never shown.
fn failure(error: &Error) -> io::Error {
    let (kind, text) = match error {
        Error::Status(status) => match status.status_code {
            StatusCode::NoSuchFile => (io::ErrorKind::NotFound, "No such file or directory"),
            StatusCode::PermissionDenied => (io::ErrorKind::PermissionDenied, "Permission denied"),
            StatusCode::OpUnsupported => (io::ErrorKind::Unsupported, "the server does not support this"),
            StatusCode::Eof => (io::ErrorKind::UnexpectedEof, "unexpected end of the file"),
            _ => (io::ErrorKind::Other, "the server reports a failure"),
        },
        Error::Timeout => (io::ErrorKind::ConnectionAborted, "the server does not answer"),
        _ => (io::ErrorKind::ConnectionAborted, "the connection was lost"),
    };
    io::Error::new(kind, text)
}
