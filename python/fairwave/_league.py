"""The league: schemes in twelve fixed scenarios."""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairwave import _core
from fairwave._lazy import LazyModule
from fairwave._own import own_rules
from fairwave._sweep import _progress

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LazyModule("pandas")


def league(*rules: Callable[..., Any], field: Iterable[str] | None = None, quiet: bool = False) -> pd.DataFrame:
    """Compare your own rules with the built-in schemes in twelve fixed scenarios, as ``fairwave league`` does.

    The scenarios are the variants of the shipped files "league" and "league-arrivals", each with three seeds.

    Args:
        rules: Your own rules: classes with ``on_ack`` or with ``allocate``, as in `simulate`. A rule plays under its
            class's name: ``MyRule`` is "my-rule". They run one after the other, after the built-in schemes.
        field: Built-in schemes to compare with; by default all that the packet model runs. Completion times are
            relative to the best of the field and the rules.
        quiet: Show no progress on stderr.

    Returns:
        One row per scheme and scenario: ``utilisation`` (used share of the capacity), ``queueing_s`` (mean queueing
        delay), ``jain``, ``share`` (of the capacity that both flows use, for the first), ``slowdown`` (completion time
        relative to an idle path) and ``completion`` (slowdown over the least of the scenario), each a mean over
        the seeds with half of its 95 % interval in ``..._ci95``. NaN if the scheme does not run in the scenario, or not
        all of its transfers end.

    Raises:
        ScenarioError: ``field`` has an unknown scheme.
        ValueError: A rule has the name of a built-in scheme.

    Example:
        >>> import fairwave as fw
        >>> class Steady:
        ...     rate_bps = 8e6
        ...     def on_ack(self, acked_packets, rtt_s, now_s):
        ...         pass
        >>> scores = fw.league(Steady, field=["cubic"]).set_index(["scenario", "scheme"])
        >>> scores.loc["clean", "utilisation"].round(2)  # two of them on 20 Mb/s
        scheme
        cubic     1.0
        steady    0.8
        Name: utilisation, dtype: float64
    """
    core = _core.League(None if field is None else list(field), own_rules(_named(rules)))
    with _progress(core, quiet):
        return pd.DataFrame(core.run())


def main(file: str) -> int:
    """Print the scores of all schemes and of a file's rules, a JSON object a line: ``fairwave league --add FILE``."""
    sys.path.insert(0, str(Path(file).resolve().parent))
    try:
        defined = runpy.run_path(file, run_name="fairwave-league").values()
        classes = [each for each in defined if isinstance(each, type) and each.__module__ == "fairwave-league"]
        rules = [each for each in classes if hasattr(each, "on_ack") or hasattr(each, "allocate")]
        if not rules:
            raise ValueError("no class has on_ack or allocate")
        own_rules(_named(rules))
    except (OSError, SyntaxError, TypeError, ValueError) as error:
        print(f"--add {file}: {error}", file=sys.stderr)
        return 2
    for row in league(*rules).to_dict("records"):
        cells = {name: None if cell != cell else cell for name, cell in row.items()}  # NaN is not JSON
        print(json.dumps(cells))
    return 0


def _named(rules: Iterable[Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Rules by the names of their classes."""
    named: dict[str, Callable[..., Any]] = {}
    for rule in rules:
        name = getattr(rule, "__name__", type(rule).__name__)
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).replace("_", "-").lower()
        if name in named:
            raise ValueError(f'rules: two are called "{name}"\nhint: rename a class')
        named[name] = rule
    return named
