//! Tips for options that rsync and scp have and a copy does not, and for commands that a build leaves out.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::FEATURES;

const WHOLE: &str = "directories are copied with all they hold, links and times; no option is needed";
const ALL: &str = "use --archive, which copies all attributes";
/// Options of rsync 3.2 and of OpenSSH's scp, and what to type instead.
const TIPS: [(&str, &str); 25] = [
    ("-l", WHOLE),
    ("-R --relative", "use --files-from LIST with the directory to which its paths are relative"),
    ("-p -o -g -A -X -H -D --perms --owner --group --acls --xattrs --hard-links --devices --specials", ALL),
    ("-S --sparse", "holes of files stay holes; no option is needed"),
    ("-c --checksum -I --ignore-times", "use --check"),
    ("-e --rsh", "use --ssh \"ssh -p 2222\""),
    ("--rsync-path", "use --remote-command PATH"),
    ("-i --itemize-changes", "use -v, which prints a line for each file; a key for ssh goes into --ssh"),
    ("--stats --info --human-readable", "the last line has the totals, and with --json all of them"),
    ("--del --delete-before --delete-during --delete-delay", "use --delete, which deletes when all else is done"),
    ("--delete-excluded", "excluded files stay; delete them at the destination, or leave out the rule"),
    ("--remove-source-files", "sources stay; remove them when the copy is done"),
    ("--bwlimit", "use --limit \"200 Mb/s\""),
    ("--timeout --contimeout", "use --retry \"10 min\""),
    ("--append-verify", "use --append"),
    ("--inplace", "leave it out: what an older file has is not sent, and the new one replaces it when it is complete"),
    ("--partial-dir -T --temp-dir", "leave it out: unfinished files wait in their directories under hidden names"),
    ("-L --copy-links -k --copy-dirlinks --copy-unsafe-links", "links are copied as links; name what they lead to"),
    ("--safe-links", "leave it out: links that lead out of the tree are copied with --links only"),
    ("-f --filter", "use --include and --exclude"),
    ("-C --cvs-exclude", "use --gitignore or --exclude"),
    ("-m --prune-empty-dirs", "empty directories are copied; leave them out with --exclude"),
    (
        "--chmod --chown --usermap --groupmap",
        "modes and owners are copied with --archive; change them at the destination",
    ),
    ("--link-dest --copy-dest --compare-dest", "use --fuzzy, which takes blocks from other files at the destination"),
    ("-s --secluded-args --protect-args", "leave it out: no shell at the other end sees the names"),
];

/// Replaces the parser's tip about an unknown option of `cp`, `get` or `put` by one for users of rsync and scp, and the
/// error about a command that this build leaves out.
pub(crate) fn advise(mut error: clap::Error, command: Option<&str>) -> clap::Error {
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) {
        return left_out(name).unwrap_or(error);
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return error };
    let tip = TIPS
        .iter()
        .find(|(options, _)| options.split(' ').any(|one| one == option))
        .map(|(_, tip)| StyledStr::from(*tip));
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn advise__each_option_of_rsync_gets_its_tip() {
        for (options, tip) in TIPS {
            for option in options.split(' ') {
                let error = Cli::try_parse_from(["fairwave", "cp", option, "a", "h:b"]).err();
                let error = error.unwrap_or_else(|| panic!("{option} is an option of cp"));
                let text = advise(error, Some("cp")).to_string();
                assert!(text.contains(tip), "{option}: {text}");
            }
        }
    }
}
