//! A symbolic link at the server.

use std::sync::Arc;

use super::shared::{NOT_TEXT, Shared, temporary};
use crate::format::link::check_target;
use crate::format::names::RelativePath;
use crate::format::results::FileAction;
use crate::sftp::client::{FarKind, FarStat};

/// Makes a link, unless it is there.
pub(super) async fn put_link(shared: Arc<Shared>, path: Vec<u8>, target: Vec<u8>) {
    if let Err(reason) = make(&shared, &path, &target).await {
        shared.fail(&path, reason);
    }
}

async fn make(shared: &Shared, path: &[u8], target: &[u8]) -> Result<(), String> {
    let relative = RelativePath::new(path).map_err(|error| error.to_string())?;
    if let Err(error) = check_target(&relative, target)
        && !(error.leads_out() && shared.options.keeps_links)
    {
        return Err(error.to_string());
    }
    let text = std::str::from_utf8(target).map_err(|_| NOT_TEXT)?;
    let place = shared.target(path)?;
    let Some(old) = shared.old(path, &place).await? else { return Ok(()) };
    let is_same = match old {
        Some(FarStat { kind: FarKind::Symlink, .. }) => shared.sftp.read_link(&place).await.is_ok_and(|is| is == text),
        _ => false,
    };
    if is_same || shared.keeps(old.as_ref(), None) {
        shared.note(path, FileAction::Skip, 0);
        return Ok(());
    }
    shared.note(path, if old.is_some() { FileAction::Update } else { FileAction::New }, 0);
    if shared.options.dry_run {
        return Ok(());
    }
    let temporary = temporary(&place, &[path, b"\0", target].concat());
    // One that a lost connection left is made again.
    let _ = shared.sftp.remove(&temporary).await;
    shared.sftp.link(&temporary, text).await.map_err(|error| error.to_string())?;
    shared.rename(path, &temporary, &place, old.is_some()).await
}
