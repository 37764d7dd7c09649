//! Totals of a run's sessions by scheme.

use std::collections::HashMap;

use fairwave_schemes::scheme::{OptionSpec, OptionValue};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::{CompletionSummary, DelayHistogram, DelaySummary, Scenario, SchemeChoice, SessionSummary};

/// Totals of the sessions that run one scheme with the same options.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct SchemeSummary {
    /// Name of the scheme.
    pub scheme: &'static str,
    /// All of its options, including defaults.
    pub options: SchemeOptions,
    /// Number of its sessions.
    pub sessions: usize,
    /// Sum of their `rate_bps`.
    pub rate_bps: f64,
    /// Sum of their `wire_rate_bps`.
    pub wire_rate_bps: f64,
    /// Sum of their `final_wire_rate_bps`.
    pub final_wire_rate_bps: f64,
    /// Sum of their `max_min_bps`.
    pub max_min_bps: f64,
    /// Sum of their `delivered_bytes`.
    pub delivered_bytes: u64,
    /// Sum of their `lost_packets`.
    pub lost_packets: u64,
    /// Sum of their `retransmitted_packets`.
    pub retransmitted_packets: u64,
    /// Completion times of its completed sessions of finite size, each from its own start. Omitted from JSON
    /// if empty.
    #[serde(flatten)]
    pub completion: Option<CompletionSummary>,
    /// Round-trip times of all of its packets. Omitted from JSON by models without packets.
    #[serde(flatten)]
    pub delays: Option<DelaySummary>,
}

/// The options of a scheme in a run: in JSON an object, with numbers and flags as such, all others as text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchemeOptions(pub Vec<(&'static str, OptionValue)>);

impl SchemeOptions {
    /// The options of a choice: the values that were set, and the scheme's defaults.
    pub fn of(choice: &SchemeChoice) -> Self {
        let options = choice.scheme.options.iter();
        let value = |option: &OptionSpec| choice.options.get(option).unwrap_or_else(|| option.default_value());
        Self(options.map(|option| (option.name, value(option))).collect())
    }
}

impl Serialize for SchemeOptions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            match value {
                OptionValue::Number(number) if number.is_finite() => map.serialize_entry(name, number)?,
                OptionValue::Flag(flag) => map.serialize_entry(name, flag)?,
                other => map.serialize_entry(name, &other.to_string())?,
            }
        }
        map.end()
    }
}

/// Totals by scheme and options, in the order of first occurrence. `delays` has an entry per session, or is empty.
pub fn by_scheme(scenario: &Scenario, sessions: &[SessionSummary], delays: &[DelayHistogram]) -> Vec<SchemeSummary> {
    let mut sums: Vec<SchemeSummary> = Vec::new();
    // Session numbers of each group.
    let mut members: Vec<Vec<usize>> = Vec::new();
    // Sessions of one table share their choice; tables with equal choices do not always.
    let mut by_choice: HashMap<*const SchemeChoice, usize> = HashMap::new();
    let mut by_text: HashMap<String, usize> = HashMap::new();
    for (number, (session, summary)) in scenario.sessions.iter().zip(sessions).enumerate() {
        let choice = scenario.scheme_of(session);
        let at = *by_choice.entry(std::ptr::from_ref(choice)).or_insert_with(|| {
            let options = SchemeOptions::of(choice);
            *by_text.entry(format!("{} {options:?}", choice.scheme.name)).or_insert_with(|| {
                sums.push(SchemeSummary::none_of(choice.scheme.name, options));
                members.push(Vec::new());
                sums.len() - 1
            })
        });
        sums[at].add(summary);
        members[at].push(number);
    }
    for (sum, members) in sums.iter_mut().zip(members) {
        let times = members.iter().filter_map(|number| sessions[*number].completion_s);
        sum.completion = CompletionSummary::of(times.collect());
        let measured = members.iter().filter_map(|number| Some((delays.get(*number)?, scenario.sessions[*number].rtt)));
        sum.delays = Some(DelaySummary::of_all(measured)).filter(|summary| summary.rtt_samples > 0);
    }
    sums
}

impl SchemeSummary {
    fn none_of(scheme: &'static str, options: SchemeOptions) -> Self {
        Self {
            scheme,
            options,
            sessions: 0,
            rate_bps: 0.0,
            wire_rate_bps: 0.0,
            final_wire_rate_bps: 0.0,
            max_min_bps: 0.0,
            delivered_bytes: 0,
            lost_packets: 0,
            retransmitted_packets: 0,
            completion: None,
            delays: None,
        }
    }

    fn add(&mut self, session: &SessionSummary) {
        self.sessions += 1;
        self.rate_bps += session.rate_bps;
        self.wire_rate_bps += session.wire_rate_bps;
        self.final_wire_rate_bps += session.final_wire_rate_bps;
        self.max_min_bps += session.max_min_bps;
        self.delivered_bytes = self.delivered_bytes.saturating_add(session.delivered_bytes);
        self.lost_packets += session.lost_packets;
        self.retransmitted_packets += session.retransmitted_packets;
    }
}
