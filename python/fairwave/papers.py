"""The experiments of the papers: their claims, the measured values and the verdicts."""

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
    """The result of one experiment.

    Returned by `run`.

    Attributes:
        title: One-line description of the experiment.
        cites: The figure, table, section or equation.
        note: Choices that the paper leaves open and errors in the paper, or None.
        runs: The runs of its plot; ``runs[0].plot()`` draws one.
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
        """Whether every claim holds, is refuted with a proof, or misses for a known reason."""
        return all(claim["verdict"] != "miss" for claim in self._json["claims"])

    def claims(self) -> pd.DataFrame:
        """The claims, one row each.

        ``what``; ``paper`` and ``ours`` (a number in ``unit``, or words); ``unit``; ``tolerance``; ``source`` (where
        the expected value comes from); ``holds``; ``verdict`` ("holds", "refuted" if the paper is proved wrong, "known
        miss" or "miss"); ``reason`` (known reason for a miss); ``proof`` (proof of a refutation and its checks);
        ``referee`` (value from an independent source, if any).
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
        """Return the ID and the number of claims that hold."""
        claims = self._json["claims"]
        held = sum(claim["holds"] for claim in claims)
        return f"<Outcome {self.id}: {held} of {len(claims)} claims hold>"


def list() -> pd.DataFrame:
    """All experiments, by paper and in the order of its pages.

    Returns:
        ``id`` ("002/fig-vii-10"), ``title``, ``cites``, ``scenario`` (the shipped scenario that it runs; None if it is
        pure arithmetic), ``claims`` (their number), ``note``.

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
        id: ID of an experiment, "002/fig-vii-10"; or of a paper, "002"; or "all".
        quick: Run fewer draws and shorter runs.

    Returns:
        The `Outcome`, or a list of them for a paper or "all".

    Raises:
        ValueError: Unknown experiment; the message suggests the closest ID.

    Example:
        >>> import fairwave as fw
        >>> outcome = fw.papers.run("002/eq-ii-2")
        >>> outcome.cites, outcome.holds
        ('Wu 2007, Eq. II.2', True)
    """
    outcomes = [Outcome(outcome) for outcome in _core.papers_run(id, quick)]
    return outcomes[0] if "/" in id else outcomes
