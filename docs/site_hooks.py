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
PROJECT_PAGES = [
    "README.md",
    "papers/README.md",
    "peers/README.md",
    "ARCHITECTURE.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
]
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


def uri_of(path: Path, config: MkDocsConfig) -> str:
    """Place of a file or folder of the repository in the site."""
    docs = Path(config.docs_dir)
    if path.is_dir():
        # A folder without a page gets a list of its files.
        pages = [path / name for name in ("index.md", "README.md") if (path / name).exists()]
        path = pages[0] if pages else path / "index.md"
    if path.is_relative_to(docs):
        return path.relative_to(docs).as_posix()
    place = f"{OUTSIDE}/{path.relative_to(docs.parent).as_posix()}"
    return place if path.suffix == ".md" else f"{place}.txt"


def targets_of(path: Path, root: Path) -> list[Path]:
    """Files and folders of the repository that a page links to."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    targets = [Path(os.path.normpath(path.parent / match["target"])) for match in LINK.finditer(text)]
    return [target for target in targets if target.exists() and target.is_relative_to(root)]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the files outside docs/ that pages link to, and those that these pages link to."""
    root = Path(config.docs_dir).parent
    waiting = [root / name for name in PROJECT_PAGES if (root / name).exists()]
    waiting += [Path(page.abs_src_path) for page in files.documentation_pages() if page.abs_src_path]
    while waiting:
        path = waiting.pop()
        uri = uri_of(path, config)
        if files.get_file_from_path(uri) is None:
            if path.is_file():
                files.append(File.generated(config, uri, abs_src_path=str(path)))
            elif uri.endswith("/index.md"):
                inside = sorted(file for file in path.iterdir() if file.is_file())
                links = [
                    f"- [{file.name}]({posixpath.relpath(uri_of(file, config), posixpath.dirname(uri))})"
                    for file in inside
                ]
                listing = "\n".join([f"# {path.relative_to(root).as_posix()}", "", *links, ""])
                files.append(File.generated(config, uri, content=listing))
                waiting += inside
        if path.suffix == ".md":
            waiting += [
                target for target in targets_of(path, root) if files.get_file_from_path(uri_of(target, config)) is None
            ]
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Points links to the places that files of the repository have in the site."""
    root = Path(config.docs_dir).parent
    uri = page.file.src_uri
    is_outside = uri.startswith(f"{OUTSIDE}/")
    source = root / uri.removeprefix(f"{OUTSIDE}/") if is_outside else Path(config.docs_dir) / uri
    if not source.exists():
        # A list of a folder: its links are those of the site.
        return markdown

    def moved(match: re.Match[str]) -> str:
        linked = Path(os.path.normpath(source.parent / match["target"]))
        if not linked.exists() or not linked.is_relative_to(root):
            return match[0]
        place = posixpath.relpath(uri_of(linked, config), posixpath.dirname(uri) or ".")
        return match["before"] + place + match["after"]

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
