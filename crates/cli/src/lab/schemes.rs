//! `fairwave schemes`.

use std::fmt::Write as _;

use fairwave_schemes::scheme::{Scheme, schemes};
use serde::{Serialize, Serializer};

use crate::common::failure::Done;
use crate::common::output::print_json;
use crate::common::table::TextTable;
use crate::common::terminal::{BOLD, DIM, paint, print};

/// List the schemes, or show one with its options.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave schemes
  fairwave schemes gtp
  fairwave schemes --json")]
pub(crate) struct Args {
    /// Scheme to show with its options
    name: Option<String>,
    /// Print one JSON object: {"schemes":[...]}
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct SchemeListing {
    schemes: Vec<SchemeRow>,
}

#[derive(Serialize)]
struct SchemeRow {
    name: &'static str,
    kind: &'static str,
    needs: &'static str,
    options: Defaults,
    header_bytes: u64,
    cites: &'static str,
}

/// Options by name, with their defaults, in the order of the list.
struct Defaults(&'static Scheme);

impl Serialize for Defaults {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.options.iter().map(|option| (option.name, option.default)))
    }
}

pub(crate) fn run(args: &Args) -> Done {
    let chosen: Vec<&'static Scheme> = match &args.name {
        None => schemes().iter().collect(),
        Some(name) => vec![crate::lab::simulate::scheme_named("NAME", name)?],
    };
    if args.json {
        return print_json(&SchemeListing { schemes: chosen.into_iter().map(entry).collect() });
    }
    match (&args.name, chosen.first()) {
        (Some(_), Some(scheme)) => print(&details(scheme)),
        _ => print(&list(&chosen)),
    }
}

fn entry(scheme: &'static Scheme) -> SchemeRow {
    SchemeRow {
        name: scheme.name,
        kind: scheme.kind.name(),
        needs: scheme.needs,
        options: Defaults(scheme),
        header_bytes: scheme.header.get(),
        cites: scheme.cites,
    }
}

fn models(scheme: &Scheme) -> String {
    let names: Vec<_> = scheme.models.iter().map(|model| model.name()).collect();
    if names.is_empty() { "not yet".into() } else { names.join(", ") }
}

fn list(schemes: &[&Scheme]) -> String {
    let mut table = TextTable::new(&["scheme", "kind", "runs in", "what it is"]);
    for scheme in schemes {
        table.row([scheme.name.into(), scheme.kind.name().into(), models(scheme), scheme.help.into()]);
    }
    let more = "`fairwave schemes NAME` shows the options of a scheme; \"not yet\" marks schemes that this version \
                cannot run.";
    format!("{}\n{}\n", table.render(0), paint(DIM, more))
}

fn details(scheme: &Scheme) -> String {
    let needs = if scheme.needs.is_empty() { "nothing" } else { scheme.needs };
    let mut text = format!("{}: {}\n\n", paint(BOLD, scheme.name), scheme.help);
    let head = [("kind", scheme.kind.name().to_owned()), ("runs in", models(scheme))];
    let can = scheme.node.map(|rule| ("can", rule.words().join(", ")));
    let rest = [
        ("needs", needs.to_owned()),
        ("header", format!("{} more bytes per data packet", scheme.header.get())),
        ("cites", scheme.cites.to_owned()),
    ];
    for (what, value) in head.into_iter().chain(can).chain(rest) {
        let _ = writeln!(text, "  {what:<8} {value}");
    }
    if !scheme.options.is_empty() {
        let mut table = TextTable::new(&["option", "default", "what it does"]);
        for option in scheme.options {
            table.row([option.name.into(), option.default.into(), option.help.into()]);
        }
        let _ = write!(text, "\n{}", table.render(2));
    }
    text
}
