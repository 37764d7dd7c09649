//! A file on its way to the server.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::fstat;

use super::shared::{FoundFile, Shared, temporary};
use crate::format::results::FileAction;
use crate::give::gone::Gone;
use crate::give::scan::identity;
use crate::sftp::client::{CHUNK_BYTES, FarKind, FarStat, MAX_IN_FLIGHT, WINDOW_BYTES};

/// Bytes that are read at once from this machine's disk.
const READ_BYTES: u64 = 1 << 20;

/// A file that is sent.
pub(super) struct FarFile {
    shared: Arc<Shared>,
    found: FoundFile,
}

/// Why a file is not at the server.
enum NotPut {
    Here(Gone),
    There(String),
}

impl From<Gone> for NotPut {
    fn from(gone: Gone) -> Self {
        Self::Here(gone)
    }
}

impl From<String> for NotPut {
    fn from(reason: String) -> Self {
        Self::There(reason)
    }
}

impl From<io::Error> for NotPut {
    fn from(error: io::Error) -> Self {
        Self::There(error.to_string())
    }
}

impl FarFile {
    /// Puts it at its place, unless it is there.
    pub(super) async fn put(shared: Arc<Shared>, found: FoundFile) {
        let file = Self { shared, found };
        let (shared, path) = (&file.shared, &file.found.path);
        match file.put_or_fail().await {
            Ok(()) => {}
            Err(NotPut::Here(gone @ Gone::Vanished)) => shared.vanish(path, gone.why()),
            Err(NotPut::Here(gone)) => shared.fail(path, gone.why()),
            Err(NotPut::There(reason)) => shared.fail(path, reason),
        }
    }

    async fn put_or_fail(&self) -> Result<(), NotPut> {
        let Self { shared, found } = self;
        let FoundFile { path, bytes, meta, .. } = found;
        let place = shared.target(path)?;
        let Some(old) = shared.old(path, &place).await? else { return Ok(()) };
        if shared.keeps(old.as_ref(), Some(meta.mtime_s)) {
            shared.note(path, FileAction::Skip, *bytes);
            return Ok(());
        }
        if let Some(old) = old.filter(|old| self.seems_complete(old))
            && (!shared.options.check || self.is_same(&place, old.bytes).await?)
        {
            shared.note(path, FileAction::Skip, *bytes);
            shared.leg.tally().resume(*bytes);
            self.count();
            return Ok(());
        }
        shared.note(path, if old.is_some() { FileAction::Update } else { FileAction::New }, *bytes);
        if shared.options.dry_run {
            shared.complete(*bytes);
            return Ok(());
        }
        let temporary = temporary(&place, &[path, b"\0".as_slice(), &found.identity.0].concat());
        let sent = self.send(&temporary).await;
        if sent.is_err() && !shared.is_over() {
            // The rest of a file that failed serves nothing.
            let _ = shared.sftp.remove(&temporary).await;
        }
        sent?;
        shared.rename(path, &temporary, &place, old.is_some()).await?;
        self.count();
        Ok(())
    }

    fn count(&self) {
        self.shared.leg.tally().place(1);
        self.shared.complete(self.found.bytes);
    }

    /// Whether the file at its place has its size and its time, to the second.
    fn seems_complete(&self, old: &FarStat) -> bool {
        let window = u64::from(self.shared.options.modify_window_s);
        old.kind == FarKind::File
            && old.bytes == self.found.bytes
            && old.mtime_s.abs_diff(self.found.meta.mtime_s) <= window
    }

    /// Writes all of it under a temporary name. Parts from an earlier attempt stay at the server, except the
    /// last window: before that, every byte was acknowledged.
    async fn send(&self, temporary: &str) -> Result<(), NotPut> {
        let Self { shared, found } = self;
        let sftp = &shared.sftp;
        let here = self.open().await?;
        let there = if found.bytes > WINDOW_BYTES { sftp.lstat(temporary).await.ok() } else { None };
        let there = there.filter(|there| there.kind == FarKind::File && there.bytes <= found.bytes);
        let start = there.map_or(0, |there| there.bytes.saturating_sub(WINDOW_BYTES) / CHUNK_BYTES * CHUNK_BYTES);
        let handle = sftp.create(temporary, start > 0).await?;
        shared.leg.tally().resume(start);
        let written = self.write(&here, &handle, start).await;
        let written = match written {
            Ok(()) => self.flush(&handle).await,
            Err(error) => Err(error),
        };
        let closed = sftp.close(handle).await;
        let hash = written?;
        closed?;
        if let Some(hash) = hash
            && self.hash_there(temporary).await? != hash
        {
            return Err("what the server has differs from what was sent".to_owned().into());
        }
        if sftp.set(temporary, found.meta.mode, found.meta.mtime_s).await.is_err() {
            shared.warn(&found.path, "mode or time not set");
        }
        Ok(())
    }

