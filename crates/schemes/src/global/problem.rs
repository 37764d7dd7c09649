//! The input of an allocation: capacities, the sessions' paths, demands and weights.

use std::fmt;
use std::ops::RangeInclusive;

use thiserror::Error;

/// Stands in a path for "no resource": pads the rows of sessions that cross fewer resources than others. It has the
/// bits of -1.
pub const NONE: u32 = u32::MAX;

/// The largest finite capacity or demand, in bit/s; infinity, for "unlimited", is allowed too.
pub const MAX_BPS: f64 = 1e100;

/// Permitted weights of a session.
pub const WEIGHTS: RangeInclusive<f64> = 1e-100..=1e100;

/// Capacities and the sessions that share them. Borrowed: a (K, 2) array of 32-bit integers needs no copy.
///
/// A *resource* is anything with a capacity on the sessions' paths: the sending side of a source, the receiving side of
/// a sink, a link. Resources and sessions are numbered from zero.
///
/// ```
/// use fairwave_schemes::global::{Limit, Paths, Problem, max_min};
///
/// // Two sources of 600 and 500 Mb/s, one sink of 900 Mb/s; the first session wants 200 Mb/s.
/// let problem = Problem {
///     demands_bps: Some(&[200e6, f64::INFINITY]),
///     ..Problem::new(&[600e6, 500e6, 900e6], Paths::Rows { width: 2, resources: &[0, 2, 1, 2] })
/// };
/// let optimum = max_min(&problem)?;
/// assert_eq!(optimum.rates_bps, [200e6, 500e6]);
/// assert_eq!(optimum.limits(&problem), [Limit::Demand, Limit::Resource(1)]);
/// # Ok::<(), fairwave_schemes::global::MaxMinError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// Capacity of each resource in bit/s: zero to [`MAX_BPS`], or infinity if unlimited.
    pub capacities_bps: &'a [f64],
    /// The resources that each session crosses.
    pub paths: Paths<'a>,
    /// Desired rate of each session in bit/s: zero to [`MAX_BPS`], or infinity for unlimited. `None` is infinity
    /// for all.
    pub demands_bps: Option<&'a [f64]>,
    /// Weight of each session, in [`WEIGHTS`]; at a common bottleneck rates are proportional to the weights. `None` is
    /// one for all.
    pub weights: Option<&'a [f64]>,
}

/// The resources that each session crosses, in the order of its path: source, links, sink.
///
/// No session may cross a resource twice: whether it then needs the capacity once or twice is the caller's decision.
#[derive(Clone, Copy, Debug)]
pub enum Paths<'a> {
    /// Rows of an array with the same number of resources for each session, padded anywhere in the row with [`NONE`].
    Rows {
        /// Resources in a row.
        width: usize,
        /// The rows, one after another.
        resources: &'a [u32],
    },
    /// Lists of any length, one after another.
    Lists {
        /// Start of each session's list, followed by the end of the last one: one more than there are sessions,
        /// ascending from zero to the length of `resources`.
        offsets: &'a [usize],
        /// The lists. [`NONE`] is skipped.
        resources: &'a [u32],
    },
}

/// Error of a max-min allocation. Sessions and resources are named by their position, from zero.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum MaxMinError {
    /// A capacity is NaN, below zero or too large.
    #[error(
        "capacity {capacity_bps} bit/s of resource {resource} must be from 0 to {MAX_BPS:e}, or infinity if \
         unlimited"
    )]
    Capacity {
        /// The resource.
        resource: usize,
        /// Its capacity.
        capacity_bps: f64,
    },
    /// A demand is NaN, below zero or too large.
    #[error("demand {demand_bps} bit/s of session {session} must be from 0 to {MAX_BPS:e}, or infinity if unlimited")]
    Demand {
        /// The session.
        session: usize,
        /// Its demand.
        demand_bps: f64,
    },
    /// A weight is NaN, not above zero, or out of range.
    #[error("weight {weight} of session {session} must be from {:e} to {:e}", WEIGHTS.start(), WEIGHTS.end())]
    Weight {
        /// The session.
        session: usize,
        /// Its weight.
        weight: f64,
    },
    /// A path names a resource that does not exist.
    #[error(
        "session {session} crosses resource {resource}, but the problem has {resources} resources (numbered from 0; \
         {NONE} or -1 for an unused entry)"
    )]
    UnknownResource {
        /// The session.
        session: usize,
        /// The number in its path.
        resource: u32,
        /// Number of resources.
        resources: usize,
    },
    /// A path names a resource twice.
    #[error("session {session} crosses resource {resource} twice: list each resource of a path once")]
    RepeatedResource {
        /// The session.
        session: usize,
        /// The resource.
        resource: u32,
    },
    /// A session has no limit.
    #[error("session {session} is unlimited: give it a demand, or one of its resources a finite capacity")]
    Unlimited {
        /// The session.
        session: usize,
    },
    /// The number of values is not that of the sessions.
    #[error("{found} {what} for {sessions} sessions: give one for each session, or omit them")]
    Length {
        /// "demands" or "weights".
        what: PerSession,
        /// Number of values.
        found: usize,
        /// Number of sessions.
        sessions: usize,
    },
    /// The resource numbers of the paths do not fill whole rows.
    #[error("{found} resource numbers are not a multiple of the row width {width}")]
    Rows {
        /// Number of resource numbers.
        found: usize,
        /// Resources in a row.
        width: usize,
    },
    /// The offsets of the lists are not valid.
    #[error("path offsets must rise from 0 to {length}, the number of resource numbers; offset {position} does not")]
    Offsets {
        /// Position in the offsets.
        position: usize,
        /// Number of resource numbers.
        length: usize,
    },
    /// More sessions, resources or resource numbers than can be counted in 32 bits.
    #[error("{found} exceeds the maximum of {} sessions, resources and resource numbers each", NONE - 1)]
    TooMany {
        /// Their number.
        found: usize,
    },
}

