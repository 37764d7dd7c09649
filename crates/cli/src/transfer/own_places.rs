//! Places that are never given: Fairwave's own keys.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use fairwave_files::escaped;
use fairwave_host::own_places_below;

use crate::common::screen::Screen;

/// Says so of each place that lies below what is named.
pub(crate) fn note_left_out(screen: &Screen, paths: &[PathBuf]) {
    for place in own_places_below(paths) {
        let place = escaped(place.as_os_str().as_bytes());
        screen.note(&format!("skipping {place}: it holds Fairwave's keys or sockets"));
    }
}
