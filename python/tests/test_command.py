"""The same scenario gives the same numbers in Python and from the command `fairwave`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pandas as pd
import pytest

import fairwave as fw

COMMAND = Path(os.environ.get("FAIRWAVE", "target/release/fairwave"))


def fairwave(*arguments: str) -> str:
    if not COMMAND.exists():
        pytest.skip(f"{COMMAND} is not built; make test-python builds it")
    return subprocess.run([COMMAND, *arguments], check=True, capture_output=True, text=True).stdout


def test_simulate__tables_and_summary_are_those_of_the_command(tmp_path: Path) -> None:
    out = tmp_path / "out"
    text = fairwave("simulate", "scenarios/demands.toml", "--set", "session.steady.demand=90 Mb/s", "--model", "fluid",
                    "--seed", "3", "--json", "--quiet", "--out", str(out))  # fmt: skip
    run = fw.simulate("scenarios/demands.toml", model="fluid", seed=3, set={"session.steady.demand": "90 Mb/s"})
    assert isinstance(run, fw.Run)
    theirs = json.loads(text)
    for summary in (theirs, run.summary):
        del summary["engine"]
    assert run.summary == theirs
    for name, ours in {"rates": run.rates(), "queues": run.queues(), "losses": run.losses()}.items():
        table = pd.read_csv(out / f"{name}.csv")
        element = table.columns[1]
        pd.testing.assert_frame_equal(
            ours.astype({element: "str"}), table.astype({element: "str"}), check_dtype=False, check_exact=True
        )


def test_simulate__windows_are_those_of_the_command(tmp_path: Path) -> None:
    fairwave("simulate", "scenarios/five-to-one.toml", "--scheme", "sack", "--duration", "2 s", "--quiet",
             "--out", str(tmp_path))  # fmt: skip
    with pytest.warns(UserWarning, match="dropped options"):
        run = fw.simulate("scenarios/five-to-one.toml", scheme="sack", duration="2 s")
    assert isinstance(run, fw.Run)
    table = pd.read_csv(tmp_path / "windows.csv")
    ours = run.windows().astype({"session": "str"})
    pd.testing.assert_frame_equal(ours, table.astype({"session": "str"}), check_dtype=False, check_exact=True)


def test_allocate__is_that_of_the_command() -> None:
    theirs = json.loads(fairwave("allocate", "scenarios/demands.toml", "--at", "8 s", "--json"))
    ours = fw.allocate("scenarios/demands.toml", at="8 s")
    assert ours.to_dict("records") == theirs["sessions"]
    assert ours["rate_bps"].sum() == theirs["total_bps"]


def test_schemes__are_those_of_the_command() -> None:
    theirs = json.loads(fairwave("schemes", "--json"))["schemes"]
    ours = fw.schemes()
    assert ours["name"].tolist() == [scheme["name"] for scheme in theirs]
    assert ours["header_bytes"].tolist() == [scheme["header_bytes"] for scheme in theirs]
    assert ours["kind"].tolist() == [scheme["kind"] for scheme in theirs]
