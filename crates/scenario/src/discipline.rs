//! The disciplines of queues.

/// The discipline of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Discipline {
    /// First in, first out; overflow is dropped.
    DropTail,
    /// Random early detection.
    Red,
    /// First in, first out, marking (ECN) packets that arrive at a long queue: a seventh of a bandwidth-delay product,
    /// unless set.
    EcnStep,
    /// Controlled delay (RFC 8289).
    Codel,
    /// A queue per flow, each with CoDel (RFC 8290).
    FqCodel,
    /// A queue per flow, in turn, without control of delay.
    Fq,
    /// Proportional integral controller enhanced (RFC 8033).
    Pie,
    /// Two coupled queues, for L4S and for other traffic (RFC 9332).
    DualPi2,
    /// Random exponential marking (Athuraliya et al. 2001).
    Rem,
    /// Adaptive virtual queue (Kunniyur & Srikant 2001).
    Avq,
    /// Strict priority by the level that data packets carry.
    Priority,
    /// XCP's router rule.
    Xcp,
    /// iXCP's.
    Ixcp,
    /// P-XCP's.
    Pxcp,
    /// VCP's.
    Vcp,
    /// AECP's.
    Aecp,
    /// RCP's.
    Rcp,
    /// MaxNet's.
    Maxnet,
    /// MKC's.
    Mkc,
    /// EMKC's.
    Emkc,
    /// JetMax's rate law, with the offers of `jetmax-share`.
    JetmaxShare,
    /// JetMax's.
    Jetmax,
    /// The link runs the node rule of GTP (Wu 2007, X.3.B).
    Gtp,
}

impl Discipline {
    /// Whether it decides when packets leave the queue, or in which order.
    pub const fn acts_at_departure(self) -> bool {
        matches!(
            self,
            Self::Codel | Self::FqCodel | Self::Fq | Self::Pie | Self::DualPi2 | Self::Rem | Self::Avq | Self::Priority
        )
    }

    /// Its name in scenario files, which is also that of the scheme whose links run it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DropTail => "drop-tail",
            Self::Red => "red",
            Self::EcnStep => "ecn-step",
            Self::Codel => "codel",
            Self::FqCodel => "fq-codel",
            Self::Fq => "fq",
            Self::Pie => "pie",
            Self::DualPi2 => "dualpi2",
            Self::Rem => "rem",
            Self::Avq => "avq",
            Self::Priority => "priority",
            Self::Xcp => "xcp",
            Self::Ixcp => "ixcp",
            Self::Pxcp => "pxcp",
            Self::Vcp => "vcp",
            Self::Aecp => "aecp",
            Self::Rcp => "rcp",
            Self::Maxnet => "maxnet",
            Self::Mkc => "mkc",
            Self::Emkc => "emkc",
            Self::JetmaxShare => "jetmax-share",
            Self::Jetmax => "jetmax",
            Self::Gtp => "gtp",
        }
    }
}
