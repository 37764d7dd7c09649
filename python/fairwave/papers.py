"""The experiments of the papers: what they claim, what Fairwave gets, and whether it holds."""

from __future__ import annotations

import builtins
import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fairwave import _core
from fairwave._lazy import LazyModule
from fairwave._run import Run

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LazyModule("pandas")


class Outcome:
    """What one experiment gave.

    Made by `run`.

    Attributes:
        title: What the experiment shows, in a line.
        cites: The figure, table, section or equation.
        note: What a reader must know: choices where the paper is silent, errors of the print. None if nothing.
        runs: The runs that its picture shows; ``runs[0].plot()`` draws one.
    """

    def __init__(self, core: _core.Outcome) -> None:
        """Wrap an outcome of the native module; `run` does."""
        self._core = core
        self.title = core.title
        self.cites = core.cites
        self.note = core.note
        self.runs = [Run(run) for run in core.runs]

    @cached_property
    def _json(self) -> dict[str, Any]:
        decoded: dict[str, Any] = json.loads(self._core.json())
        return decoded

    @property
    def id(self) -> str:
        """The experiment's id, "002/fig-vii-10"."""
        return str(self._json["id"])

    @property
    def holds(self) -> bool:
        """Whether every claim holds, or is refuted with its proof, or misses for a known reason."""
        return all(claim["verdict"] != "miss" for claim in self._json["claims"])

    def claims(self) -> pd.DataFrame:
        """The claims, a row each.

        ``what``; ``paper`` and ``ours`` (a number in ``unit``, or words); ``unit``; ``tolerance``; ``source`` (where
        the expected value comes from); ``holds``; ``verdict`` ("holds", "refuted": what is printed is proved wrong,
        "known miss" or "miss"); ``reason`` (why it does not hold, where that is known); ``proof`` (why what is printed
        is wrong, and the checks of that); ``referee`` (a number for the same thing from an independent source, where
        there is one).
        """
        columns = [
            "what",
            "paper",
            "ours",
            "unit",
            "tolerance",
            "source",
            "holds",
            "verdict",
            "reason",
            "proof",
            "referee",
        ]
        return pd.DataFrame(self._json["claims"], columns=columns)

    def __repr__(self) -> str:
        """Say which it is and how many of its claims hold."""
        claims = self._json["claims"]
        held = sum(claim["holds"] for claim in claims)
        return f"<Outcome {self.id}: {held} of {len(claims)} claims hold>"


def list() -> pd.DataFrame:
    """All experiments, by paper and in the order of its pages.

    Returns:
        ``id`` ("002/fig-vii-10"), ``title``, ``cites``, ``scenario`` (the shipped scenario that it runs; None where it
        is arithmetic alone), ``claims`` (how many), ``note``.

    Example:
        >>> import fairwave as fw
        >>> table = fw.papers.list().set_index("id")
        >>> table.loc["002/fig-vii-10", "scenario"]
        '002-fig-vii-10'
    """
    return pd.DataFrame(_core.papers_list())


def run(id: str, quick: bool = False) -> Outcome | builtins.list[Outcome]:
    """Run experiments and judge their claims.

    Args:
        id: An experiment's id, "002/fig-vii-10"; or a paper's, "002", or "all", for all of theirs.
        quick: Fewer draws where an experiment has many, and shorter runs.

    Returns:
        The `Outcome`, or a list of them where the id names a paper or all.

    Raises:
        ValueError: There is no such experiment; the nearest one is named.

    Example:
        >>> import fairwave as fw
        >>> outcome = fw.papers.run("002/eq-ii-2")
        >>> outcome.cites, outcome.holds
        ('Wu 2007, Eq. II.2', True)
    """
    outcomes = [Outcome(outcome) for outcome in _core.papers_run(id, quick)]
    return outcomes[0] if "/" in id else outcomes
