//! Converts a run at a scale to the scale of the paper.

use fairwave_scenario::Run;

/// The run with every rate and every count of bytes divided by `scale`, so that claims about the paper's network can be
/// judged. Times are unchanged: the rules that run at a scale behave the same over time.
pub(super) fn scaled_back(mut run: Run, scale: f64) -> Run {
    let rate = |bps: &mut f64| *bps /= scale;
    let all = |column: &mut Vec<f64>| column.iter_mut().for_each(rate);
    for session in &mut run.summary.sessions {
        let rates = [
            &mut session.rate_bps,
            &mut session.wire_rate_bps,
            &mut session.final_rate_bps,
            &mut session.final_wire_rate_bps,
            &mut session.max_min_bps,
        ];
        rates.into_iter().for_each(rate);
        session.delivered_bytes = (session.delivered_bytes as f64 / scale).round() as u64;
    }
    for scheme in &mut run.summary.schemes {
        let rates =
            [&mut scheme.rate_bps, &mut scheme.wire_rate_bps, &mut scheme.final_wire_rate_bps, &mut scheme.max_min_bps];
        rates.into_iter().for_each(rate);
        scheme.delivered_bytes = (scheme.delivered_bytes as f64 / scale).round() as u64;
    }
    for link in &mut run.summary.links {
        rate(&mut link.capacity_bps);
    }
    for background in &mut run.summary.background {
        rate(&mut background.rate_bps);
        rate(&mut background.wire_rate_bps);
    }
    let metrics = &mut run.summary.metrics;
    [&mut metrics.total_bps, &mut metrics.distance_start_bps, &mut metrics.distance_final_bps]
        .into_iter()
        .for_each(rate);
    if let Some(rates) = &mut run.rates {
        let columns = [
            &mut rates.rate_bps,
            &mut rates.wire_rate_bps,
            &mut rates.source_expected_bps,
            &mut rates.sink_expected_bps,
            &mut rates.target_bps,
            &mut rates.measured_bps,
        ];
        columns.into_iter().for_each(all);
    }
    all(&mut run.distances_bps);
    all(&mut run.max_min_norms_bps);
    run.max_min.iter_mut().for_each(|step| all(&mut step.rates_bps));
    run
}
