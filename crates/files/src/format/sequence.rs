//! The elements of a segment, in order.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic
)]

use std::marker::PhantomData;

use fairwave_proto::codec::Reader;

use super::error::FormatError;

/// Something that a segment holds many of.
pub(crate) trait SegmentElement<'a>: Sized {
    /// Reads one.
    fn read(reader: &mut Reader<'a>) -> Result<Self, FormatError>;
}

/// The elements of a segment, in order; the first invalid one ends them.
#[derive(Clone, Debug)]
pub(crate) struct Sequence<'a, T> {
    reader: Reader<'a>,
    element: PhantomData<T>,
}

impl<'a, T> Sequence<'a, T> {
    /// Of what a segment holds behind its version.
    pub(crate) fn new(body: &'a [u8]) -> Self {
        Self { reader: Reader::new(body), element: PhantomData }
    }
}

impl<'a, T: SegmentElement<'a>> Iterator for Sequence<'a, T> {
    type Item = Result<T, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let element = T::read(&mut self.reader);
        if element.is_err() {
            self.reader = Reader::new(&[]);
        }
        Some(element)
    }
}
