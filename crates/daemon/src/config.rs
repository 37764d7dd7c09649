//! `daemon.toml`: the administrator's settings of users and network cards.

mod names;
mod words;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use fairwave_host::MAX_MINIMA;
use fairwave_node::CardCapacity;
use fairwave_schemes::Terms;
use fairwave_units::Rate;
use thiserror::Error;
use toml::Spanned;

use crate::bind::reason;
use crate::settings::{CardSettings, Settings, UserSettings};
pub use names::{Names, SystemNames};
use words::{Card, File, User, Who};

const UNREADABLE_HINT: &str = "the default is /etc/fairwave/daemon.toml; an example is etc/daemon.toml in the source \
                               tree, or share/doc/fairwave/examples/daemon.toml of a package";

/// Why a file is not taken. Nothing of it is: what was before stays.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("{}: {}\nhint: {UNREADABLE_HINT}", path.display(), reason(error))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// A line with an invalid value.
    #[error("{}:{line}: {problem}\nhint: {hint}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The problem, with the value and the limit.
        problem: String,
        /// A valid alternative.
        hint: String,
    },
}

/// Reads a file: its users, cards and other traffic replace those of `base`; the rest of `base` stays.
pub fn read(path: &Path, base: &Settings) -> Result<Settings, ConfigError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| ConfigError::Unreadable { path: path.to_owned(), error })?;
    parse(path, &text, base, &SystemNames)
}

/// Parses the text of the file `path`, with these names of users.
///
/// ```
/// use std::path::Path;
///
/// use fairwave_daemon::Settings;
/// use fairwave_daemon::config::{Names, parse};
///
/// struct Ann;
/// impl Names for Ann {
///     fn user(&self, name: &str) -> Option<u32> {
///         (name == "ann").then_some(1000)
///     }
///     fn group(&self, _: &str) -> Option<Vec<u32>> {
///         None
///     }
/// }
/// let base = Settings::at("daemon.sock".into());
/// let text = "[[user]]\nname = \"ann\"\nweight = 2\n[[nic]]\nname = \"eth0\"\nsend = \"10 Gb/s\"\n";
/// let settings = parse(Path::new("daemon.toml"), text, &base, &Ann).unwrap();
/// assert_eq!((settings.users[0].user, settings.users[0].terms.weight), (1000, 2.0));
///
/// let error = parse(Path::new("daemon.toml"), "[[user]]\nname = \"bob\"", &base, &Ann).unwrap_err();
/// assert!(error.to_string().starts_with("daemon.toml:2: \"bob\" is not a user of this system"));
/// ```
pub fn parse(path: &Path, text: &str, base: &Settings, names: &dyn Names) -> Result<Settings, ConfigError> {
    let wrong = |mistake: Mistake| {
        let line = 1 + text.bytes().take(mistake.at.start).filter(|byte| *byte == b'\n').count();
        ConfigError::Wrong { path: path.to_owned(), line, problem: mistake.problem, hint: mistake.hint }
    };
    let file: File = toml::from_str(text).map_err(|error| {
        // Its own words, without the drawing of the line.
        let problem = error.message().lines().collect::<Vec<_>>().join(" ");
        wrong(Mistake::new(error.span().unwrap_or_default(), problem, "see etc/daemon.toml for all keys"))
    })?;
    settings(&file, base, names).map_err(wrong)
}

/// An error at one place of a text.
struct Mistake {
    at: Range<usize>,
    problem: String,
    hint: String,
}

impl Mistake {
    fn new(at: Range<usize>, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { at, problem: problem.into(), hint: hint.into() }
    }
}

fn settings(file: &File, base: &Settings, names: &dyn Names) -> Result<Settings, Mistake> {
    let mut settings = Settings { cards: Vec::new(), users: Vec::new(), ..base.clone() };
    settings.yields = file.yields.as_ref().map(weight).transpose()?.or(base.yields);
    for card in &file.nic {
        settings.cards.push(of_card(card, &settings.cards)?);
    }
    settings.users = of_users(&file.user, names)?;
    check_minima(file, &settings)?;
    Ok(settings)
}

fn of_card(card: &Card, others: &[CardSettings]) -> Result<CardSettings, Mistake> {
    let name = card.name.get_ref();
    let at = card.name.span();
    if name.is_empty() || name.len() > 15 || name.contains(['/', '\0']) || name.chars().any(char::is_whitespace) {
        return Err(Mistake::new(
            at,
            format!("\"{}\" is not a network interface name", name.escape_debug()),
            "run `ip link` for a list",
        ));
    }
    if others.iter().any(|other| other.name == *name) {
        return Err(Mistake::new(at, format!("\"{name}\" has two [[nic]] tables"), "use one table per card"));
    }
    let share = card.share.as_ref().map_or(Ok(1.0), |share| {
        let value = *share.get_ref();
        let is_share = value > 0.0 && value <= 1.0;
        let problem = format!("share {value} must be above 0 and at most 1");
        if is_share { Ok(value) } else { Err(Mistake::new(share.span(), problem, "for instance share = 0.8")) }
    })?;
    let capacity = |said: &Option<Spanned<String>>, key| said.as_ref().map(|said| rate(said, key, true)).transpose();
    Ok(CardSettings {
        name: name.clone(),
        send: capacity(&card.send, "send")?,
        receive: capacity(&card.receive, "receive")?,
        share,
    })
}

