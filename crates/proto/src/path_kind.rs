//! What a session may assume of its path.

/// Who else uses the path between a session's ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PathKind {
    /// Anybody: the session takes no more than its part of what the path delivers, and starts slowly.
    #[default]
    Shared,
    /// Only what end nodes allocate, as in a lambda network. Both ends must say so.
    Dedicated,
}
