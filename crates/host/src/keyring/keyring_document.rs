//! The keyring's file: JSON.

use std::collections::BTreeMap;

use fairwave_proto::codec::TicketId;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::id::{id_text, read_id};
use super::issued::{Issued, Offering};
use super::known::KnownTickets;
use crate::secret::Secret;
use crate::share_id::ShareId;
use crate::ticket::{from_base32, to_base32};

/// Version of the file's format.
pub(super) const VERSION: u32 = 1;

/// The content of the file.
#[derive(Serialize, Deserialize)]
pub(super) struct KeyringFile {
    pub(super) version: u32,
    ports: BTreeMap<String, u16>,
    /// Files of before have none.
    #[serde(default)]
    offerings: BTreeMap<String, Offering>,
    tickets: Vec<TicketRecord>,
}

#[derive(Serialize, Deserialize)]
struct TicketRecord {
    id: String,
    secret: Zeroizing<String>,
    share: String,
    issued_unix_s: u64,
    expires_unix_s: u64,
    is_once: bool,
    is_spent: bool,
    is_revoked: bool,
}

impl KeyringFile {
    pub(super) fn of(known: &KnownTickets) -> Self {
        let entry = |(id, issued): (&TicketId, &Issued)| TicketRecord {
            id: id_text(*id),
            secret: Zeroizing::new(to_base32(issued.secret.as_bytes())),
            share: issued.share.to_string(),
            issued_unix_s: issued.issued_unix_s,
            expires_unix_s: issued.expires_unix_s,
            is_once: issued.is_once,
            is_spent: issued.is_spent,
            is_revoked: issued.is_revoked,
        };
        let ports = known.ports.iter().map(|(share, port)| (share.to_string(), *port)).collect();
        let offering = |(share, offering): (&ShareId, &Offering)| (share.to_string(), offering.clone());
        let offerings = known.offerings.iter().map(offering).collect();
        Self { version: VERSION, ports, offerings, tickets: known.tickets.iter().map(entry).collect() }
    }

    pub(super) fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(serde_json::to_vec(self).expect("texts and numbers alone are written"))
    }

    pub(super) fn into_known(self) -> Option<KnownTickets> {
        let ticket = |entry: TicketRecord| {
            let secret = <[u8; 32]>::try_from(from_base32(&entry.secret)?.as_slice()).ok()?;
            let issued = Issued {
                secret: Secret::new(secret),
                share: ShareId(u64::from_str_radix(&entry.share, 16).ok()?),
                issued_unix_s: entry.issued_unix_s,
                expires_unix_s: entry.expires_unix_s,
                is_once: entry.is_once,
                is_spent: entry.is_spent,
                is_revoked: entry.is_revoked,
            };
            Some((read_id(&entry.id)?, issued))
        };
        let share = |text: String| u64::from_str_radix(&text, 16).ok().map(ShareId);
        let (ports, offerings) = (self.ports.into_iter(), self.offerings.into_iter());
        Some(KnownTickets {
            tickets: self.tickets.into_iter().map(ticket).collect::<Option<_>>()?,
            ports: ports.map(|(id, port)| Some((share(id)?, port))).collect::<Option<_>>()?,
            offerings: offerings.map(|(id, offering)| Some((share(id)?, offering))).collect::<Option<_>>()?,
            ..KnownTickets::default()
        })
    }
}
