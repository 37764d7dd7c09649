//! The formats of networks in files.

use super::file_text::FileMistake;
use super::network_file::{NetworkFile, Place};
use super::{network_text, network_xml};

/// Reads a file in the format that it has.
pub(super) fn network(text: &str) -> Result<NetworkFile, FileMistake> {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    let mut network = if start.starts_with('<') {
        network_xml::network(text)?
    } else if start.starts_with("NODES") && !start.lines().next().unwrap_or("").contains('(') {
        network_text::repetita(text)?
    } else if start.starts_with("?SNDlib") || text.contains("NODES (") {
        network_text::sndlib(text)?
    } else {
        let hint = "known: SNDlib (native and XML), GraphML of the Topology Zoo, Repetita";
        return Err(FileMistake::new(None, "is in no known format of networks", hint));
    };
    if network.places.is_empty() || network.lines.is_empty() {
        return Err(FileMistake::new(None, "has no nodes or no links", "is it the right file?"));
    }
    let is_on_earth = |place: &Place| place.at.is_none_or(|(x, y)| x.abs() <= 180.0 && y.abs() <= 90.0);
    // Coordinates of a picture.
    if !network.places.iter().all(is_on_earth) {
        network.places.iter_mut().for_each(|place| place.at = None);
    }
    network.tidy_names();
    Ok(network)
}
