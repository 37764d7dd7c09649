"""Fair bandwidth sharing at the end nodes of fast long networks: GTP, max-min fairness and simulation.

- `simulate` runs a scenario file and returns a `Run`: rates, queues and the distance to the optimum as DataFrames, and
  plots.
- `sweep` runs a scenario over a grid of parameters with many seeds, on all cores or on a cluster; `summarise` computes
  means with confidence intervals, and `plot_sweep` draws them.
- `league` compares your own rule with the built-in schemes in twelve fixed scenarios.
- `arrow` passes these tables to polars, pyarrow or DuckDB.
- `allocate` computes the max-min fair rates of a scenario, `max_min` those of any sessions over any resources.
- `Allocator` is the rule of one end node, `Controller` that of one window-based session; `response` is the window of
  such a rule as a function of the loss rate. `xcp_control` and `aecp_control` are the control laws of links with
  explicit feedback.
- `get`, `put` and `ls` download, upload and list files of another machine, `serve` offers files, and `copy` starts the
  other machine's end through ssh; `aget`, `aput` and `acopy` are for asyncio.
- `papers` runs the experiments of the papers and checks their claims.

Rates are in bit/s, times in seconds, sizes in bytes; names end with the unit. Quantities in scenarios and in options
are strings with a unit: "500 Mb/s", "60 ms".
"""

from fairwave import papers
from fairwave._allocation import Allocator, max_min
from fairwave._arrow import arrow
from fairwave._async import acopy, aget, aput
from fairwave._command import copy
from fairwave._controller import Controller
from fairwave._core import ScenarioError, __version__
from fairwave._feedback import aecp_control, xcp_control
from fairwave._league import league
from fairwave._options import TransferOptions
from fairwave._response import response
from fairwave._run import Run
from fairwave._scenario import allocate, simulate
from fairwave._schemes import schemes
from fairwave._sweep import plot_sweep, read_parquet, summarise, sweep
from fairwave._transfer import Progress, Server, Transfer, TransferError, get, ls, put, serve

__all__ = [
    "Allocator",
    "Controller",
    "Progress",
    "Run",
    "ScenarioError",
    "Server",
    "Transfer",
    "TransferError",
    "TransferOptions",
    "__version__",
    "acopy",
    "aecp_control",
    "aget",
    "allocate",
    "aput",
    "arrow",
    "copy",
    "get",
    "league",
    "ls",
    "max_min",
    "papers",
    "plot_sweep",
    "put",
    "read_parquet",
    "response",
    "schemes",
    "serve",
    "simulate",
    "summarise",
    "sweep",
    "xcp_control",
]
