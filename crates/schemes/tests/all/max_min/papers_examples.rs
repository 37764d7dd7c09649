//! The networks of the papers.

use crate::max_min::definition::violation;
use crate::max_min::instance::Instance;

/// Paper 000, Table 2, as printed: four sessions from each of eight sources to eight sinks.
const TABLE_2: [(u32, &[u32]); 8] = [
    (1, &[1, 2, 2, 7]),
    (2, &[1, 2, 3, 4]),
    (3, &[2, 3, 4, 4]),
    (4, &[3, 4, 4, 8]),
    (5, &[1, 3, 4, 5]),
    (6, &[2, 2, 3, 4]),
    (7, &[2, 5, 8, 8]),
    (8, &[1, 4, 5, 6]),
];

fn sorted_down(mut rates: Vec<f64>) -> Vec<f64> {
    rates.sort_by(|a, b| b.total_cmp(a));
    rates
}

fn assert_near(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (f, e) in found.iter().zip(expected) {
        assert!((f - e).abs() <= tolerance, "{found:?} is not {expected:?}");
    }
}

#[test]
fn max_min__table_2_as_printed() {
    let instance = Instance::lambda(500.0, &TABLE_2);
    let rates = instance.solve().rates_bps;
    assert_eq!(violation(&instance, &rates), None);
    // Exactly 3388 + 11/28 Mb/s. The paper's text prints 3.50 Gb/s, which this table cannot give.
    assert_near(&[rates.iter().sum()], &[3_388.392_857_142_857], 1e-9);
    assert_near(&sorted_down(rates)[..4], &[232.142_857, 214.285_714, 200.892_857, 156.25], 1e-6);
}

#[test]
fn max_min__table_2_with_two_entries_changed_gives_table_3() {
    let mut table = TABLE_2;
    table[1].1 = &[1, 2, 3, 7]; // 2 -> 4 becomes 2 -> 7
    table[7].1 = &[1, 4, 5, 7]; // 8 -> 6 becomes 8 -> 7
    let rates = Instance::lambda(500.0, &table).solve().rates_bps;
    assert_near(&[rates.iter().sum()], &[3498.21], 0.005);
    // Paper 000, Table 3 prints 214.2, 203.5, 174.0, 174.0.
    assert_near(&sorted_down(rates)[..4], &[214.29, 203.57, 174.11, 174.11], 0.005);
}

#[test]
fn max_min__table_ix_2() {
    let connections: [(u32, &[u32]); 5] =
        [(1, &[1, 2, 3, 4, 5]), (2, &[1, 2, 3, 4]), (3, &[1, 2, 3]), (4, &[1, 2]), (5, &[1])];
    let rates = Instance::lambda(700.0, &connections).solve().rates_bps;
    // 700/5 at source 1 and sink 1; then (700 - 140)/3 at source 2 and sink 2; 3 -> 3 has 700 - 140 - 186.67.
    let (fifth, third, rest) = (140.0, 560.0 / 3.0, 700.0 - 140.0 - 560.0 / 3.0);
    let expected = [
        [fifth; 5].as_slice(),         // 1 -> 1 2 3 4 5
        &[fifth, third, third, third], // 2 -> 1 2 3 4
        &[fifth, third, rest],         // 3 -> 1 2 3
        &[fifth, third],               // 4 -> 1 2
        &[fifth],                      // 5 -> 1
    ]
    .concat();
    assert_near(&rates, &expected, 1e-12);
    assert_near(&[rates.iter().sum()], &[2566.67], 0.005);
}

#[test]
fn max_min__demands_of_figure_vii_10() {
    // Five sources of 1 Gb/s, one sink of 1 Gb/s: 50 + 100 + 200 + 300 are met, 350 are left of 400.
    let instance = Instance {
        demands: Some(vec![50.0, 100.0, 200.0, 300.0, 400.0]),
        ..Instance::lambda(1000.0, &[(1, &[1]), (2, &[1]), (3, &[1]), (4, &[1]), (5, &[1])])
    };
    assert_eq!(instance.solve().rates_bps, [50.0, 100.0, 200.0, 300.0, 350.0]);
}

#[test]
fn max_min__five_to_one_of_figure_3() {
    // Paper 000, Fig. 3: 500 Mb/s sink, four demands of 25 Mb/s: 500 = 4 x 25 + 400.
    let inf = f64::INFINITY;
    let instance = Instance {
        demands: Some(vec![25.0, 25.0, 25.0, 25.0, inf]),
        ..Instance::lambda(500.0, &[(1, &[1]), (2, &[1]), (3, &[1]), (4, &[1]), (5, &[1])])
    };
    assert_eq!(instance.solve().rates_bps, [25.0, 25.0, 25.0, 25.0, 400.0]);
}
