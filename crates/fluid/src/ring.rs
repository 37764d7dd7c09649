//! Rate changes in transit: a growing ring for each direction of each session, all in one pool of memory.

/// A rate and the instant from which it applies.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Change {
    pub(crate) at: u64,
    pub(crate) bps: f64,
}

/// A queue of changes in a [`RingPool`]. Entries are counted from the first one ever; counts wrap.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ring {
    /// Offset of its cells in the pool.
    offset: u32,
    /// Number of cells (a power of two) minus one; zero without cells.
    mask: u32,
    /// Count of the oldest stored entry.
    head: u32,
    /// Count of the next entry.
    tail: u32,
}

/// Cells of one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct CacheLine([Change; LINE]);

/// Changes in a line.
const LINE: usize = 4;

/// Cells of all rings, in whole lines. Rings that grow free their old cells.
#[derive(Debug, Default)]
pub(crate) struct RingPool {
    lines: Vec<CacheLine>,
    /// Offsets of unused blocks by the binary logarithm of their size.
    unused: [Vec<u32>; 32],
}

impl Ring {
    /// Count of the oldest stored entry.
    #[inline]
    pub(crate) fn head(&self) -> u32 {
        self.head
    }

    /// Count of the next entry.
    #[inline]
    pub(crate) fn tail(&self) -> u32 {
        self.tail
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Drops the oldest entry.
    #[inline]
    pub(crate) fn pop(&mut self) {
        self.head = self.head.wrapping_add(1);
    }

    /// Drops all entries before `count`.
    #[inline]
    pub(crate) fn forget_before(&mut self, count: u32) {
        self.head = count;
    }

    /// Whether a push has to grow the ring first.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.mask == 0 || self.tail.wrapping_sub(self.head) > self.mask
    }

    #[inline]
    fn cell(&self, count: u32) -> usize {
        (self.offset + (count & self.mask)) as usize
    }
}

impl RingPool {
    /// A pool with room for `cells` cells.
    pub(crate) fn with_capacity(cells: usize) -> Self {
        Self { lines: Vec::with_capacity(cells.div_ceil(LINE)), ..Self::default() }
    }

    /// An empty ring of `cells` cells, a power of two, after the last one that was made.
    pub(crate) fn ring(&mut self, cells: u32) -> Ring {
        let mut ring = Ring::default();
        self.grow(&mut ring, cells);
        ring
    }

    /// The entry with that count.
    #[inline]
    pub(crate) fn get(&self, ring: &Ring, count: u32) -> Change {
        let cell = ring.cell(count);
        self.lines[cell / LINE].0[cell % LINE]
    }

    /// The newest entry, for overwriting; `None` if the ring is empty.
    #[inline]
    pub(crate) fn newest(&mut self, ring: &Ring) -> Option<&mut Change> {
        let newest = ring.cell(ring.tail.wrapping_sub(1));
        if ring.is_empty() { None } else { Some(&mut self.lines[newest / LINE].0[newest % LINE]) }
    }

    /// Appends an entry to a ring, which grows if necessary, to `least` cells at first.
    #[inline]
    pub(crate) fn push(&mut self, ring: &mut Ring, change: Change, least: u32) {
        if ring.is_full() {
            self.grow(ring, least);
        }
        let cell = ring.cell(ring.tail);
        self.lines[cell / LINE].0[cell % LINE] = change;
        ring.tail = ring.tail.wrapping_add(1);
    }

    #[cold]
    fn grow(&mut self, ring: &mut Ring, least: u32) {
        let cells = if ring.mask == 0 { least.next_power_of_two().max(LINE as u32) } else { 2 * (ring.mask + 1) };
        let offset = self.unused[cells.ilog2() as usize].pop().unwrap_or_else(|| {
            let offset = u32::try_from(self.lines.len() * LINE).expect("fewer than 2^32 changes are on their way");
            self.lines.resize(self.lines.len() + cells as usize / LINE, CacheLine::default());
            offset
        });
        let grown = Ring { offset, mask: cells - 1, ..*ring };
        let mut count = ring.head;
        while count != ring.tail {
            let cell = grown.cell(count);
            self.lines[cell / LINE].0[cell % LINE] = self.get(ring, count);
            count = count.wrapping_add(1);
        }
        if ring.mask > 0 {
            self.unused[(ring.mask + 1).ilog2() as usize].push(ring.offset);
        }
        *ring = grown;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(n: u32) -> Change {
        Change { at: u64::from(n), bps: f64::from(n) }
    }

    #[test]
    fn ring__keeps_order_while_it_wraps_and_grows() {
        let mut pool = RingPool::default();
        let mut rings = [Ring::default(), Ring::default()];
        for n in 0..1000 {
            for (which, ring) in rings.iter_mut().enumerate() {
                pool.push(ring, change(n), 4);
                // The first drops two of three entries, the second all except five.
                let forget = if which == 0 { n % 3 != 0 } else { ring.tail().wrapping_sub(ring.head()) > 5 };
                if forget {
                    ring.pop();
                }
            }
        }
        for ring in &rings {
            let mut count = ring.head();
            while count != ring.tail() {
                assert_eq!(pool.get(ring, count), change(count));
                count = count.wrapping_add(1);
            }
        }
        assert_eq!(rings[1].tail() - rings[1].head(), 5);
        assert_eq!(rings[1].mask, 7, "a ring without backlog does not grow");
    }

    #[test]
    fn ring__counts_wrap() {
        let mut pool = RingPool::default();
        let mut ring = Ring { head: u32::MAX - 1, tail: u32::MAX - 1, ..Ring::default() };
        for n in 0..4 {
            pool.push(&mut ring, change(n), 4);
        }
        assert_eq!(pool.get(&ring, ring.head()), change(0));
        assert_eq!(pool.get(&ring, 1), change(3));
        assert_eq!(pool.newest(&ring), Some(&mut change(3)));
    }
}
