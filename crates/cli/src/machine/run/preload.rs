//! Finds the library that is loaded into programs.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::common::failure::{CommandFailure, plain};

/// Environment variable of the loader: ld.so(8).
pub(crate) const VARIABLE: &str = "LD_PRELOAD";
/// Names the library, where it lies elsewhere.
const PLACE_VARIABLE: &str = "FAIRWAVE_PRELOAD";
const NAME: &str = "libfairwave_preload.so";

/// The library: at the path in the environment, next to this command (as a build leaves it), or in `lib/fairwave` next
/// to its directory (as it is installed).
pub(crate) fn find() -> Result<PathBuf, CommandFailure> {
    if let Some(said) = std::env::var_os(PLACE_VARIABLE) {
        let said = PathBuf::from(said);
        let library = said.canonicalize().map_err(|error| {
            let shown = said.display();
            CommandFailure::usage(format!("{PLACE_VARIABLE} {shown}: {}", plain(&error)), &format!("name {NAME}"))
        })?;
        return loadable(library);
    }
    let command = std::env::current_exe()
        .and_then(|path| path.canonicalize())
        .map_err(|error| CommandFailure::Run(format!("cannot find the executable of fairwave: {}", plain(&error))))?;
    let places = places(&command);
    if let Some(library) = places.iter().find(|place| place.is_file()) {
        return loadable(library.clone());
    }
    let shown: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
    Err(CommandFailure::Run(format!(
        "cannot find {NAME}, which `fairwave run` loads into the program: tried {}\nhint: install a package or run \
         `make build` (`cargo install` does not build it), or set {PLACE_VARIABLE} to its path",
        shown.join(" and ")
    )))
}

fn places(command: &Path) -> Vec<PathBuf> {
    let dir = command.parent().unwrap_or(Path::new("/"));
    let mut places = vec![dir.join(NAME)];
    if let Some(prefix) = dir.parent() {
        places.push(prefix.join("lib/fairwave").join(NAME));
    }
    places
}

/// The loader takes a list, and has no way to say that one of these belongs to a name.
fn loadable(library: PathBuf) -> Result<PathBuf, CommandFailure> {
    if library.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b' ' | b':' | b'\n' | b'$')) {
        let shown = library.display();
        return Err(CommandFailure::Run(format!(
            "{shown}: the dynamic loader does not accept a path with a space, \":\" or \"$\""
        )));
    }
    Ok(library)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places__are_beside_the_command_and_where_it_is_installed() {
        let [beside, installed] = &places(Path::new("/usr/local/bin/fairwave"))[..] else { panic!("two") };
        assert_eq!(beside, Path::new("/usr/local/bin/libfairwave_preload.so"));
        assert_eq!(installed, Path::new("/usr/local/lib/fairwave/libfairwave_preload.so"));
    }

    #[test]
    fn loadable__refuses_what_the_loader_would_split() {
        for wrong in ["/a b/x.so", "/a:b/x.so", "/$LIB/x.so"] {
            assert!(loadable(wrong.into()).is_err(), "{wrong}");
        }
        assert!(loadable("/usr/lib/fairwave/x.so".into()).is_ok());
    }
}