/// Users by name go before those that are in a group.
fn of_users(users: &[User], names: &dyn Names) -> Result<Vec<UserSettings>, Mistake> {
    let (mut named, mut grouped) = (BTreeMap::new(), BTreeMap::new());
    for user in users {
        let terms = terms(user)?;
        let sessions = user.sessions.as_ref().map(|sessions| *sessions.get_ref() as usize);
        let of = |user| UserSettings { user, terms, sessions };
        match who(user)? {
            Who::Name(name) => {
                let number = name.get_ref().parse().ok().or_else(|| names.user(name.get_ref()));
                let number = number.ok_or_else(|| unknown(name, "user", "run `getent passwd` for a list"))?;
                if named.insert(number, of(number)).is_some() {
                    let problem = format!("\"{}\" has two [[user]] tables", name.get_ref().escape_debug());
                    return Err(Mistake::new(name.span(), problem, "use one table per user"));
                }
            }
            Who::Group(name) => {
                let members = names.group(name.get_ref());
                let members = members.ok_or_else(|| unknown(name, "group", "run `getent group` for a list"))?;
                for member in members {
                    // Of two groups the first counts.
                    grouped.entry(member).or_insert_with(|| of(member));
                }
            }
        }
    }
    grouped.extend(named);
    Ok(grouped.into_values().collect())
}

fn who(user: &User) -> Result<Who<'_>, Mistake> {
    match (&user.name, &user.group) {
        (Some(name), None) => Ok(Who::Name(name)),
        (None, Some(group)) => Ok(Who::Group(group)),
        (Some(name), Some(_)) => {
            Err(Mistake::new(name.span(), "[[user]] has both name and group", "use a table for each"))
        }
        // A table without either has no place: its fields have.
        (None, None) => {
            Err(Mistake::new(place_of(user), "[[user]] needs name or group", "for instance name = \"ann\""))
        }
    }
}

/// The place of the first field of a table.
fn place_of(user: &User) -> Range<usize> {
    let weight = user.weight.as_ref().map(Spanned::span);
    let rates = [&user.minimum, &user.maximum].map(|rate| rate.as_ref().map(Spanned::span));
    let sessions = user.sessions.as_ref().map(Spanned::span);
    let all = [weight, sessions].into_iter().chain(rates).flatten();
    all.min_by_key(|place| place.start).unwrap_or_default()
}

fn unknown(name: &Spanned<String>, what: &str, hint: &str) -> Mistake {
    let problem = format!("\"{}\" is not a {what} of this system", name.get_ref().escape_debug());
    Mistake::new(name.span(), problem, hint)
}

fn terms(user: &User) -> Result<Terms, Mistake> {
    let minimum = user.minimum.as_ref().map_or(Ok(Rate::ZERO), |minimum| rate(minimum, "minimum", false))?;
    let maximum = user.maximum.as_ref().map(|maximum| rate(maximum, "maximum", true)).transpose()?;
    if let (Some(maximum), Some(said)) = (maximum.filter(|maximum| *maximum < minimum), &user.maximum) {
        let problem = format!("maximum {maximum} is below minimum {minimum}");
        return Err(Mistake::new(said.span(), problem, "omit one of them"));
    }
    let weight = user.weight.as_ref().map_or(Ok(1.0), weight)?;
    Ok(Terms { weight, minimum, maximum, ..Terms::default() })
}

/// A weight, which an administrator may choose freely.
fn weight(said: &Spanned<f64>) -> Result<f64, Mistake> {
    let value = *said.get_ref();
    if value > 0.0 && value <= MAX_WEIGHT {
        return Ok(value);
    }
    let problem = format!("weight {value} must be above 0 and at most {MAX_WEIGHT}");
    Err(Mistake::new(said.span(), problem, "the default is 1"))
}

const MAX_WEIGHT: f64 = 1e6;

fn rate(said: &Spanned<String>, key: &str, is_capacity: bool) -> Result<Rate, Mistake> {
    let text = said.get_ref().escape_debug();
    let rate: Rate = said.get_ref().parse().map_err(|error| {
        Mistake::new(said.span(), format!("{key} \"{text}\": {error}"), "for instance \"100 Mb/s\"")
    })?;
    if is_capacity && rate == Rate::ZERO {
        return Err(Mistake::new(said.span(), format!("{key} \"{text}\" must be above zero"), "omit it for none"));
    }
    Ok(rate)
}

/// Promised rates must be available: minima together take at most nine tenths of every configured capacity.
fn check_minima(file: &File, settings: &Settings) -> Result<(), Mistake> {
    let promised: Rate = settings.users.iter().map(|user| user.terms.minimum).sum();
    let Some(last) = file.user.iter().filter_map(|user| user.minimum.as_ref()).next_back() else { return Ok(()) };
    for (name, capacity) in capacities(settings) {
        let most = capacity * MAX_MINIMA;
        if promised > most {
            let problem = format!("minimum rates add up to {promised}, more than 90 % of {name}'s capacity, {most}");
            return Err(Mistake::new(
                last.span(),
                problem,
                "reduce the minimum rates: other users need capacity as well",
            ));
        }
    }
    Ok(())
}

/// All configured capacities.
fn capacities(settings: &Settings) -> impl Iterator<Item = (&str, Rate)> {
    let both = |name, CardCapacity { send, receive }, share: f64| {
        [send, receive].into_iter().flatten().map(move |rate| (name, rate * share))
    };
    let everything = settings.everything.into_iter().flat_map(move |capacity| both("everything", capacity, 1.0));
    everything.chain(settings.cards.iter().flat_map(move |card| {
        both(card.name.as_str(), CardCapacity { send: card.send, receive: card.receive }, card.share)
    }))
}

#[cfg(test)]
mod tests;
