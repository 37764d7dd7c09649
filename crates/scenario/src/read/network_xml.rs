//! Networks in XML: GraphML of the Topology Zoo, and SNDlib's.

use std::collections::BTreeMap;

use super::file_text::{FileMistake, number};
use super::network_file::{Line, NetworkFile};
use super::network_text::{demand, signed};

/// A tag, with the text up to the next one.
struct Tag<'a> {
    line: usize,
    /// "node", or "/node" for its end.
    name: &'a str,
    attributes: &'a str,
    text: String,
}

impl Tag<'_> {
    fn attribute(&self, key: &str) -> Option<String> {
        let mut rest = self.attributes;
        while let Some((name, value)) = rest.split_once('=') {
            let value = value.trim_start();
            let quote = value.chars().next()?;
            let (value, after) = value.get(1..)?.split_once(quote)?;
            if name.trim() == key {
                return Some(plain(value));
            }
            rest = after;
        }
        None
    }

    fn need(&self, key: &str) -> Result<String, FileMistake> {
        let hint = "is it GraphML, or a network of SNDlib?";
        self.attribute(key).ok_or_else(|| FileMistake::new(self.line, format!("<{}> has no {key}", self.name), hint))
    }
}

/// Text without the five entities of XML.
fn plain(text: &str) -> String {
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    entities.iter().fold(text.trim().to_owned(), |text, (entity, letter)| text.replace(entity, letter))
}

/// The tags in order, without comments and declarations. An empty element has a start and an end.
fn tags(text: &str) -> Vec<Tag<'_>> {
    let (mut tags, mut line, mut rest) = (Vec::new(), 1, text);
    while let Some((before, from)) = rest.split_once('<') {
        line += before.matches('\n').count();
        if let Some(comment) = from.strip_prefix("!--") {
            let (inside, after) = comment.split_once("-->").unwrap_or((comment, ""));
            line += inside.matches('\n').count();
            rest = after;
            continue;
        }
        let (inside, after) = from.split_once('>').unwrap_or((from, ""));
        rest = after;
        if !inside.starts_with(['?', '!']) {
            let (inner, is_empty) = inside.strip_suffix('/').map_or((inside, false), |inner| (inner, true));
            let (name, attributes) = inner.split_once(char::is_whitespace).unwrap_or((inner, ""));
            let text = plain(after.split('<').next().unwrap_or(""));
            tags.push(Tag { line, name, attributes, text });
            if is_empty {
                tags.push(Tag { line, name: "/", attributes: "", text: String::new() });
            }
        }
        line += inside.matches('\n').count();
    }
    tags
}

pub(super) fn network(text: &str) -> Result<NetworkFile, FileMistake> {
    let tags = tags(text);
    match tags.iter().find(|tag| matches!(tag.name, "graphml" | "network")).map(|tag| tag.name) {
        Some("graphml") => graphml(&tags),
        Some(_) => sndlib(&tags),
        None => Err(FileMistake::new(None, "has neither <graphml> nor <network>", "is it the right file?")),
    }
}

/// Edges have both directions unless the graph is directed; their capacity is `LinkSpeedRaw`, in b/s.
fn graphml(tags: &[Tag<'_>]) -> Result<NetworkFile, FileMistake> {
    let mut network = NetworkFile::default();
    let mut keys: BTreeMap<String, String> = BTreeMap::new();
    let (mut is_directed, mut is_edge) = (false, false);
    let mut longitude = None;
    for tag in tags {
        match tag.name {
            "key" => {
                keys.insert(tag.need("id")?, tag.need("attr.name")?);
            }
            "graph" => is_directed = tag.attribute("edgedefault").is_some_and(|form| form == "directed"),
            "node" => {
                network.add(&tag.need("id")?, None);
                (is_edge, longitude) = (false, None);
            }
            "edge" => {
                let (from, to) = (tag.need("source")?, tag.need("target")?);
                let (from, to) = (network.place(tag.line, &from)?, network.place(tag.line, &to)?);
                network.lines.push(Line { from, to, capacity: None, delay: None, is_duplex: !is_directed });
                is_edge = true;
            }
            "data" => {
                let Some(key) = keys.get(&tag.need("key")?) else { continue };
                let place = network.places.last_mut().filter(|_| !is_edge);
                match (&**key, place) {
                    ("label", Some(place)) => place.name.clone_from(&tag.text),
                    ("Longitude", Some(_)) => longitude = Some(signed(tag.line, &tag.text)?),
                    ("Latitude", Some(place)) => {
                        place.at = Some((longitude.unwrap_or(f64::NAN), signed(tag.line, &tag.text)?));
                    }
                    ("LinkSpeedRaw", None) => {
                        let capacity = Some(number(tag.line, &tag.text)?).filter(|capacity| *capacity > 0.0);
                        if let Some(line) = network.lines.last_mut() {
                            line.capacity = capacity.map(|capacity| format!("{capacity} b/s"));
                        }
                    }
                    _ => {}
                }
                if let (Some(x), Some(place)) = (longitude, network.places.last_mut().filter(|_| !is_edge))
                    && let Some(at) = &mut place.at
                {
                    at.0 = x;
                }
            }
            _ => {}
        }
    }
    // A latitude without a longitude is not a place.
    network.places.iter_mut().for_each(|place| place.at = place.at.filter(|(x, _)| x.is_finite()));
    Ok(network)
}

/// As the native format: links have both directions, the capacity is what is installed or the smallest module, in Mb/s.
fn sndlib(tags: &[Tag<'_>]) -> Result<NetworkFile, FileMistake> {
    let mut network = NetworkFile::default();
    let (mut x, mut ends) = (None, [None, None]);
    let (mut installed, mut smallest): (Option<f64>, Option<f64>) = (None, None);
    let mut is_installed = false;
    let value = |tag: &Tag<'_>| number(tag.line, &tag.text);
    for tag in tags {
        match tag.name {
            "node" => network.add(&tag.need("id")?, None),
            "x" => x = Some(signed(tag.line, &tag.text)?),
            "y" => {
                let y = signed(tag.line, &tag.text)?;
                if let Some(place) = network.places.last_mut() {
                    place.at = x.map(|x| (x, y));
                }
            }
            "link" | "demand" => (ends, installed, smallest) = ([None, None], None, None),
            "source" => ends[0] = Some(network.place(tag.line, &tag.text)?),
            "target" => ends[1] = Some(network.place(tag.line, &tag.text)?),
            "preInstalledModule" => is_installed = true,
            "/preInstalledModule" => is_installed = false,
            "capacity" => {
                let capacity = Some(value(tag)?).filter(|capacity| *capacity > 0.0);
                if is_installed {
                    installed = capacity;
                } else {
                    smallest = smallest.into_iter().chain(capacity).reduce(f64::min);
                }
            }
            "/link" => {
                if let [Some(from), Some(to)] = ends {
                    let capacity = installed.or(smallest).map(|capacity| format!("{capacity} Mb/s"));
                    network.lines.push(Line { from, to, capacity, delay: None, is_duplex: true });
                }
            }
            "demandValue" => {
                if let [Some(from), Some(to)] = ends {
                    demand(&mut network, from, to, value(tag)?, "Mb/s");
                }
            }
            _ => {}
        }
    }
    Ok(network)
}
