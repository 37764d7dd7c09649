//! Networks in formats of plain text: Repetita's and SNDlib's native one.

use super::file_text::{FileMistake, number};
use super::network_file::{Line, NetworkFile};

/// Repetita (Gay et al. 2017): `NODES n`, a line of column names, a line for each; then `EDGES m` likewise, with
/// capacities in kb/s and delays in microseconds. Edges have one direction.
pub(super) fn repetita(text: &str) -> Result<NetworkFile, FileMistake> {
    let mut network = NetworkFile::default();
    let mut section = "";
    for (line, cells) in lines(text) {
        match (section, &cells[..]) {
            (_, ["NODES" | "EDGES", _]) => section = cells[0],
            (_, ["label", ..]) => {}
            ("NODES", [id, x, y]) => network.add(id, Some((signed(line, x)?, signed(line, y)?))),
            ("EDGES", [_, from, to, _, capacity, delay]) => {
                let capacity = Some(format!("{} kb/s", number(line, capacity)?));
                let delay = Some(format!("{} us", number(line, delay)?));
                let (from, to) = (index(&network, line, from)?, index(&network, line, to)?);
                network.lines.push(Line { from, to, capacity, delay, is_duplex: false });
            }
            _ => return Err(FileMistake::new(line, format!("unknown line of {} cells", cells.len()), REPETITA)),
        }
    }
    Ok(network)
}

const REPETITA: &str = "a line is label x y, or label src dest weight bw delay; of demands label src dest bw";

/// The demands of a separate file of Repetita's, in kb/s.
pub(super) fn repetita_demands(text: &str, network: &mut NetworkFile) -> Result<(), FileMistake> {
    for (line, cells) in lines(text) {
        match &cells[..] {
            ["DEMANDS", _] | ["label", ..] => {}
            [_, from, to, rate] => {
                let rate = number(line, rate)?;
                demand(network, index(network, line, from)?, index(network, line, to)?, rate, "kb/s");
            }
            _ => return Err(FileMistake::new(line, format!("unknown line of {} cells", cells.len()), REPETITA)),
        }
    }
    Ok(())
}

/// Adds a demand, unless it is zero or leads nowhere.
pub(super) fn demand(network: &mut NetworkFile, from: usize, to: usize, rate: f64, unit: &str) {
    if from != to && rate > 0.0 {
        network.demands.push((from, to, format!("{rate} {unit}")));
    }
}

fn lines(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    let lines = text.lines().enumerate().map(|(n, line)| (n + 1, line.split_whitespace().collect::<Vec<_>>()));
    lines.filter(|(_, cells)| !cells.is_empty())
}

/// Edges and demands have the numbers of nodes.
fn index(network: &NetworkFile, line: usize, cell: &str) -> Result<usize, FileMistake> {
    let index = cell.parse().ok().filter(|index| *index < network.places.len());
    index.ok_or_else(|| FileMistake::new(line, format!("\"{cell}\" is not the number of a node"), REPETITA))
}

pub(super) fn signed(line: usize, cell: &str) -> Result<f64, FileMistake> {
    let number = cell.parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| FileMistake::new(line, format!("\"{cell}\" is not a coordinate"), "use a decimal point"))
}

/// SNDlib's native format: `NODES ( id ( x y ) ... )`, `LINKS ( id ( from to ) pre-installed capacity, three costs,
/// ( capacity cost ... ) ... )`, `DEMANDS ( id ( from to ) routing unit, value, longest path ... )`. Links have both
/// directions. The capacity is what is installed, else the smallest module. Values are in Mb/s.
pub(super) fn sndlib(text: &str) -> Result<NetworkFile, FileMistake> {
    let mut network = NetworkFile::default();
    let mut section = String::new();
    for (n, line) in text.lines().enumerate() {
        let (n, line) = (n + 1, line.split('#').next().unwrap_or("").trim());
        if line.is_empty() || line.starts_with('?') {
            continue;
        }
        if line == ")" {
            section.clear();
            continue;
        }
        if let Some(name) = line.strip_suffix('(').map(str::trim)
            && section.is_empty()
        {
            name.clone_into(&mut section);
            continue;
        }
        let spaced = line.replace('(', " ( ").replace(')', " ) ");
        let cells: Vec<&str> = spaced.split_whitespace().collect();
        match (&*section, &cells[..]) {
            ("NODES", [id, "(", x, y, ")"]) => network.add(id, Some((signed(n, x)?, signed(n, y)?))),
            ("LINKS", [_, "(", from, to, ")", installed, _, _, _, "(", modules @ .., ")"]) => {
                let installed = Some(number(n, installed)?).filter(|installed| *installed > 0.0);
                let modules = modules.iter().step_by(2).filter_map(|cell| cell.parse::<f64>().ok());
                let smallest = modules.filter(|capacity| *capacity > 0.0).reduce(f64::min);
                let capacity = installed.or(smallest).map(|capacity| format!("{capacity} Mb/s"));
                let (from, to) = (network.place(n, from)?, network.place(n, to)?);
                network.lines.push(Line { from, to, capacity, delay: None, is_duplex: true });
            }
            ("DEMANDS", [_, "(", from, to, ")", _, value, ..]) => {
                let (from, to, value) = (network.place(n, from)?, network.place(n, to)?, number(n, value)?);
                demand(&mut network, from, to, value, "Mb/s");
            }
            ("NODES" | "LINKS" | "DEMANDS", _) => {
                return Err(FileMistake::new(n, format!("unknown line in {section}"), "a line is ID ( FROM TO ) ..."));
            }
            _ => {}
        }
    }
    Ok(network)
}
