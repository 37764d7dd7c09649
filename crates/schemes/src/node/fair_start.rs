//! The rate at which a session may start.

use fairwave_units::Rate;

/// The expected rate that a session starts with at both ends: the smallest of its shares at its ends, min(C_s / n_s,
/// C_r / n_r), where n counts the newcomer (Wu 2007, VIII.1.A suggests it).
///
/// It is agreed in the handshake and replaces a start at rate zero: the driver applies it when a session joins. An end
/// is (capacity, total weight of its sessions including the newcomer); the session gets `weight` of that. Ends without
/// a limit are left out; `None` if no end has a limit.
///
/// ```
/// use fairwave_schemes::node::fair_start;
/// use fairwave_units::Rate;
/// // The fourth session of a 1 Gb/s source meets a 500 Mb/s sink with one session: min(1000 / 4, 500 / 2).
/// let rate = fair_start(1.0, [(Rate::gbps(1.0), 4.0), (Rate::mbps(500.0), 2.0)]);
/// assert_eq!(rate, Some(Rate::mbps(250.0)));
/// ```
pub fn fair_start(weight: f64, ends: impl IntoIterator<Item = (Rate, f64)>) -> Option<Rate> {
    ends.into_iter().map(|(capacity, weights)| capacity * (weight / weights)).reduce(Rate::min)
}
