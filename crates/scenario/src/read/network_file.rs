//! Networks of public collections: files of Repetita, SNDlib and the Topology Zoo, as routers, links and demands.

use super::file_text::FileMistake;

/// A network as a file has it.
#[derive(Debug, Default)]
pub(super) struct NetworkFile {
    pub(super) places: Vec<Place>,
    pub(super) lines: Vec<Line>,
    /// Indices of two places, and a rate.
    pub(super) demands: Vec<(usize, usize, String)>,
}

#[derive(Debug)]
pub(super) struct Place {
    /// Its name in the file, by which lines and demands refer to it.
    pub(super) id: String,
    /// Its name in the scenario.
    pub(super) name: String,
    /// Longitude and latitude in degrees.
    pub(super) at: Option<(f64, f64)>,
}

/// A link between two places, by index.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) capacity: Option<String>,
    pub(super) delay: Option<String>,
    pub(super) is_duplex: bool,
}

impl NetworkFile {
    /// The index of a place by its name in the file.
    pub(super) fn place(&self, line: usize, id: &str) -> Result<usize, FileMistake> {
        let found = self.places.iter().position(|place| place.id == id);
        found.ok_or_else(|| FileMistake::new(line, format!("no node is named \"{id}\""), "nodes come before links"))
    }

    /// Adds a place; its name may be another than its id.
    pub(super) fn add(&mut self, id: &str, at: Option<(f64, f64)>) {
        self.places.push(Place { id: id.to_owned(), name: id.to_owned(), at });
    }

    /// Makes names unique, and of the characters that names may have.
    pub(super) fn tidy_names(&mut self) {
        let mut taken = std::collections::BTreeSet::new();
        for place in &mut self.places {
            let tidy = |c: char| if c.is_alphanumeric() || "-_.+@".contains(c) { c } else { '_' };
            let name: String = place.name.trim().chars().map(tidy).take(80).collect();
            let numbered = (1..).map(|n| if n == 1 { name.clone() } else { format!("{name}#{n}") });
            place.name =
                numbered.into_iter().find(|name| !name.is_empty() && taken.insert(name.clone())).unwrap_or_default();
        }
    }

    /// Delay of a line in whole microseconds along the great circle, at two thirds of the speed of light; `None` without
    /// coordinates.
    pub(super) fn delay_us(&self, line: &Line) -> Option<f64> {
        /// Light in fibre: refractive index 1.5.
        const KM_PER_S: f64 = 200_000.0;
        const EARTH_KM: f64 = 6371.0;
        let ((x1, y1), (x2, y2)) = (self.places[line.from].at?, self.places[line.to].at?);
        let (low, high) = (y1.to_radians(), y2.to_radians());
        let (dy, dx) = (libm::sin((high - low) / 2.0), libm::sin((x2 - x1).to_radians() / 2.0));
        let half = dy * dy + libm::cos(low) * libm::cos(high) * dx * dx;
        Some((2.0 * EARTH_KM * libm::asin(half.sqrt().min(1.0)) / KM_PER_S * 1e6).round())
    }
}
