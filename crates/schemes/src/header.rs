//! The congestion header: packets carry it to the links on their path, acknowledgements carry it back.

use fairwave_units::Duration;

/// The congestion header of the explicit-feedback schemes: the source fills it in, the links on the path change it, the
/// sink returns it. Packets of other schemes have no header. [`crate::scheme::Scheme::header`] has its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CongestionHeader {
    /// XCP, iXCP and P-XCP.
    Xcp(XcpHeader),
    /// AECP.
    Aecp(AecpHeader),
    /// VCP: the two bits.
    Vcp(LoadCode),
    /// RCP.
    Rcp(RcpHeader),
    /// MaxNet.
    Maxnet {
        /// The largest price on the path; zero when the packet is sent.
        price: f64,
    },
    /// MKC and EMKC.
    Mkc(MkcHeader),
    /// `jetmax-share`.
    Jetmax(JetmaxHeader),
    /// Level of priority of a packet in a queue with `discipline = "priority"`, 0 to 7.
    Priority(u8),
    /// The two ECN bits of the IP header, open to any scheme.
    Ecn(EcnCode),
    /// In acknowledgements: the receiver's count of marked packets, as AccECN has it (RFC 9768).
    EcnEcho {
        /// Data packets that arrived with CE so far.
        marked_packets: u64,
    },
}

/// XCP's congestion header in the form of draft-falk-xcp-spec-03, with the bottleneck ids of iXCP (Zan & Yang 2007).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct XcpHeader {
    /// The source's round-trip time; `None` before it has measured one: such a packet gets no feedback.
    pub rtt: Option<Duration>,
    /// Time between the source's packets in seconds: round-trip time over window (the draft's X).
    pub interval_s: f64,
    /// Change of the source's rate, requested and then granted, in bit/s (the draft's Delta_Throughput).
    pub change_bps: f64,
    /// The link that limited the session's last packets.
    pub bottleneck: LinkId,
    /// The link that limits this packet so far.
    pub next_bottleneck: LinkId,
}

/// AECP's congestion header (Huang et al. 2010, section V): one field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AecpHeader {
    /// Smallest rate factor on the path, in bit/s; infinite when the packet is sent.
    pub rate_factor_bps: f64,
}

/// VCP's two bits: the load of the most loaded link on the path (Xia et al. 2005, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadCode {
    /// Below 80 % of the target: 01.
    Low,
    /// Below the target: 10.
    High,
    /// At the target or above: 11.
    Overload,
}

/// The ECN codepoint of a packet (RFC 3168 s5), if its scheme responds to marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EcnCode {
    /// ECT(0): both ends understand marks.
    Capable,
    /// ECT(1): the sender responds to marks as L4S requires (RFC 9331).
    CapableL4s,
    /// CE: a link on the path marked the packet.
    Experienced,
}

/// RCP's congestion header (Dukkipati et al. 2005).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RcpHeader {
    /// Smallest rate on the path, in bit/s; infinite when the packet is sent.
    pub rate_bps: f64,
    /// The source's round-trip time, if it has measured one.
    pub rtt: Option<Duration>,
}

/// The congestion header of MKC and EMKC (Zhang et al. 2004).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MkcHeader {
    /// The link with the largest loss so far.
    pub link: LinkId,
    /// The number of its sample.
    pub number: u64,
    /// Its loss; negative infinity when the packet is sent.
    pub loss: f64,
    /// The source's rate when it sent the packet, in bit/s; zero before it has one.
    pub rate_bps: f64,
}

/// The congestion header of `jetmax-share` (after Zhang et al. 2008).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JetmaxHeader {
    /// The link that the source names as its bottleneck.
    pub named: LinkId,
    /// Intended time between the source's packets in seconds.
    pub interval_s: f64,
    /// The source's rate in bit/s.
    pub rate_bps: f64,
    /// Fair rate at the named link in bit/s; infinite when the packet is sent.
    pub fair_bps: f64,
    /// The link with the least offer so far.
    pub least: LinkId,
    /// That offer in bit/s; infinite when the packet is sent.
    pub least_bps: f64,
}

/// Identifies a link in headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LinkId(u32);

impl LinkId {
    /// No link.
    pub const NONE: Self = Self(0);

    /// The link of an index.
    pub const fn of(index: u32) -> Self {
        Self(index.wrapping_add(1))
    }
}

impl CongestionHeader {
    /// Merges the header of a later packet, if one acknowledgement answers both. XCP's changes add up, as each packet
    /// got its share (draft-falk-xcp-spec-03 s3.3); a mark persists; for the other schemes the later value counts.
    pub fn absorb(&mut self, newer: Self) {
        match (self, newer) {
            (Self::Xcp(held), Self::Xcp(newer)) => {
                *held = XcpHeader { change_bps: held.change_bps + newer.change_bps, ..newer };
            }
            (Self::Ecn(held), Self::Ecn(newer)) => *held = newer.max(*held),
            (held, newer) => *held = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absorb__adds_up_xcp_grants() {
        let xcp = |change_bps| {
            let (rtt, bottleneck) = (Some(Duration::from_millis(50)), LinkId::of(0));
            CongestionHeader::Xcp(XcpHeader {
                rtt,
                interval_s: 0.001,
                change_bps,
                bottleneck,
                next_bottleneck: bottleneck,
            })
        };
        let mut held = xcp(3.0);
        held.absorb(xcp(-1.0));
        assert_eq!(held, xcp(2.0));
    }

    #[test]
    fn absorb__takes_the_newer_state_of_the_others() {
        let mut held = CongestionHeader::Vcp(LoadCode::Overload);
        held.absorb(CongestionHeader::Vcp(LoadCode::Low));
        assert_eq!(held, CongestionHeader::Vcp(LoadCode::Low));
    }

    #[test]
    fn absorb__keeps_a_mark() {
        let mut held = CongestionHeader::Ecn(EcnCode::Capable);
        for (newer, then) in [
            (EcnCode::Capable, EcnCode::Capable),
            (EcnCode::Experienced, EcnCode::Experienced),
            (EcnCode::Capable, EcnCode::Experienced),
        ] {
            held.absorb(CongestionHeader::Ecn(newer));
            assert_eq!(held, CongestionHeader::Ecn(then));
        }
    }
}
