//! BIC's mode at each point, determined only from the course of the window.

use crate::picture::PlottedLine;

/// BIC's largest step in packets (Xu et al. 2004, section VI).
const S_MAX: f64 = 32.0;
/// Share of the window that a loss removes (Xu et al. 2004, section VI).
const BETA: f64 = 0.125;
/// A window that falls by at least this share has had a loss: half of a loss's share, as a sample may be later.
const FALL: f64 = BETA / 2.0;
/// The modes, as a picture names them.
const MODES: [&str; 4] = ["slow start", "additive increase", "binary search", "max probing"];

/// Splits a line of windows in packets into one line per mode, with gaps while it is in another mode.
///
/// Xu et al. 2004, section V: between the last maximum and the window, a step is half of the gap, the binary search; if
/// that is more than Smax, it is Smax, the additive increase; beyond the maximum it probes for a new one. Before its
/// first loss it is in slow start. The maximum is the window before the last loss or, with fast convergence, (1 - beta
/// / 2) of it if the loss came before the maximum was reached again.
pub(crate) fn bic_modes(line: &PlottedLine) -> Vec<PlottedLine> {
    let mut points = vec![Vec::with_capacity(line.points.len()); MODES.len()];
    let mut maximum: Option<f64> = None;
    let mut before: Option<(f64, f64)> = None;
    for &(at, window) in &line.points {
        if let Some((_, highest)) = before.filter(|(_, highest)| window < highest * (1.0 - FALL)) {
            let falls_short = maximum.is_some_and(|maximum| highest < maximum);
            maximum = Some(if falls_short { highest * (1.0 - BETA / 2.0) } else { highest });
            // A loss belongs to no mode: the line has a gap.
            for mode in &mut points {
                mode.push((at, f64::NAN));
            }
            before = None;
        }
        let mode = match maximum {
            None => 0,
            Some(maximum) if window >= maximum => 3,
            // Half of the gap is the step.
            Some(maximum) if (maximum - window) / 2.0 >= S_MAX => 1,
            Some(_) => 2,
        };
        for (number, points) in points.iter_mut().enumerate() {
            let joins = number == mode && points.last().is_some_and(|(_, last): &(f64, f64)| last.is_nan());
            if let Some(previous) = before.filter(|_| joins) {
                // From the last point of the other mode.
                points.push(previous);
            }
            points.push((at, if number == mode { window } else { f64::NAN }));
        }
        before = Some((at, window));
    }
    let named =
        |(points, mode): (Vec<(f64, f64)>, &str)| PlottedLine::measured(format!("{}: {mode}", line.label), points);
    let is_there = |line: &PlottedLine| line.points.iter().any(|(_, window)| window.is_finite());
    points.into_iter().zip(MODES).map(named).filter(is_there).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The window of BIC's rule, one sample per round trip: up by its steps, an eighth down at `loses_at`.
    fn windows(from: f64, maximum: f64, rounds: usize) -> Vec<f64> {
        let mut window = from;
        let mut all = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            all.push(window);
            let step = if window < maximum { (maximum - window) / 2.0 } else { window - maximum };
            window += step.clamp(0.01, S_MAX);
        }
        all
    }

    fn modes_of(windows: &[f64]) -> Vec<(String, Vec<f64>)> {
        let points = windows.iter().enumerate().map(|(round, window)| (round as f64, *window)).collect();
        let lines = bic_modes(&PlottedLine::measured("a".into(), points));
        let finite = |line: PlottedLine| {
            (line.label, line.points.into_iter().filter(|point| point.1.is_finite()).map(|point| point.0).collect())
        };
        lines.into_iter().map(finite).collect()
    }

    #[test]
    fn bic_modes__follow_the_rule() {
        // A maximum of 1000, then a loss: 875, 907, 939 by 32; half of the remaining 61 is less than 32.
        let all = [vec![900.0, 1000.0], windows(875.0, 1000.0, 30)].concat();
        let modes = modes_of(&all);
        assert_eq!(modes[0], ("a: slow start".to_owned(), vec![0.0, 1.0]));
        assert_eq!(modes[1], ("a: additive increase".to_owned(), vec![2.0, 3.0]));
        // Starting at the end of the additive increase.
        assert_eq!(modes[2].0, "a: binary search");
        assert_eq!(modes[2].1[..3], [3.0, 4.0, 5.0]);
        assert_eq!(modes[3].0, "a: max probing");
        let first_probe = modes[3].1[1] as usize;
        assert!(all[first_probe] >= 1000.0 && all[first_probe - 1] < 1000.0, "{modes:?}");
    }

    #[test]
    fn bic_modes__of_a_loss_below_the_maximum_have_a_lower_one() {
        // 1000 and then 950, below it: the maximum is 15/16 of 950, 890.6, and 831.25 are within two steps of it.
        let modes = modes_of(&[900.0, 1000.0, 875.0, 950.0, 831.25, 861.0, 876.0, 891.0]);
        let of = |name: &str| modes.iter().find(|mode| mode.0 == format!("a: {name}")).map(|mode| mode.1.clone());
        assert_eq!(of("binary search"), Some(vec![2.0, 3.0, 4.0, 5.0, 6.0]));
        assert_eq!(of("max probing"), Some(vec![6.0, 7.0]));
    }

    #[test]
    fn bic_modes__of_an_empty_line_is_empty() {
        assert_eq!(modes_of(&[]), Vec::new());
    }
}
