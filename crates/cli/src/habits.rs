//! Tips for options that rsync and scp have and a copy does not, and for commands that a build leaves out.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::FEATURES;

const WHOLE: &str = "directories are copied with all they hold, links and times; no option is needed";
const ALL: &str = "use --archive, which copies all attributes";
/// Options of rsync 3.2 and of OpenSSH's scp, and what to type instead.
const TIPS: [(&[&str], &str); 7] = [
    (&["-R", "-l"], WHOLE),
    (
        &[
            "-p",
            "-o",
            "-g",
            "-A",
            "-X",
            "-H",
            "-S",
            "-D",
            "--perms",
            "--owner",
            "--group",
            "--acls",
            "--xattrs",
            "--hard-links",
        ],
        ALL,
    ),
    (&["-c", "--checksum"], "use --check"),
    (&["-e", "--rsh"], "use --ssh \"ssh -p 2222\""),
    (
        &["--del", "--delete-before", "--delete-during", "--delete-delay"],
        "use --delete, which deletes when all else is done",
    ),
    (&["--delete-excluded"], "excluded files stay; delete them at the destination, or leave out the rule"),
    (&["--bwlimit"], "use --limit \"200 Mb/s\""),
];

/// Replaces the parser's tip about an unknown option of `cp`, `get` or `put` by one for users of rsync and scp, and the
/// error about a command that this build leaves out.
pub(crate) fn advise(mut error: clap::Error, command: Option<&str>) -> clap::Error {
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) {
        return left_out(name).unwrap_or(error);
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return error };
    let tip = TIPS.iter().find(|(options, _)| options.contains(&option.as_str())).map(|(_, tip)| StyledStr::from(*tip));
    if let (ErrorKind::UnknownArgument, Some("cp" | "get" | "put"), Some(tip)) = (error.kind(), command, tip) {
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

/// The error about a command of a feature that is not built in.
fn left_out(name: &str) -> Option<clap::Error> {
    let feature = FEATURES.iter().find(|feature| !feature.is_built_in && feature.commands.contains(&name))?;
    let tip = if cfg!(target_os = "linux") {
        format!("install the whole command, or build it with --features {}", feature.name)
    } else {
        "use it on Linux".to_owned()
    };
    let text = format!("'{name}' needs the feature '{}', which this build leaves out\n\n  tip: {tip}\n", feature.name);
    Some(clap::Error::raw(ErrorKind::InvalidSubcommand, text))
}
