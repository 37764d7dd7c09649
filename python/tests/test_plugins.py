"""The plug-ins under python/plugins, each with the real tool."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import fairwave as fw

HERE = "127.0.0.1:0"
PLUGINS = ROOT / "python" / "plugins"
LIMIT_S = 120


def run(call: list[str], place: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        call, cwd=place, env={**os.environ, **environment}, capture_output=True, text=True, timeout=LIMIT_S
    )


def served(path: Path, **options: Any) -> fw.Server:
    path.mkdir()
    return fw.serve(path, writable=True, readable=True, listen=HERE, **options)


@pytest.mark.skipif(not shutil.which("git-annex"), reason="git-annex is not installed: apt-get install git-annex")
def test_git_annex__stores_retrieves_and_drops_contents(tmp_path: Path) -> None:
    tools, place = tmp_path / "tools", tmp_path / "repository"
    tools.mkdir()
    remote = tools / "git-annex-remote-fairwave"
    remote.write_text(f"#!/bin/sh\nexec {sys.executable} {PLUGINS}/git-annex/git_annex_remote_fairwave.py\n")
    remote.chmod(0o755)
    place.mkdir()
    names = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    environment = {**names, "HOME": str(tmp_path), "PATH": f"{tools}:{os.environ['PATH']}"}
    environment["PYTHONPATH"] = str(ROOT / "python")

    def git(*words: str, ticket: str = "") -> subprocess.CompletedProcess[str]:
        return run(["git", *words], place, **environment, FAIRWAVE_TICKET=ticket)

    def annex(*words: str, ticket: str = "") -> None:
        done = git("annex", *words, ticket=ticket)
        assert done.returncode == 0, done.stdout + done.stderr

    data = os.urandom(1_000_000)
    assert git("init", "-q").returncode == 0
    annex("init", "here")
    (place / "a [1].bin").write_bytes(data)
    annex("add", "a [1].bin")
    assert git("commit", "-qm", "a").returncode == 0
    initialise = ("initremote", "far", "type=external", "externaltype=fairwave", "encryption=none")
    missing = git("annex", *initialise)
    assert missing.returncode != 0
    assert "set FAIRWAVE_TICKET" in missing.stdout + missing.stderr
    with served(tmp_path / "far", delete=True) as server:
        annex(*initialise, ticket=server.ticket)
        # From now on the ticket comes from the credentials of the clone.
        annex("copy", "a [1].bin", "--to", "far")
        assert [file.read_bytes() for file in (tmp_path / "far").glob("SHA256E-*")] == [data]
        annex("drop", "a [1].bin")
        assert not (place / "a [1].bin").exists()
        annex("get", "a [1].bin")
        assert (place / "a [1].bin").read_bytes() == data
        annex("fsck", "--from", "far", "a [1].bin")
        (tmp_path / "far" / "another").write_bytes(b"of somebody")
        annex("drop", "a [1].bin", "--from", "far")
        assert [file.name for file in (tmp_path / "far").iterdir() if file.is_file()] == ["another"]
        assert server.ticket not in git("log", "-p", "git-annex").stdout
    # Nobody answers: the content may still be there.
    assert git("annex", "copy", "a [1].bin", "--to", "far").returncode != 0


SNAKEFILE = """
storage:
    provider="fairwave",

rule all:
    input: storage.fairwave("fairwave://share/results/out.txt")

rule count:
    input: storage.fairwave("fairwave://share/data/in.txt"), storage.fairwave("fairwave://share/data/more")
    output: storage.fairwave("fairwave://share/results/out.txt")
    shell: "cat {input[0]} {input[1]}/* > {output[0]}"
"""


def snakemake() -> str | None:
    """Return the path of the command: next to this interpreter, or in the PATH."""
    beside = Path(sysconfig.get_path("scripts"), "snakemake")
    return str(beside) if beside.exists() else shutil.which("snakemake")


@pytest.mark.skipif(not snakemake(), reason="snakemake is not installed: pip install snakemake")
def test_snakemake__reads_and_writes_a_share(tmp_path: Path) -> None:
    place = tmp_path / "workflow"
    place.mkdir()
    (place / "Snakefile").write_text(SNAKEFILE)
    # The command may have its own environment, of the same Python.
    paths = [ROOT / "python", PLUGINS / "snakemake", Path(sysconfig.get_path("purelib"))]

    def make(ticket: str) -> subprocess.CompletedProcess[str]:
        environment = {"PYTHONPATH": os.pathsep.join(map(str, paths)), "HOME": str(tmp_path)}
        ticket_name = "SNAKEMAKE_STORAGE_FAIRWAVE_TICKET"
        return run([str(snakemake()), "--cores", "1"], place, **environment, **{ticket_name: ticket})

    share = tmp_path / "share"
    with served(share, delete=True) as server:
        (share / "data" / "more").mkdir(parents=True)
        (share / "data" / "in.txt").write_text("one\n")
        (share / "data" / "more" / "a").write_text("two\n")
        done = make(server.ticket)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (share / "results" / "out.txt").read_text() == "one\ntwo\n"
        again = make(server.ticket)
        assert "Nothing to be done" in again.stdout + again.stderr
        (share / "data" / "in.txt").write_text("three\n")
        made_s = (share / "results" / "out.txt").stat().st_mtime
        for path, age_s in (("data/in.txt", 100), ("data/more/a", 300), ("data/more", 300), ("results/out.txt", 200)):
            os.utime(share / path, (made_s - age_s, made_s - age_s))
        done = make(server.ticket)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (share / "results" / "out.txt").read_text() == "three\ntwo\n"
        assert server.ticket not in done.stdout + done.stderr
    done = make("nonsense")
    assert done.returncode != 0
    assert "not a ticket" in done.stdout + done.stderr
