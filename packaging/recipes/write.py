#!/usr/bin/env python3
"""Write the recipes of Homebrew, conda-forge and Spack for a source archive.

usage: write.py ARCHIVE DIRECTORY      (ARCHIVE: fairwave-VERSION-source.tar.gz, of which they have the hash)
"""

import hashlib
import re
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent


def write(archive: Path, directory: Path) -> None:
    """Fill in every template next to this file."""
    package = tomllib.loads((HERE.parent.parent / "Cargo.toml").read_text())["workspace"]["package"]
    words = tomllib.loads((HERE / "recipes.toml").read_text())
    words["version"], words["license"], words["rust"] = (
        package["version"],
        package["license"],
        package["rust-version"],
    )
    words["sha256"] = hashlib.sha256(archive.read_bytes()).hexdigest()
    words["source"] = words["source"].replace("@version@", words["version"])
    directory.mkdir(parents=True, exist_ok=True)
    for template in HERE.glob("*.in"):
        # A word that is not known is an error.
        text = re.sub("@([a-z0-9]+)@", lambda found: words[found[1]], template.read_text())
        (directory / template.stem).write_text(text)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write(Path(sys.argv[1]), Path(sys.argv[2]))
