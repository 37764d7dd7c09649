//! Lets `fairwave status` ask this process.

use std::time::Duration;

use fairwave_files::{Share, Transfer};
use fairwave_host::{Here, Leave, ProcessStatus, StatusSample, StatusSocket, runtime_dir};

use super::link::Bound;
use crate::common::screen::Screen;

/// Span of the shown rates.
const LOOKED: Duration = Duration::from_millis(250);

/// The transfers of a share.
pub(crate) fn transfers(share: &Share) -> Vec<Transfer> {
    share.transfers().into_iter().map(|visit| visit.transfer).collect()
}

/// Opens the socket. Without one everything else works.
pub(crate) fn monitor(
    screen: &Screen,
    command: &'static str,
    bound: &Bound,
    transfers: impl Fn() -> Vec<Transfer> + Send + 'static,
) -> Option<StatusSocket> {
    open(screen, command, bound, transfers, None)
}

/// Monitors a transfer that the peer may ask to leave.
pub(crate) fn monitor_until(
    screen: &Screen,
    command: &'static str,
    bound: &Bound,
    transfers: impl Fn() -> Vec<Transfer> + Send + 'static,
    leave: Leave,
) -> Option<StatusSocket> {
    open(screen, command, bound, transfers, Some(leave))
}

fn open(
    screen: &Screen,
    command: &'static str,
    bound: &Bound,
    transfers: impl Fn() -> Vec<Transfer> + Send + 'static,
    leave: Option<Leave>,
) -> Option<StatusSocket> {
    let (endpoint, capacity) = (bound.endpoint.clone(), bound.capacity.clone());
    let status = move || {
        let take = || {
            StatusSample::take(
                endpoint.sessions(),
                &transfers().iter().filter_map(Transfer::carried).collect::<Vec<_>>(),
            )
        };
        let before = take();
        std::thread::sleep(LOOKED);
        let [send, receive] = capacity.at(&endpoint.node());
        let here = Here { capacity: send.rate.or(receive.rate) };
        let sessions = take().since(&before, here);
        ProcessStatus::of(command, Some(endpoint.local_addr()), [&send, &receive], sessions)
    };
    let open = || -> Result<StatusSocket, String> {
        let dir = runtime_dir().map_err(|error| error.to_string())?;
        StatusSocket::open(&dir, status, leave).map_err(|error| format!("{}: {error}", dir.display()))
    };
    open().map_err(|error| screen.note(&format!("`fairwave status` will not show this process: {error}"))).ok()
}
