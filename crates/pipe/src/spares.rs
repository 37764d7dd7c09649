//! Buffers that are used again.

use fairwave_host::Lock;

/// Buffers of [`SPARE_BYTES`], of all pipes of a pump. One thread fills them and another releases them: returned to the
/// system each time, their pages would have to be allocated and cleared again, which costs as much as a copy.
#[derive(Default)]
pub(crate) struct Spares {
    buffers: Lock<Vec<Vec<u8>>>,
}

/// Size of a buffer, bytes, and max bytes of one read.
pub(crate) const SPARE_BYTES: usize = 64 << 10;
/// Buffers that are kept: 6 MiB, what a connection has under way at each end, and half as much again.
const MAX_SPARES: usize = 96;

impl Spares {
    /// An empty one, with room for at least this many bytes.
    pub(crate) fn take(&self, room: usize) -> Vec<u8> {
        let spare = if room <= SPARE_BYTES { self.buffers.lock().pop() } else { None };
        spare.unwrap_or_else(|| Vec::with_capacity(room.max(SPARE_BYTES)))
    }

    /// One that nobody needs; it is let go of if it is of another size, or if there are enough.
    pub(crate) fn give(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        if buffer.capacity() == SPARE_BYTES {
            let mut buffers = self.buffers.lock();
            if buffers.len() < MAX_SPARES {
                buffers.push(buffer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spares__come_back_empty_and_are_not_too_many() {
        let spares = Spares::default();
        let mut buffer = spares.take(1);
        buffer.push(7);
        let place = buffer.as_ptr();
        spares.give(buffer);
        spares.give(Vec::with_capacity(10));
        let again = spares.take(1);
        assert!(again.is_empty() && again.as_ptr() == place);
        let many: Vec<Vec<u8>> = (0..2 * MAX_SPARES).map(|_| spares.take(1)).collect();
        for buffer in many {
            spares.give(buffer);
        }
        assert_eq!(spares.buffers.lock().len(), MAX_SPARES);
    }
}
