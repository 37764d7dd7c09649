//! The keys of `daemon.toml`, each with its place in the text.

use serde::Deserialize;
use toml::Spanned;

/// All that may stand in the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// The weight of a card's other traffic.
    #[serde(rename = "yield")]
    pub(super) yields: Option<Spanned<f64>>,
    #[serde(default)]
    pub(super) user: Vec<User>,
    #[serde(default)]
    pub(super) nic: Vec<Card>,
}

/// `[[user]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct User {
    pub(super) name: Option<Spanned<String>>,
    pub(super) group: Option<Spanned<String>>,
    pub(super) weight: Option<Spanned<f64>>,
    pub(super) minimum: Option<Spanned<String>>,
    pub(super) maximum: Option<Spanned<String>>,
    pub(super) sessions: Option<Spanned<u32>>,
}

/// Subject of a `[[user]]`.
pub(super) enum Who<'a> {
    Name(&'a Spanned<String>),
    Group(&'a Spanned<String>),
}

/// `[[nic]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Card {
    pub(super) name: Spanned<String>,
    pub(super) send: Option<Spanned<String>>,
    pub(super) receive: Option<Spanned<String>>,
    pub(super) share: Option<Spanned<f64>>,
}
