//! Arrow's C data and stream interfaces. All `unsafe` of this crate is here.
//!
//! The three structs are those of <https://arrow.apache.org/docs/format/CDataInterface.html>; field by field their layout
//! is the specification's. What makes it sound:
//! - Whoever gets a struct calls its `release` once, or moves its bytes elsewhere and sets `release` of the old place to
//!   null. So what a struct points to belongs to its `private_data`, and is freed by `release` alone.
//! - Buffers are those of an [`ArrowRows`], which no one changes; each array that is handed over holds an `Arc` of it.
//! - Children are freed with their parent, whether somebody took their contents (their `release` is null then) or not.
#![allow(unsafe_code, reason = "a C interface: the other side is another library")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// A table: its columns, all of one length.
pub(crate) struct ArrowRows {
    pub(crate) columns: Vec<ArrowColumn>,
    pub(crate) length: usize,
}

/// A column in Arrow's layout.
pub(crate) struct ArrowColumn {
    name: CString,
    /// The type, in the interface's words.
    format: &'static CStr,
    length: usize,
    nulls: usize,
    buffers: Vec<ArrowBuffer>,
    /// What its numbers stand for, of a column of names.
    words: Option<Box<ArrowColumn>>,
}

/// A buffer of a column.
pub(crate) enum ArrowBuffer {
    /// No bitmap: all values are there.
    Absent,
    Bytes(Vec<u8>),
    Floats(Vec<f64>),
    Counts(Vec<i64>),
    Codes(Vec<i32>),
}

impl ArrowColumn {
    pub(crate) fn new(
        name: CString,
        format: &'static CStr,
        length: usize,
        nulls: usize,
        buffers: Vec<ArrowBuffer>,
    ) -> Self {
        Self { name, format, length, nulls, buffers, words: None }
    }

