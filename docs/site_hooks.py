"""Hooks of the site: its navigation, links that leave docs/, and a check that pages load nothing from other hosts."""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

# Folders in the order of the navigation. Pages that are not named here follow in the order of their names.
SECTIONS = {
    "tutorials": ("Tutorials", ["move-files", "share-a-machine", "simulate-a-network", "write-a-rule"]),
    "how-to": (
        "How-to",
        [
            "install",
            "over-ssh",
            "firewalls-and-nat",
            "slow-transfers",
            "unmodified-programs",
            "data-transfer-node",
            "hpc-sites",
            "cluster-study",
            "libfairwave",
        ],
    ),
    "reference": (
        "Reference",
        ["command", "transfers", "exit-codes", "json", "scenario-files", "schemes", "python", "c"],
    ),
    "explanation": ("Explanation", ["max-min-and-gtp", "tally", "path-model", "engines"]),
    "results": ("Results", ["index"]),
}
# Pages of the repository's top, and others that pages of docs/ link to, are below this folder of the site.
OUTSIDE = "project"
PROJECT_PAGES = ["README.md", "ARCHITECTURE.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"]
LINK = re.compile(r"(?P<before>\]\()(?P<target>[^)\s#]+)(?P<after>(?:#[^)\s]*)?(?:\s+\"[^\"]*\")?\))")
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
LOADED = re.compile(
    r"<(?:script|img|link|iframe|source)\b[^>]*?\b(?:src|href)=[\"']?(?:https?:)?//[^\"'\s>]+", re.IGNORECASE
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Lists the pages of docs/ by folder."""
    docs = Path(config.docs_dir)
    nav: list[object] = [{"Home": "index.md"}]
    for folder, (title, first) in SECTIONS.items():
        names = sorted(path.stem for path in docs.glob(f"{folder}/*.md"))
        ordered = [name for name in first if name in names] + [name for name in names if name not in first]
        if ordered:
            nav.append({title: [f"{folder}/{name}.md" for name in ordered]})
    nav.append({"Project": [f"{OUTSIDE}/{name}" for name in PROJECT_PAGES if (docs.parent / name).exists()]})
    config.nav = nav
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the files outside docs/ that pages link to, and those that these pages link to."""
    root = Path(config.docs_dir).parent
    known: set[str] = set()
    waiting = [root / name for name in PROJECT_PAGES]
    waiting += [Path(page.abs_src_path) for page in files.documentation_pages() if page.abs_src_path]
    while waiting:
        path = waiting.pop()
        if not path.exists():
            continue
        place = path.relative_to(root).as_posix()
        if not place.startswith("docs/") and place not in known:
            known.add(place)
            name = place if path.suffix == ".md" else f"{place}.txt"
            files.append(File.generated(config, f"{OUTSIDE}/{name}", abs_src_path=str(path)))
        if path.suffix == ".md":
            text = FENCE.sub("", path.read_text(encoding="utf-8"))
            for target in (match["target"] for match in LINK.finditer(text)):
                linked = Path(os.path.normpath(path.parent / target))
                is_new = linked.is_file() and linked.is_relative_to(root) and not linked.is_relative_to(root / "docs")
                if is_new and linked.relative_to(root).as_posix() not in known:
                    waiting.append(linked)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Points links to the places that files of the repository have in the site."""
    root = Path(config.docs_dir).parent
    uri = page.file.src_uri
    is_outside = uri.startswith(f"{OUTSIDE}/")
    source = root / uri.removeprefix(f"{OUTSIDE}/") if is_outside else Path(config.docs_dir) / uri

    def moved(match: re.Match[str]) -> str:
        target = match["target"]
        if re.match(r"[a-z]+:", target):
            return match[0]
        linked = Path(os.path.normpath(source.parent / target))
        if linked.is_dir():
            # A site has no page for a folder.
            linked = linked / "README.md"
        if not linked.is_file() or not linked.is_relative_to(root):
            return match[0]
        place = linked.relative_to(root).as_posix()
        if place.startswith("docs/"):
            place = place.removeprefix("docs/")
        else:
            place = f"{OUTSIDE}/{place}" if linked.suffix == ".md" else f"{OUTSIDE}/{place}.txt"
        return match["before"] + posixpath.relpath(place, posixpath.dirname(uri) or ".") + match["after"]

    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [LINK.sub(moved, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, LINK.sub(moved, markdown[end:])])


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuses a page that makes a browser load something from another host."""
    # The theme writes polyfills as they stand in the configuration, for the root of the site.
    depth = page.file.dest_uri.count("/")
    output = output.replace('src="assets/iframe-worker.js"', f'src="{"../" * depth}assets/iframe-worker.js"')
    found = LOADED.search(output)
    if found and 'rel="canonical"' not in found[0]:
        raise PluginError(f"{page.file.src_uri} loads from another host: {found[0]}")
    return output
