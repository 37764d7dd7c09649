//! A session's assumptions about its path.

/// Whether others use the path between a session's ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PathKind {
    /// Anybody: the session takes no more than its part of what the path delivers, and starts slowly.
    #[default]
    Shared,
    /// Only traffic that end nodes allocate, as in a lambda network. Both ends must declare it.
    Dedicated,
}

/// One end's declaration about the path between both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PathDeclaration {
    /// Others use it.
    #[default]
    Shared,
    /// No other sender uses it, and this end knows its capacity.
    Dedicated,
    /// No other sender uses it, but this end's capacity is unknown, so only the path limits how fast to send.
    WithoutCapacity,
}

/// Both ends' declarations: the path is dedicated if both are [`PathDeclaration::Dedicated`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PathDeclarations {
    /// This end.
    pub here: PathDeclaration,
    /// The other one.
    pub there: PathDeclaration,
}

impl PathDeclaration {
    /// The kind of path by this end's declaration only.
    pub fn kind(self) -> PathKind {
        match self {
            Self::Dedicated => PathKind::Dedicated,
            Self::Shared | Self::WithoutCapacity => PathKind::Shared,
        }
    }
}
