//! Means over seeds, and their confidence intervals.

/// Mean of independent runs with its 95 % interval (Student's t).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// Number of runs.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Half the width of the 95 % interval; NaN for a single run.
    pub half_width: f64,
}

impl Mean {
    /// The mean of these values, without NaN and infinities. `None` if there are no others.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        let count = values.len();
        if count == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let half_width = t_95(count - 1) * (squares / (count as f64 - 1.0) / count as f64).sqrt();
        Some(Self { count, mean, half_width })
    }
}

/// The 97.5 % quantile of Student's t with `degrees` degrees of freedom: the factor of the standard error of a mean for
/// its two-sided 95 % interval. NaN for zero.
pub fn t_95(degrees: usize) -> f64 {
    // Tables of the t distribution (e.g. NIST/SEMATECH e-Handbook 1.3.6.7.2), four digits.
    const TABLE: [f64; 30] = [
        12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010, 2.1788, 2.1604,
        2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518,
        2.0484, 2.0452, 2.0423,
    ];
    match degrees {
        0 => f64::NAN,
        1..=30 => TABLE[degrees - 1],
        _ => {
            // Abramowitz & Stegun 26.7.5 (Cornish-Fisher) with the normal quantile x; the error is below 1e-5 from 31
            // on.
            let (x, n) = (1.959_963_985_f64, degrees as f64);
            let g = [
                (x.powi(3) + x) / 4.0,
                (5.0 * x.powi(5) + 16.0 * x.powi(3) + 3.0 * x) / 96.0,
                (3.0 * x.powi(7) + 19.0 * x.powi(5) + 17.0 * x.powi(3) - 15.0 * x) / 384.0,
            ];
            x + g[0] / n + g[1] / n.powi(2) + g[2] / n.powi(3)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_95__is_that_of_the_tables() {
        // NIST/SEMATECH e-Handbook 1.3.6.7.2.
        for (degrees, t) in [(1, 12.706), (29, 2.045), (31, 2.040), (40, 2.021), (60, 2.000), (100, 1.984)] {
            assert!((t_95(degrees) - t).abs() < 6e-4, "{degrees}: {}", t_95(degrees));
        }
        assert!(t_95(0).is_nan() && (t_95(1_000_000) - 1.95997).abs() < 1e-5);
    }

    #[test]
    fn mean__of_three() {
        // 1, 2, 3: s = 1, standard error 1 / sqrt 3 = 0.57735, times 4.3027.
        let mean = Mean::of([1.0, f64::NAN, 2.0, 3.0]).unwrap();
        assert_eq!((mean.count, mean.mean), (3, 2.0));
        assert!((mean.half_width - 2.4841).abs() < 1e-3);
        assert!(Mean::of([1.0]).unwrap().half_width.is_nan());
        assert_eq!(Mean::of([f64::NAN]), None);
    }
}
