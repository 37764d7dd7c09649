//! Sources of a session's packets.

use crate::constant::Constant;
use crate::gtp::session::GtpSession;
use crate::on_off::OnOff;
use crate::rated::Rated;
use crate::sender::WindowSender;

/// The source of a session's packets.
pub(crate) enum TrafficSource {
    /// A window-based sender, driven by acknowledgements.
    Window(Box<WindowSender>),
    /// A constant rate; its sink does not answer.
    Constant(Constant),
    /// A constant rate with on and off periods, for background traffic; its sink does not answer.
    OnOff(Box<OnOff>),
    /// A session that sets its own rate, with a protocol between its ends.
    Rated(Box<dyn Rated>),
    /// A session between two hosts of GTP.
    Gtp(Box<GtpSession>),
}

impl From<WindowSender> for TrafficSource {
    fn from(sender: WindowSender) -> Self {
        Self::Window(Box::new(sender))
    }
}

impl From<Constant> for TrafficSource {
    fn from(constant: Constant) -> Self {
        Self::Constant(constant)
    }
}

impl From<OnOff> for TrafficSource {
    fn from(source: OnOff) -> Self {
        Self::OnOff(Box::new(source))
    }
}

impl From<GtpSession> for TrafficSource {
    fn from(session: GtpSession) -> Self {
        Self::Gtp(Box::new(session))
    }
}

impl<R: Rated + 'static> From<R> for TrafficSource {
    fn from(session: R) -> Self {
        Self::Rated(Box::new(session))
    }
}

impl TrafficSource {
    /// The sender, if the source is driven by acknowledgements.
    #[inline]
    pub(crate) fn sender(&self) -> Option<&WindowSender> {
        if let Self::Window(sender) = self { Some(sender) } else { None }
    }

    /// The sender, mutable.
    #[inline]
    pub(crate) fn sender_mut(&mut self) -> Option<&mut WindowSender> {
        if let Self::Window(sender) = self { Some(sender) } else { None }
    }

    /// The source of a constant rate.
    #[inline]
    pub(crate) fn constant_mut(&mut self) -> Option<&mut Constant> {
        if let Self::Constant(constant) = self { Some(constant) } else { None }
    }

    /// The source with on and off periods.
    #[inline]
    pub(crate) fn on_off_mut(&mut self) -> Option<&mut OnOff> {
        if let Self::OnOff(source) = self { Some(source) } else { None }
    }

    /// Both ends of a session that sets its own rate.
    #[inline]
    pub(crate) fn rated_mut(&mut self) -> Option<&mut (dyn Rated + 'static)> {
        if let Self::Rated(session) = self { Some(&mut **session) } else { None }
    }

    /// The session between two hosts.
    #[inline]
    pub(crate) fn gtp(&self) -> Option<&GtpSession> {
        if let Self::Gtp(session) = self { Some(session) } else { None }
    }

    /// The session between two hosts, mutable.
    #[inline]
    pub(crate) fn gtp_mut(&mut self) -> Option<&mut GtpSession> {
        if let Self::Gtp(session) = self { Some(session) } else { None }
    }

    /// Congestion window and ssthresh, in packets; `None` for a source that has no window.
    pub(crate) fn window_packets(&self) -> Option<(f64, f64)> {
        self.sender().map(WindowSender::window_packets)
    }

    /// Whether the sink answers.
    pub(crate) fn is_answered(&self) -> bool {
        !matches!(self, Self::Constant(_) | Self::OnOff(_))
    }

    /// Whether the sink acknowledges data packets.
    #[inline]
    pub(crate) fn is_acknowledged(&self) -> bool {
        matches!(self, Self::Window(_))
    }

    /// Whether its ends exchange messages.
    #[inline]
    pub(crate) fn has_messages(&self) -> bool {
        matches!(self, Self::Rated(_) | Self::Gtp(_))
    }

    /// Whether its ends are hosts: the contents of its packets are stored as parcels, and the sizes differ, so that
    /// bytes are counted instead of packets.
    #[inline]
    pub(crate) fn is_between_hosts(&self) -> bool {
        matches!(self, Self::Gtp(_))
    }

    /// Whether its sink records the packets that it has.
    #[inline]
    pub(crate) fn is_received(&self) -> bool {
        !matches!(self, Self::OnOff(_))
    }

    pub(crate) fn size_packets(&self) -> u64 {
        match self {
            Self::Window(sender) => sender.size_packets(),
            Self::Constant(constant) => constant.size_packets(),
            Self::OnOff(_) | Self::Gtp(_) => u64::MAX,
            Self::Rated(session) => session.size_packets(),
        }
    }
}