    async fn write(&self, here: &Arc<OwnedFd>, handle: &str, start: u64) -> Result<(), NotPut> {
        let (shared, mut at, mut flying) = (&self.shared, start, VecDeque::new());
        while at < self.found.bytes {
            let block = self.read(here, at).await?;
            for chunk in block.chunks(CHUNK_BYTES as usize) {
                if shared.is_over() {
                    return Err("stopped".to_owned().into());
                }
                while flying.len() >= MAX_IN_FLIGHT {
                    self.land(&mut flying).await?;
                }
                shared.pace(chunk.len() as u64).await;
                let writing = shared.sftp.begin_write(handle, at, chunk.to_vec()).await;
                flying.push_back((chunk.len() as u64, writing));
                at += chunk.len() as u64;
            }
        }
        while !flying.is_empty() {
            self.land(&mut flying).await?;
        }
        // It has to be the file that was listed from the first byte to the last.
        let here = Arc::clone(here);
        let stat = blocking(move || fstat(&here).map_err(io::Error::from)).await.map_err(Gone::from)?;
        if identity(&stat) != self.found.identity {
            return Err(Gone::Changed.into());
        }
        Ok(())
    }

    /// Waits for the oldest write.
    async fn land(&self, flying: &mut VecDeque<(u64, tokio::task::JoinHandle<io::Result<()>>)>) -> Result<(), NotPut> {
        if let Some((bytes, writing)) = flying.pop_front() {
            writing.await.unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()))?;
            self.shared.leg.tally().write(bytes);
        }
        Ok(())
    }

    /// Flushes it; with a comparison to come, returns the hash of this machine's file.
    async fn flush(&self, handle: &str) -> Result<Option<blake3::Hash>, NotPut> {
        if self.shared.to.syncs {
            self.shared.sftp.sync(handle).await?;
        }
        if !self.shared.to.verifies {
            return Ok(None);
        }
        Ok(Some(self.hash_here().await?))
    }

    async fn is_same(&self, place: &str, bytes: u64) -> Result<bool, NotPut> {
        debug_assert_eq!(bytes, self.found.bytes, "of the same size");
        Ok(self.hash_there(place).await? == self.hash_here().await?)
    }

    async fn hash_here(&self) -> Result<blake3::Hash, NotPut> {
        let (here, mut hasher, mut at) = (self.open().await?, blake3::Hasher::new(), 0);
        while at < self.found.bytes {
            let block = self.read(&here, at).await?;
            hasher.update(&block);
            at += block.len() as u64;
        }
        Ok(hasher.finalize())
    }

    /// The hash of a file at the server, read back.
    async fn hash_there(&self, place: &str) -> Result<blake3::Hash, NotPut> {
        let (sftp, mut hasher) = (&self.shared.sftp, blake3::Hasher::new());
        let handle = sftp.open(place).await?;
        let read = sftp.read(&handle, 0..self.found.bytes, &mut |part| _ = hasher.update(part)).await;
        sftp.close_later(handle);
        match read {
            // Shorter than it was: it differs.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            read => read?,
        }
        Ok(hasher.finalize())
    }

    async fn open(&self) -> Result<Arc<OwnedFd>, NotPut> {
        let (roots, path) = (Arc::clone(&self.shared.roots), self.found.path.clone());
        let kept = roots.kept(&path).is_some();
        if kept {
            return Err("it has no length before it is read: SFTP cannot copy it".to_owned().into());
        }
        Ok(Arc::new(blocking(move || roots.open_file(&path)).await.map_err(Gone::from)?))
    }

    async fn read(&self, here: &Arc<OwnedFd>, at: u64) -> Result<Vec<u8>, NotPut> {
        let (here, length) = (Arc::clone(here), READ_BYTES.min(self.found.bytes - at) as usize);
        let read = blocking(move || {
            let mut block = vec![0; length];
            let mut filled = 0;
            while filled < length {
                match rustix::io::pread(&here, &mut block[filled..], at + filled as u64) {
                    Ok(0) => return Ok(None),
                    Ok(count) => filled += count,
                    Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(Some(block))
        });
        Ok(read.await.map_err(Gone::from)?.ok_or(Gone::Shrank)?)
    }
}

/// Runs what waits for this machine's disk.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()))
}
