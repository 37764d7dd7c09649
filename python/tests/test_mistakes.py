"""Mistakes in scenarios and calls: where, what, and how to mend it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import fairwave as fw

GOOD = """
name = "one"
scheme = "gtp"
duration = "1 s"
node = [{ name = "s", capacity = "1 Gb/s" }, { name = "d", capacity = "500 Mb/s" }]
session = [{ name = "a", from = "s", to = "d", rtt = "20 ms" }]
"""


def mistake(text: str | os.PathLike[str], **changes: Any) -> fw.ScenarioError:
    with pytest.raises(fw.ScenarioError) as caught:
        fw.simulate(text, **changes)
    assert isinstance(caught.value, ValueError)
    return caught.value


def test_mistake__has_file_line_message_and_hint(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(GOOD.replace("rtt =", "rrt ="))
    error = mistake(path)
    assert (error.file, error.line) == (str(path), 6)
    assert "rrt" in error.message
    assert error.hint is not None
    assert "rtt" in error.hint
    assert str(error) == f"{path}:6: {error.message}\nhint: {error.hint}"
    with pytest.raises(fw.ScenarioError, match=r"bad\.toml:6: "):
        fw.allocate(path)


def test_mistake__in_a_text_says_so() -> None:
    error = mistake(GOOD.replace("500 Mb/s", "0 Mb/s"))
    assert error.file == "<text>"
    assert "0 Mb/s" in error.message


@pytest.mark.parametrize(
    "text",
    ["\n", "\n[[[", "name = 1\n", "\x00\n\x01", GOOD + "name = 2", GOOD.replace("s\", to", "x\", to"), "\n" * 100_000],
)  # fmt: skip
def test_mistake__rubbish_is_an_error(text: str) -> None:
    assert mistake(text).message


def test_mistake__binary_file_and_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "noise.toml"
    path.write_bytes(bytes(range(256)) * 16)
    assert mistake(path).file == str(path)
    with pytest.raises(FileNotFoundError, match=r"none\.toml"):
        fw.simulate(tmp_path / "none.toml")
    with pytest.raises(IsADirectoryError):
        fw.simulate(tmp_path)


def test_mistake__too_large_a_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "huge.toml"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a terabyte, none of it on disk
    assert "MiB" in mistake(path).message


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"set": {"session.b.demand": "25 Mb/s"}}, fw.ScenarioError, r"session.*b"),
        ({"set": {"session.a.demand": "25 Mb"}}, fw.ScenarioError, r"25 Mb"),
        ({"set": {"options.alpha": 2.0}}, fw.ScenarioError, r"alpha"),
        ({"set": {"options.alpha": float("nan")}}, fw.ScenarioError, r"alpha"),
        ({"set": {"options.alpha": object()}}, TypeError, r"cannot be written to a scenario file"),
        ({"scheme": "gpt"}, fw.ScenarioError, r"gpt"),
        ({"set": {"scheme": "cubic"}, "model": "fluid"}, fw.ScenarioError, r"cubic.*\nhint: "),
        ({"variant": "none"}, fw.ScenarioError, r"none"),
        ({"duration": "20"}, fw.ScenarioError, r"duration: \"20\" is not a time: the unit is missing\nhint: "),
        ({"duration": "0 s"}, fw.ScenarioError, r"duration"),
        ({"duration": 20}, TypeError, r"duration: 20 has no unit"),
        ({"seed": -1}, ValueError, r"seed: -1 is not a seed"),
        ({"seed": 2**64}, ValueError, r"seed: .* is not a seed"),
        ({"seed": 1.5}, TypeError, r"float"),
        ({"model": "testbed"}, ValueError, r'model: unknown model "testbed"\nhint: use "fluid" or "packet"'),
        ({"window": "5 s"}, ValueError, r"window: .*\nhint: "),
        ({"window": "5..6"}, fw.ScenarioError, r"window: \"5\" is not a time"),
        ({"window": "0.5 s..0.2 s"}, fw.ScenarioError, r"window: .* must end after it starts"),
    ],
)
def test_mistake__in_a_call_names_the_argument(changes: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        fw.simulate(GOOD, **changes)


def test_mistake__in_allocate() -> None:
    with pytest.raises(fw.ScenarioError, match='at: "4" is not a time'):
        fw.allocate(GOOD, at="4")
    unlimited = GOOD.replace('capacity = "1 Gb/s"', 'capacity = "inf"').replace("500 Mb/s", "inf")
    with pytest.raises(fw.ScenarioError, match='"a"'):
        fw.allocate(unlimited)


def test_mistake__first_of_several_variants_is_told() -> None:
    text = GOOD + "".join(f'[[variant]]\nlabel = "{k}"\noptions.alpha = {0.1 if k < 3 else 9 + k}\n' for k in range(9))
    assert {mistake(text).message for _ in range(5)} == {mistake(text, variant="3").message}
