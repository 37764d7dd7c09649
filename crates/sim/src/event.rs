//! Events of the simulation.

/// An event of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimEvent {
    /// The first packet of a line arrives.
    Arrival(u32),
    /// A flow's retransmission timer.
    Timer(u32),
    /// A flow's delayed acknowledgement.
    AckTimer(u32),
    /// A flow's pacer releases the next packet.
    Pace(u32),
    Start(u32),
    Stop(u32),
    /// A flow's application has the next packet's worth of data.
    Offer(u32),
    /// A table of web traffic has a new flow, or stops.
    Background(u32),
    /// The wire of a link is free, and the rule of its queue decides what leaves.
    Departure(u32),
    /// The rule of a link is due.
    Control(u32),
    /// The timer of a host of GTP is due.
    Host(u32),
    /// The demand of a session of GTP changes.
    Demand(u32),
}
