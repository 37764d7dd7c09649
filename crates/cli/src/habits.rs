//! Tips for options that rsync and scp have and a copy does not.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

const WHOLE: &str = "directories are copied with all they hold, links and times; no option is needed";
/// Options of rsync 3.2 and of OpenSSH's scp, and what to type instead.
const TIPS: [(&[&str], &str); 7] = [
    (&["-a", "-R", "-l", "-p", "--archive"], WHOLE),
    (&["-z", "--compress"], "data is not compressed; leave it out"),
    (&["-c", "--checksum"], "use --check"),
    (&["-e", "--rsh"], "use --ssh \"ssh -p 2222\""),
    (
        &["--del", "--delete-before", "--delete-during", "--delete-delay"],
        "use --delete, which deletes when all else is done",
    ),
    (&["--delete-excluded"], "excluded files stay; delete them at the destination, or leave out the rule"),
    (&["--bwlimit"], "use --limit \"200 Mb/s\""),
];

/// Replaces the parser's tip about an unknown option of `cp`, `get` or `put` by one for users of rsync and scp.
pub(crate) fn advise(mut error: clap::Error, command: Option<&str>) -> clap::Error {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return error };
    let tip = TIPS.iter().find(|(options, _)| options.contains(&option.as_str())).map(|(_, tip)| StyledStr::from(*tip));
    if let (ErrorKind::UnknownArgument, Some("cp" | "get" | "put"), Some(tip)) = (error.kind(), command, tip) {
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}