    /// The same as a column of names.
    pub(crate) fn with_words(self, words: Self) -> Self {
        Self { words: Some(Box::new(words)), ..self }
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    pub(crate) fn name(&self) -> &CStr {
        &self.name
    }
}

impl ArrowBuffer {
    fn pointer(&self) -> *const c_void {
        match self {
            Self::Absent => null(),
            Self::Bytes(values) => values.as_ptr().cast(),
            Self::Floats(values) => values.as_ptr().cast(),
            Self::Counts(values) => values.as_ptr().cast(),
            Self::Codes(values) => values.as_ptr().cast(),
        }
    }
}

/// A number of things in memory, of which there are never 2^63.
pub(crate) fn count(things: usize) -> i64 {
    i64::try_from(things).unwrap_or(i64::MAX)
}

/// A value may be missing.
const NULLABLE: i64 = 2;

/// `struct ArrowSchema`.
#[repr(C)]
pub(crate) struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray`.
#[repr(C)]
struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

/// `struct ArrowArrayStream`.
#[repr(C)]
pub(crate) struct ArrowStream {
    get_schema: Option<unsafe extern "C" fn(*mut ArrowStream, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut ArrowStream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut ArrowStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut ArrowStream)>,
    private_data: *mut c_void,
}

/// What a schema points to.
struct SchemaParts {
    /// Where its name is.
    _rows: Arc<ArrowRows>,
    children: Vec<*mut ArrowSchema>,
    dictionary: *mut ArrowSchema,
}

/// What an array points to.
struct ArrayParts {
    /// Where its values are.
    _rows: Arc<ArrowRows>,
    buffers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
    dictionary: *mut ArrowArray,
}

/// What a stream has still to give.
struct StreamParts {
    rows: Arc<ArrowRows>,
    is_given: bool,
}

// SAFETY: both own what they point to, which is immutable data behind an `Arc`; nothing is bound to a thread.
unsafe impl Send for ArrowSchema {}
// SAFETY: as above.
unsafe impl Send for ArrowStream {}

impl ArrowSchema {
    /// The schema of a table: a struct of its columns.
    pub(crate) fn of(rows: &Arc<ArrowRows>) -> Self {
        let children = rows.columns.iter().map(|column| Box::into_raw(Box::new(Self::of_column(rows, column))));
        Self::whole(rows, (c"+s", c""), 0, children.collect(), null_mut())
    }

    /// `column` is one of the rows, or the words of one.
    fn of_column(rows: &Arc<ArrowRows>, column: &ArrowColumn) -> Self {
        let words = column.words.as_ref().map(|words| Box::into_raw(Box::new(Self::of_column(rows, words))));
        Self::whole(rows, (column.format, &column.name), NULLABLE, Vec::new(), words.unwrap_or(null_mut()))
    }

    fn whole(
        rows: &Arc<ArrowRows>,
        (format, name): (&'static CStr, &CStr),
        flags: i64,
        children: Vec<*mut Self>,
        dictionary: *mut Self,
    ) -> Self {
        let mut parts = Box::new(SchemaParts { _rows: Arc::clone(rows), children, dictionary });
        Self {
            format: format.as_ptr(),
            name: name.as_ptr(),
            metadata: null(),
            flags,
            n_children: count(parts.children.len()),
            children: parts.children.as_mut_ptr(),
            dictionary,
            release: Some(release_schema),
            private_data: Box::into_raw(parts).cast(),
        }
    }
}

impl ArrowArray {
    /// All rows of a table at once.
    fn of(rows: &Arc<ArrowRows>) -> Self {
        let children = rows.columns.iter().map(|column| Box::into_raw(Box::new(Self::of_column(rows, column))));
        Self::whole(rows, (rows.length, 0), vec![null()], children.collect(), null_mut())
    }

    /// `column` is one of the rows, or the words of one.
    fn of_column(rows: &Arc<ArrowRows>, column: &ArrowColumn) -> Self {
        let words = column.words.as_ref().map(|words| Box::into_raw(Box::new(Self::of_column(rows, words))));
        let buffers = column.buffers.iter().map(ArrowBuffer::pointer).collect();
        Self::whole(rows, (column.length, column.nulls), buffers, Vec::new(), words.unwrap_or(null_mut()))
    }

    fn whole(
        rows: &Arc<ArrowRows>,
        (length, nulls): (usize, usize),
        buffers: Vec<*const c_void>,
        children: Vec<*mut Self>,
        dictionary: *mut Self,
    ) -> Self {
        let mut parts = Box::new(ArrayParts { _rows: Arc::clone(rows), buffers, children, dictionary });
        Self {
            length: count(length),
            null_count: count(nulls),
            offset: 0,
            n_buffers: count(parts.buffers.len()),
            n_children: count(parts.children.len()),
            buffers: parts.buffers.as_mut_ptr(),
            children: parts.children.as_mut_ptr(),
            dictionary,
            release: Some(release_array),
            private_data: Box::into_raw(parts).cast(),
        }
    }

    /// What says that there is nothing more.
    const fn none() -> Self {
        Self {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: null_mut(),
            children: null_mut(),
            dictionary: null_mut(),
            release: None,
            private_data: null_mut(),
        }
    }
}

impl ArrowStream {
    /// The rows of a table, once.
    pub(crate) fn of(rows: &Arc<ArrowRows>) -> Self {
        let parts = Box::new(StreamParts { rows: Arc::clone(rows), is_given: false });
        Self {
            get_schema: Some(get_schema),
            get_next: Some(get_next),
            get_last_error: Some(get_last_error),
            release: Some(release_stream),
            private_data: Box::into_raw(parts).cast(),
        }
    }
}

/// Nobody took it out of its capsule.
impl Drop for ArrowSchema {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it was not released, and `release` is this module's: only what it makes is dropped as a value.
            unsafe { release(self) }
        }
    }
}

/// Nobody took it out of its capsule.
impl Drop for ArrowStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: as above.
            unsafe { release(self) }
        }
    }
}

unsafe extern "C" fn get_schema(stream: *mut ArrowStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the caller gives a stream of this module that was not released, and room for a schema, which holds none.
    unsafe {
        let parts = &*(*stream).private_data.cast::<StreamParts>();
        out.write(ArrowSchema::of(&parts.rows));
    }
    0
}

unsafe extern "C" fn get_next(stream: *mut ArrowStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: as above; nobody else uses the stream meanwhile, which the interface asks of the caller.
    unsafe {
        let parts = &mut *(*stream).private_data.cast::<StreamParts>();
        let is_first = !std::mem::replace(&mut parts.is_given, true);
        out.write(if is_first { ArrowArray::of(&parts.rows) } else { ArrowArray::none() });
    }
    0
}

/// Nothing here fails.
unsafe extern "C" fn get_last_error(_stream: *mut ArrowStream) -> *const c_char {
    null()
}

unsafe extern "C" fn release_stream(stream: *mut ArrowStream) {
    // SAFETY: the caller gives a stream of this module that was not released; its parts are its own.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<StreamParts>()));
        (*stream).release = None;
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: as above. A child's contents may have been taken (its `release` is null then); its room is ours, and its
    // `Drop` releases what was not taken.
    unsafe {
        let parts = Box::from_raw((*schema).private_data.cast::<SchemaParts>());
        (*schema).release = None;
        for child in parts.children.iter().copied().chain([parts.dictionary]).filter(|child| !child.is_null()) {
            drop(Box::from_raw(child));
        }
    }
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: as above; an array has no `Drop`, for one is also written into the room of a caller.
    unsafe {
        let parts = Box::from_raw((*array).private_data.cast::<ArrayParts>());
        (*array).release = None;
        for child in parts.children.iter().copied().chain([parts.dictionary]).filter(|child| !child.is_null()) {
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
    }
}
