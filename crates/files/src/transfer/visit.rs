//! One transfer of a share.

use std::net::SocketAddr;

use fairwave_proto::codec::TicketId;

use super::ledger::Transfer;

/// One transfer of a share.
#[derive(Clone)]
pub struct Visit {
    /// Its number at this share, from 0.
    pub number: u64,
    /// Address of the visitor.
    pub from: SocketAddr,
    /// The ticket that it held.
    pub ticket: TicketId,
    /// Kind of visit.
    pub kind: VisitKind,
    /// Its transfer.
    pub transfer: Transfer,
}

impl Visit {
    /// Whether it puts files here, or would, instead of getting some.
    pub fn is_put(&self) -> bool {
        self.kind != VisitKind::Get
    }
}

/// Kinds of visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisitKind {
    /// It gets files.
    Get,
    /// It puts files here.
    Put,
    /// It finds out what it would put.
    DryPut,
}