/// A value that is given for each session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerSession {
    /// Desired rates.
    Demands,
    /// Weights.
    Weights,
}

impl<'a> Problem<'a> {
    /// Sessions of weight one with unlimited demands.
    pub fn new(capacities_bps: &'a [f64], paths: Paths<'a>) -> Self {
        Self { capacities_bps, paths, demands_bps: None, weights: None }
    }

    /// Number of sessions.
    pub fn sessions(&self) -> usize {
        self.paths.sessions()
    }

    /// The desired rate of a session; infinity by default.
    #[inline]
    pub(super) fn demand(&self, session: usize) -> f64 {
        self.demands_bps.map_or(f64::INFINITY, |demands| demands[session])
    }

    /// The weight of a session.
    #[inline]
    pub(super) fn weight(&self, session: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[session])
    }

    /// Checks everything except the numbers in the paths, which are checked when they are first read.
    pub(super) fn check(&self) -> Result<(), MaxMinError> {
        self.paths.check()?;
        let sessions = self.sessions();
        for found in [sessions, self.capacities_bps.len()] {
            if found >= NONE as usize {
                return Err(MaxMinError::TooMany { found });
            }
        }
        for (resource, &capacity_bps) in self.capacities_bps.iter().enumerate() {
            if !is_rate(capacity_bps) {
                return Err(MaxMinError::Capacity { resource, capacity_bps });
            }
        }
        let one_each = |what, values: &[f64]| match values.len() {
            found if found == sessions => Ok(()),
            found => Err(MaxMinError::Length { what, found, sessions }),
        };
        if let Some(demands) = self.demands_bps {
            one_each(PerSession::Demands, demands)?;
            if let Some(session) = demands.iter().position(|&demand| !is_rate(demand)) {
                return Err(MaxMinError::Demand { session, demand_bps: demands[session] });
            }
        }
        if let Some(weights) = self.weights {
            one_each(PerSession::Weights, weights)?;
            if let Some(session) = weights.iter().position(|weight| !WEIGHTS.contains(weight)) {
                return Err(MaxMinError::Weight { session, weight: weights[session] });
            }
        }
        Ok(())
    }
}

impl<'a> Paths<'a> {
    /// Number of sessions.
    pub fn sessions(&self) -> usize {
        match self {
            Self::Rows { width: 0, .. } => 0,
            Self::Rows { width, resources } => resources.len() / width,
            Self::Lists { offsets, .. } => offsets.len().saturating_sub(1),
        }
    }

    /// The resources that a session crosses, with [`NONE`] where its row is padded.
    ///
    /// # Panics
    /// If the session does not exist, or the offsets are not valid.
    #[inline]
    pub fn of(&self, session: usize) -> &'a [u32] {
        match *self {
            Self::Rows { width, resources } => &resources[session * width..(session + 1) * width],
            Self::Lists { offsets, resources } => &resources[offsets[session]..offsets[session + 1]],
        }
    }

    fn check(&self) -> Result<(), MaxMinError> {
        let (Self::Rows { resources, .. } | Self::Lists { resources, .. }) = self;
        let length = resources.len();
        if length >= NONE as usize {
            return Err(MaxMinError::TooMany { found: length });
        }
        match *self {
            Self::Rows { width, .. } if width == 0 && length == 0 => Ok(()),
            Self::Rows { width, .. } if width == 0 || length % width != 0 => {
                Err(MaxMinError::Rows { found: length, width })
            }
            Self::Rows { .. } => Ok(()),
            Self::Lists { offsets, .. } => {
                let bad = |position| Err(MaxMinError::Offsets { position, length });
                if offsets.first() != Some(&0) {
                    return bad(0);
                }
                if let Some(position) = offsets.windows(2).position(|pair| pair[0] > pair[1]) {
                    return bad(position + 1);
                }
                if offsets.last() == Some(&length) { Ok(()) } else { bad(offsets.len() - 1) }
            }
        }
    }
}

impl fmt::Display for PerSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Demands => "demands",
            Self::Weights => "weights",
        })
    }
}

fn is_rate(bps: f64) -> bool {
    (0.0..=MAX_BPS).contains(&bps) || bps == f64::INFINITY
}
