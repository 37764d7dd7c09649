//! Memory needed by a scenario, before it is made.

use fairwave_schemes::scheme::Model;
use thiserror::Error;

use crate::Record;

/// Numbers of a scenario's elements, and of the samples of its run ([`crate::Document::size`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// End nodes.
    pub nodes: u64,
    /// Sessions.
    pub sessions: u64,
    /// Links, one direction each.
    pub links: u64,
    /// Samples of a run.
    pub samples: u64,
}

/// Intended use of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// Only the max-min optimum.
    Allocate,
    /// A run in a model, and the samples to record.
    Run(Model, Record),
}

/// A scenario that needs more memory than available.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what} need about {}, available {}", mebibytes(*needed_bytes), mebibytes(*limit_bytes))]
pub struct TooLarge {
    /// The elements that need most of it.
    pub what: String,
    /// Estimated total memory.
    pub needed_bytes: u64,
    /// Available memory.
    pub limit_bytes: u64,
}

impl Size {
    /// Peak memory of the work in bytes, including scenario and result. Measured in release builds with 10^6 sessions
    /// between two and 5 x 10^5 nodes: 400 bytes per session for an allocation, 1050 in the fluid model, 1200 (windows)
    /// to 2600 (GTP) in the packet model, excluding packets in flight. The round-trip times of a session take 1150
    /// bytes more, and more than that if they differ by more than two octaves.
    pub fn bytes(&self, work: WorkKind) -> u64 {
        const NUMBER: u64 = 8;
        let each = |session: u64, node: u64, link: u64| {
            let sum = u128::from(self.sessions) * u128::from(session)
                + u128::from(self.nodes) * u128::from(node)
                + u128::from(self.links) * u128::from(link);
            u64::try_from(sum).unwrap_or(u64::MAX)
        };
        let (elements, (a_session, a_link)) = match work {
            WorkKind::Allocate => (each(400, 100, 400), (0, 0)),
            WorkKind::Run(Model::Fluid, record) => {
                let rates = if record.rates { 5 * NUMBER } else { 0 };
                let queues = if record.queues { 3 * NUMBER } else { 0 };
                (each(1050, 250, 800), (rates, queues))
            }
            // The testbed stores the same data as the packet model; its ends are separate processes.
            WorkKind::Run(Model::Packet | Model::Testbed, record) => {
                let rates = if record.rates { 10 * NUMBER } else { 0 };
                let windows = if record.windows { 4 * NUMBER } else { 0 };
                let queues = if record.queues { 3 * NUMBER } else { 0 };
                // Totals at the ends of samples are always stored.
                (each(2350, 700, 700), (2 * NUMBER + rates + windows, 3 * NUMBER + queues))
            }
        };
        // A node has a queue in each direction.
        let queues = u128::from(self.links) + 2 * u128::from(self.nodes);
        let a_sample = u128::from(self.sessions) * u128::from(a_session) + queues * u128::from(a_link);
        let samples = u64::try_from(u128::from(self.samples) * a_sample).unwrap_or(u64::MAX);
        elements.saturating_add(samples)
    }

    /// Rejects work that needs more than the available memory, `side_by_side` times over.
    pub fn check(&self, work: WorkKind, side_by_side: u64, limit_bytes: u64) -> Result<(), TooLarge> {
        let needed_bytes = self.bytes(work).saturating_mul(side_by_side);
        if needed_bytes <= limit_bytes {
            return Ok(());
        }
        let without_samples = Self { samples: 0, ..*self }.bytes(work);
        let mut what = format!("{} sessions and {} nodes", self.sessions, self.nodes);
        if without_samples < self.bytes(work) / 2 {
            what = format!("{what} in {} samples", self.samples);
        }
        match work {
            WorkKind::Allocate => {}
            WorkKind::Run(model, _) => what = format!("{what} in the {} model", model.name()),
        }
        if side_by_side > 1 {
            what = format!("{what}, {side_by_side} runs side by side,");
        }
        Err(TooLarge { what, needed_bytes, limit_bytes })
    }
}

/// A size with about three digits: "9.8 GiB", "256 MiB".
fn mebibytes(bytes: u64) -> String {
    let (unit, size) = if bytes >= 1 << 30 { ("GiB", (1_u64 << 30) as f64) } else { ("MiB", (1_u64 << 20) as f64) };
    let number = format!("{:.1}", bytes as f64 / size);
    format!("{} {unit}", number.strip_suffix(".0").unwrap_or(&number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, Selection};

    fn size(text: &str) -> Size {
        let document = Document::parse("test.toml", text.as_bytes()).unwrap();
        let case = document.cases(&Selection::default()).unwrap().remove(0);
        document.size(&case).unwrap()
    }

    #[test]
    fn size__counts_elements_without_making_them() {
        let written = "
            name = 'written'
            duration = '10 s'
            router = [{ name = 'r' }]
            node = [{ name = 'a{1..5}', router = 'r' }, { name = 'b{1..5}' }]
            link = [{ from = 'b{1..5}', to = 'r', capacity = '1 Gb/s', delay = '1 ms', duplex = true }]
            session = [
                { from = 'a{1..5}', to = 'b{1..5}' },
                { from = 'a{1..5}', to = 'b{1..5}', pair = true, count = 3 },
            ]";
        assert_eq!(size(written), Size { nodes: 10, sessions: 25 + 15, links: 10, samples: 100 });
        let generated = "
            name = 'generated'
            duration = '1 s'
            generate = { kind = 'lambda', sources = 100, sinks = 50, sessions_per_source = 4, capacity = '1 Gb/s', rtt = '1 ms' }";
        assert_eq!(size(generated), Size { nodes: 150, sessions: 400, links: 0, samples: 10 });
    }

    #[test]
    fn check__names_elements_need_and_limit() {
        let size = Size { nodes: 2, sessions: 10_000_000, links: 0, samples: 600 };
        let fluid = WorkKind::Run(Model::Fluid, Record::default());
        assert_eq!(size.check(fluid, 1, 16 << 30), Ok(()));
        let error = size.check(fluid, 2, 16 << 30).unwrap_err();
        // 2 x 10^7 x 1050 bytes = 19.6 x 2^30.
        assert_eq!(
            error.to_string(),
            "10000000 sessions and 2 nodes in the fluid model, 2 runs side by side, need about 19.6 GiB, available 16 GiB"
        );
        let recorded = WorkKind::Run(Model::Fluid, Record { rates: true, ..Record::default() });
        assert!(size.check(recorded, 1, 16 << 30).unwrap_err().what.contains("in 600 samples"));
    }
}
