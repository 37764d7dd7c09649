//! The keys of a session.

use fairwave_proto::codec::{PacketKind, Unseal};
use zeroize::{Zeroize, Zeroizing};

use super::expand::expand;
use super::seal::{Opener, Sealer};
use super::suite::Suite;

/// The keys that seal the packets of a session while its driver has not taken them: before it opens, and when it
/// closes.
///
/// A session that is open has four chains of keys, one for each direction and kind of packet, which ratchet
/// independently. The secrets that they started from are erased by then: an attacker who reads this host's memory later
/// learns nothing of earlier epochs.
pub(crate) enum SessionKeys {
    /// Nothing has been sealed.
    Fresh(Secrets),
    /// Only the close of the session is still to be sent: control packets, as far as their chains have come.
    Closing(Pair),
}

/// The secrets that both ends of a session derive from their handshake.
pub(crate) struct Secrets {
    suite: Suite,
    is_initiator: bool,
    is_plain: bool,
    from_initiator: Zeroizing<[u8; 32]>,
    from_responder: Zeroizing<[u8; 32]>,
}

/// The chains of one kind of packet.
pub(crate) struct Pair {
    /// Seals what this end sends.
    pub(crate) sealer: Sealer,
    /// Opens what the other end sends.
    pub(crate) opener: Opener,
}

/// The keys of an open session.
pub(crate) struct OpenKeys {
    pub(crate) data: Pair,
    pub(crate) control: Pair,
    /// A secret of this session for the application, from which no key follows.
    pub(crate) export: Zeroizing<[u8; 32]>,
}

impl SessionKeys {
    /// Of what a handshake ends with, of which nothing is left behind.
    pub(crate) fn new(suite: Suite, is_initiator: bool, is_plain: bool, mut split: ([u8; 32], [u8; 32])) -> Self {
        let (from_initiator, from_responder) = (Zeroizing::new(split.0), Zeroizing::new(split.1));
        split.zeroize();
        Self::Fresh(Secrets { suite, is_initiator, is_plain, from_initiator, from_responder })
    }

    /// For a session that opens. `None` for one that is closing already.
    pub(crate) fn open(self) -> Option<OpenKeys> {
        match self {
            Self::Fresh(secrets) => Some(secrets.open()),
            Self::Closing(_) => None,
        }
    }

    /// Seals the last control packets. A session that was given up before it opened never seals others.
    pub(crate) fn closing(&mut self) -> &mut Sealer {
        if let Self::Fresh(secrets) = self {
            *self = Self::Closing(secrets.pair(PacketKind::Control));
        }
        match self {
            Self::Closing(control) => &mut control.sealer,
            Self::Fresh(_) => unreachable!("it became the other above"),
        }
    }
}

/// Opens control packets of a session that is half open or closing, and no epoch goes on.
impl Unseal for &SessionKeys {
    fn open<'a>(&mut self, number: u64, header: &[u8], body: &'a mut [u8]) -> Option<&'a mut [u8]> {
        match self {
            SessionKeys::Fresh(secrets) => secrets.opener(PacketKind::Control).look(number, header, body),
            SessionKeys::Closing(control) => control.opener.look(number, header, body),
        }
    }
}

impl Secrets {
    fn open(&self) -> OpenKeys {
        let both = Zeroizing::new([*self.from_initiator, *self.from_responder].concat());
        let export = expand(&both, b"fairwave export");
        OpenKeys { data: self.pair(PacketKind::Data), control: self.pair(PacketKind::Control), export }
    }

    fn pair(&self, kind: PacketKind) -> Pair {
        Pair { sealer: self.sealer(kind), opener: self.opener(kind) }
    }

    fn sealer(&self, kind: PacketKind) -> Sealer {
        let secret = self.chain(self.is_initiator, kind);
        if self.is_clear(kind) { Sealer::plain(&secret) } else { Sealer::new(self.suite, secret) }
    }

    fn opener(&self, kind: PacketKind) -> Opener {
        let secret = self.chain(!self.is_initiator, kind);
        if self.is_clear(kind) { Opener::plain(&secret) } else { Opener::new(self.suite, secret) }
    }

    fn is_clear(&self, kind: PacketKind) -> bool {
        self.is_plain && kind == PacketKind::Data
    }

    fn chain(&self, from_initiator: bool, kind: PacketKind) -> Zeroizing<[u8; 32]> {
        let secret = if from_initiator { &self.from_initiator } else { &self.from_responder };
        let label: &[u8] = match kind {
            PacketKind::Data => b"fairwave data",
            PacketKind::Control => b"fairwave control",
        };
        expand(secret.as_slice(), label)
    }
}
