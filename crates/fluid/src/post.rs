//! The fast engine's state of each resource: its queue, and the rule's inputs for the rows.

use std::ops::Range;

use fairwave_scenario::Demand;
use fairwave_schemes::{RateAllocator, Row as TableRow};
use fairwave_units::Rate;

use crate::grain::Grains;
use crate::plan::{FluidPlan, NONE};
use crate::queue::Queue;

/// Maximum rows of a resource that shares its rule with others.
const MAX_SHARED_ROWS: usize = 24;

/// A row as input of its rule, except for the measured rate, in one cache line.
#[repr(align(64))]
pub(crate) struct KnownRow(pub(crate) TableRow);

/// A resource, with everything that its ticks need in one place.
pub(crate) struct Post {
    pub(crate) queue: Queue,
    /// Time up to which its rows were read, plus one; zero before the first time.
    pub(crate) seen: u64,
    /// Capacity that its rule may allocate.
    pub(crate) capacity: Rate,
    pub(crate) grains: Grains,
    first_row: u32,
    end_row: u32,
    /// Entry of its first row in `table`, and the distance to the next row's: zero if all rows are equal.
    first_entry: u32,
    stride: u32,
    /// Entry in `allocators`, if it runs a rule.
    pub(crate) rule: u32,
    pub(crate) is_source: bool,
    pub(crate) is_sink: bool,
}

impl Post {
    pub(crate) fn rows(&self) -> Range<usize> {
        self.first_row as usize..self.end_row as usize
    }

    /// The entry of a row in `table`.
    #[inline]
    pub(crate) fn entry(&self, row: usize) -> usize {
        self.first_entry as usize + self.stride as usize * (row - self.first_row as usize)
    }
}

/// The resources, the rules' inputs for their rows, and the rules.
pub(crate) fn posts(plan: &FluidPlan<'_>) -> (Vec<Post>, Vec<KnownRow>, Vec<Box<dyn RateAllocator>>) {
    let mut allocators: Vec<Box<dyn RateAllocator>> = Vec::new();
    let mut table = Vec::new();
    let mut shared = None;
    let posts = plan.resources.iter().enumerate().map(|(resource, here)| {
        // A large table is sorted faster by a rule that remembers its last order.
        let can_share =
            here.allocatable.is_some() && here.rows.len() <= MAX_SHARED_ROWS && plan.runs_own_scheme(resource);
        let rule = shared.filter(|_| can_share).or_else(|| {
            let allocator = plan.allocator(resource)?;
            let rule = allocators.len() as u32;
            if can_share && allocator.is_stateless() {
                shared = Some(rule);
            }
            allocators.push(allocator);
            Some(rule)
        });
        let (first_entry, stride) = enter(plan, resource, &mut table);
        Post {
            queue: Queue::default(),
            seen: 0,
            capacity: here.allocatable.unwrap_or_default(),
            grains: here.grains,
            first_row: here.rows.start as u32,
            end_row: here.rows.end as u32,
            first_entry,
            stride,
            rule: rule.unwrap_or(NONE),
            is_source: here.place.is_source(),
            is_sink: here.place.is_sink(),
        }
    });
    let posts = posts.collect();
    (posts, table, allocators)
}

/// Adds the rows of a resource to the table; returns the first entry and the distance between rows.
fn enter(plan: &FluidPlan<'_>, resource: usize, table: &mut Vec<KnownRow>) -> (u32, u32) {
    let rows = plan.resources[resource].rows.clone();
    let first = table.len();
    let wants_all = |row: usize| {
        let session = &plan.scenario.sessions[plan.rows[row].session as usize];
        matches!(session.demand, Demand::Unlimited)
    };
    let known = rows.clone().map(|row| plan.row(row));
    table.extend(known.clone().take(1).map(KnownRow));
    if rows.clone().all(wants_all) && known.clone().all(|row| row == table[first].0) {
        return (first as u32, 0);
    }
    table.extend(known.skip(1).map(KnownRow));
    (first as u32, 1)
}
