//! Connections to the far end of a copy besides the network: the ssh that started it, and may start it again.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use fairwave_files::{Lost, Renew, RenewError};
use fairwave_host::{Carrier, Endpoint, Ticket, TunnelWatch};

/// The far end's output and input, and where that end is.
pub(crate) struct FarTunnel {
    pub(crate) reader: OwnedFd,
    pub(crate) writer: OwnedFd,
    pub(crate) peer: SocketAddr,
}

/// Starts the far end again; returns its ticket and its tunnel. Gives up when stopped.
pub(crate) type StartAgain =
    Box<dyn FnMut(&(dyn Fn() -> bool + Sync)) -> Result<(Ticket, Option<FarTunnel>), RenewError> + Send>;

/// A far end that is reached through ssh, and can be started again.
pub(crate) struct FarRoute {
    pub(crate) tunnel: FarTunnel,
    pub(crate) start_again: StartAgain,
    /// The tunnel in a note for people.
    pub(crate) detour: &'static str,
}

impl FarTunnel {
    /// Sessions of the endpoint may use it from here on.
    pub(crate) fn hand_over(self, endpoint: &Endpoint) -> TunnelWatch {
        endpoint.add_tunnel(self.reader, self.writer, self.peer)
    }
}

impl FarRoute {
    /// Sessions of the endpoint may use it from here on; returns the function that starts the far end again when it is
    /// gone.
    pub(crate) fn hand_over(self, endpoint: &Endpoint) -> Renew {
        let Self { tunnel, mut start_again, .. } = self;
        let mut watch = Some(tunnel.hand_over(endpoint));
        Box::new(move |lost| {
            if !is_needed(lost, watch.as_ref().is_none_or(TunnelWatch::is_gone)) {
                return Ok(None);
            }
            let (ticket, tunnel) = start_again(lost.is_stopped)?;
            watch = tunnel.map(|tunnel| tunnel.hand_over(lost.endpoint));
            Ok(Some(ticket))
        })
    }
}

/// Whether the far end is to be started again, as far as it is known what became of its ssh.
fn is_needed(lost: &Lost<'_>, is_gone: bool) -> bool {
    let by_ssh = lost.former.is_some_and(|session| session.facts().carrier == Carrier::Ssh);
    is_due(by_ssh, is_gone, lost.attempt)
}

/// The far end outlives its ssh. If UDP works it answers at the first attempt, and no other is started; then both ways
/// alternate, as it may have ended as well. A living ssh that carries nothing has one attempt.
fn is_due(by_ssh: bool, is_gone: bool, attempt: u32) -> bool {
    match (by_ssh, is_gone) {
        (true, true) => true,
        (true, false) => attempt > 1,
        (false, true) => attempt.is_multiple_of(2),
        (false, false) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_due__not_while_another_way_may_lead_there() {
        let due = |by_ssh, is_gone| [1, 2, 3, 4].map(|attempt| is_due(by_ssh, is_gone, attempt));
        assert_eq!(due(true, true), [true; 4]);
        assert_eq!(due(true, false), [false, true, true, true]);
        assert_eq!(due(false, true), [false, true, false, true]);
        assert_eq!(due(false, false), [false; 4]);
    }
}
