//! Loss recovery, as a model sees it.

/// The time from a loss until a packet arrives that was sent after its detection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recovery {
    /// Bytes that have been delivered when such a packet is sent.
    until: Option<u64>,
}

impl Recovery {
    pub(crate) fn is_open(self) -> bool {
        self.until.is_some()
    }

    /// A loss is detected, or a timer expires.
    pub(super) fn begin(&mut self, delivered: u64) {
        self.until = Some(delivered);
    }

    /// A packet arrived that was sent when `prior_delivered` bytes had been delivered; returns whether that ends it.
    pub(super) fn on_arrival(&mut self, prior_delivered: u64) -> bool {
        let is_over = self.until.is_some_and(|until| prior_delivered >= until);
        if is_over {
            self.until = None;
        }
        is_over
    }
}
