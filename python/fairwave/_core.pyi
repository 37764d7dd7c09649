"""The native half: arrays and texts in, arrays and texts out. Use `fairwave` instead."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypedDict, final, type_check_only

import numpy as np
import numpy.typing as npt

__all__ = [
    "MAX_FILE_BYTES",
    "Allocator",
    "ArrowTable",
    "Controller",
    "League",
    "Outcome",
    "Run",
    "ScenarioError",
    "Server",
    "SharedLinks",
    "Sweep",
    "__version__",
    "aecp_control",
    "allocate",
    "get",
    "ls",
    "max_min",
    "papers_list",
    "papers_run",
    "put",
    "read_parquet",
    "response",
    "schemes",
    "shipped",
    "simulate",
    "t_95",
    "write_parquet",
    "xcp_control",
]

MAX_FILE_BYTES: Final = 67108864
__version__: Final[str]

@type_check_only
class Changes(TypedDict):
    scheme: str | None
    seed: int | None
    variant: str | None
    duration: str | None
    set: list[tuple[str, str]]

_OwnRule: TypeAlias = tuple[str, bool, Callable[..., Any], list[tuple[str, float]]]

@type_check_only
class SweepCall(TypedDict):
    changes: Changes
    grid: list[tuple[str, list[str]]]
    seeds: list[int] | int | None
    model: str | None
    window: tuple[str, str] | None
    salt: list[int]
    jobs: int

@type_check_only
class Link(TypedDict):
    capacity: str | None
    dedicated: bool
    plain: bool
    rule: str
    path_control: str

@type_check_only
class CopyOptions(TypedDict):
    check: bool
    dry_run: bool
    update: bool
    ignore_existing: bool
    existing: bool
    append: bool
    archive: bool
    numeric_ids: bool
    backup: bool
    backup_dir: str | None
    suffix: str | None
    delete: bool
    max_delete: int | None
    whole_file: bool
    compress: str
    fuzzy: bool
    links: bool
    modify_window: int
    include: list[str]
    exclude: list[str]
    min_size: int
    max_size: int | None
    one_file_system: bool
    gitignore: bool
    durable: str
    limit: str | None
    retry: str
    link: Link

@type_check_only
class Transferred(TypedDict):
    files: int
    bytes: int
    resumed_bytes: int
    deleted: int
    failed: list[tuple[bytes, str]]
    skipped: list[tuple[bytes, str]]
    warned: list[tuple[bytes, str]]
    blake3: bytes | None
    error: str | None

# Files and their total, bytes and their total, resumed bytes; whether to stop.
_Look: TypeAlias = Callable[..., bool]

@type_check_only
class Why(TypedDict):
    peer: str
    sends: bool
    carrier: str
    rate_bps: float
    limited_by: str | None
    because: str
    advice: str | None
    rtt_s: float | None
    least_rtt_s: float | None
    queueing_s: float | None
    loss_share: float | None
    late_share: float | None
    lateness_s: float | None
    marked_share: float | None
    delivery_rate_bps: float | None

def get(
    ticket: str,
    destination: str,
    names: list[str],
    rename: str | None,
    options: CopyOptions,
    look: _Look,
) -> Transferred: ...
def put(paths: list[str], ticket: str, options: CopyOptions, look: _Look) -> Transferred: ...
def ls(
    ticket: str, names: list[bytes], recursive: bool, link: Link, look: _Look
) -> list[tuple[bytes, str, int | None, int, float, bytes | None]]: ...

@final
class Server:
    def __new__(
        cls,
        paths: list[str],
        writable: bool,
        readable: bool,
        links: bool,
        delete: bool,
        archive: bool,
        quota: str | None,
        once: bool,
        expires_s: float | None,
        listen: str | None,
        link: Link,
    ) -> Server: ...
    @property
    def ticket(self) -> str: ...
    def transfers(self) -> list[tuple[str, bool, bool, int, int]]: ...
    def why(self) -> list[Why]: ...
    def close(self) -> None: ...

class ScenarioError(ValueError):
    file: str
    line: int | None
    message: str
    hint: str | None

@final
class Allocator:
    def __new__(cls, rule: str, options: dict[str, Any]) -> Allocator: ...
    def allocate(
        self,
        capacity_bps: float,
        measured_bps: npt.NDArray[np.float64],
        weights: npt.NDArray[np.float64] | None,
        demand_bps: npt.NDArray[np.float64] | None,
        elapsed_s: float,
    ) -> npt.NDArray[np.float64]: ...

@final
class Controller:
    def __new__(
        cls,
        scheme: str,
        initial_window_packets: float | None,
        initial_ssthresh_packets: float,
        options: dict[str, Any],
    ) -> Controller: ...
    def on_ack(self, acked_packets: int, rtt_s: float, now_s: float | None) -> None: ...
    def on_loss(self, in_flight_packets: int | None, now_s: float | None) -> None: ...
    def on_timeout(self) -> None: ...
    @property
    def window_packets(self) -> float: ...
    @window_packets.setter
    def window_packets(self, value: float) -> None: ...
    @property
    def ssthresh_packets(self) -> float: ...
    @property
    def now_s(self) -> float: ...

@final
class Outcome:
    @property
    def title(self) -> str: ...
    @property
    def cites(self) -> str: ...
    @property
    def note(self) -> str | None: ...
    @property
    def runs(self) -> list[Run]: ...
    def json(self) -> str: ...

@final
class Run:
    @property
    def title(self) -> str: ...
    def ways(self) -> list[list[int]]: ...
    def summary(self) -> str: ...
    def rates(self) -> dict[str, npt.NDArray[Any]]: ...
    def queues(self) -> dict[str, npt.NDArray[Any]]: ...
    def windows(self) -> dict[str, npt.NDArray[Any]]: ...
    def losses(self) -> dict[str, npt.NDArray[Any]]: ...
    def max_min(self) -> dict[str, npt.NDArray[Any]]: ...
    def distance(self) -> dict[str, npt.NDArray[np.float64]]: ...
    def round_trips(self) -> dict[str, npt.NDArray[Any]]: ...

def shipped(name: str) -> str | None: ...
def simulate(
    file: str,
    text: bytes,
    changes: Changes,
    window: tuple[str, str] | None,
    model: str | None,
    only_one: bool,
    own: list[_OwnRule] = ...,
) -> tuple[list[Run], list[str]]: ...

@final
class Sweep:
    def __new__(
        cls, file: str, text: bytes, call: SweepCall, out: str | None, resume: bool, own: list[_OwnRule] = ...
    ) -> Sweep: ...
    def notes(self) -> list[str]: ...
    def runs(self) -> int: ...
    def done(self) -> int: ...
    def missing(self) -> list[int]: ...
    def key(self, run: int) -> str: ...
    def own_columns(self) -> list[str]: ...
    def run(self, jobs: int) -> None: ...
    def one(self, run: int) -> bytes: ...
    def add(self, run: int, key: str, row: bytes) -> None: ...
    def columns(self) -> dict[str, Any]: ...
    def seeds_change_nothing(self) -> bool: ...
    def finish(self) -> None: ...

@final
class League:
    def __new__(cls, field: list[str] | None, own: list[_OwnRule]) -> League: ...
    def runs(self) -> int: ...
    def done(self) -> int: ...
    def run(self) -> dict[str, Any]: ...

@final
class ArrowTable:
    def __new__(cls, named: list[tuple[str, Any]]) -> ArrowTable: ...
    @property
    def column_names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class SharedLinks:
    def __new__(
        cls,
        seeds: list[int],
        capacity_bps: tuple[float, float],
        rtt_s: tuple[float, float],
        queue_bdp: tuple[float, float],
        loss: tuple[float, float],
        rival: str | None,
        rounds: int,
    ) -> SharedLinks: ...
    def reset(self, seeds: list[int] | None) -> npt.NDArray[np.float32]: ...
    def step(
        self, actions: npt.NDArray[np.float64]
    ) -> tuple[
        npt.NDArray[np.float32],
        npt.NDArray[np.float64],
        npt.NDArray[np.bool_],
        npt.NDArray[np.float64],
        npt.NDArray[np.float64],
    ]: ...

def t_95(degrees: int) -> float: ...
def write_parquet(path: str, named: dict[str, Any], about: str) -> None: ...
def read_parquet(path: str) -> dict[str, Any]: ...
def allocate(file: str, text: bytes, changes: Changes, at: str | None) -> tuple[dict[str, Any], list[str]]: ...
def max_min(
    capacity_bps: npt.NDArray[np.float64],
    sessions: npt.NDArray[np.uint32],
    demand_bps: npt.NDArray[np.float64] | None,
    weights: npt.NDArray[np.float64] | None,
) -> npt.NDArray[np.float64]: ...
def response(
    scheme: str,
    loss_rate: npt.NDArray[np.float64],
    rtt_s: float | None,
    form: str | None,
    options: dict[str, Any],
) -> npt.NDArray[np.float64]: ...
def xcp_control(
    capacity_bps: float, interval_s: float, input_bytes: float, queue_bytes: float, avg_rtt_s: float
) -> tuple[float, float]: ...
def aecp_control(
    rate_packets_per_s: float,
    capacity_packets_per_s: float,
    arrival_packets_per_s: float,
    queue_packets: float,
    interval_s: float,
) -> float: ...
def schemes() -> dict[str, list[Any]]: ...
def papers_list() -> dict[str, list[Any]]: ...
def papers_run(id: str, quick: bool) -> list[Outcome]: ...
