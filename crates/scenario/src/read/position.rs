//! Where something stands in a scenario file.

/// Position of a value in its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Position {
    /// A line of the file, from one.
    Line(u32),
    /// The file as a whole.
    File,
    /// An option of the call, such as "--set".
    Call(&'static str),
}

/// Offsets of the starts of lines.
pub(super) struct LineStarts(Vec<usize>);

impl LineStarts {
    pub(super) fn new(text: &str) -> Self {
        Self(
            std::iter::once(0)
                .chain(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1))
                .collect(),
        )
    }

    /// The line of a byte offset, from one.
    pub(super) fn line(&self, at: usize) -> u32 {
        u32::try_from(self.0.partition_point(|start| *start <= at)).unwrap_or(u32::MAX)
    }

    pub(super) fn text<'a>(&self, text: &'a str, at: usize) -> &'a str {
        let line = self.line(at) as usize;
        let end = self.0.get(line).copied().unwrap_or(text.len());
        text.get(self.0[line - 1]..end).unwrap_or("").trim_end()
    }
}
