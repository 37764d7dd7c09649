"""`fairwave.max_min` against arithmetic, and what it does with arguments that make no sense."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from waiting import runs_beside

import fairwave as fw

INF = float("inf")


def test_max_min__three_sessions_share_what_the_slow_ones_leave() -> None:
    # One sink of 500, sources of 50, 100 and 1000 twice: 500 = 50 + 100 + 2 x 175
    capacity = [50e6, 100e6, 1e9, 1e9, 500e6]
    rates = fw.max_min(capacity, [[0, 4], [1, 4], [2, 4], [3, 4]])
    assert rates.tolist() == [50e6, 100e6, 175e6, 175e6]


def test_max_min__nine_nodes_of_figure_ix_2() -> None:
    # Wu 2007, Fig. IX.2, 700 Mb/s nodes: source 1 and sink 1 have five sessions each: 140 = 700 / 5;
    # 186.67 = (700 - 140) / 3; 373.33 = 700 - 140 - 186.67; total 2566.67.
    pairs = [(1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (2, 1), (3, 1), (4, 1), (5, 1)]
    pairs += [(2, 2), (2, 3), (2, 4), (3, 2), (4, 2), (3, 3)]
    rates = fw.max_min([700e6] * 10, [[source - 1, 4 + sink] for source, sink in pairs]) / 1e6
    expected = [140.0] * 9 + [560 / 3] * 5 + [700 - 140 - 560 / 3]
    np.testing.assert_allclose(rates, expected, rtol=1e-12)
    assert rates.sum() == pytest.approx(2566.67, abs=0.005)


def test_max_min__demands_and_weights() -> None:
    assert fw.max_min([900e6], [[0], [0], [0]], demand_bps=[100e6, INF, INF]).tolist() == [100e6, 400e6, 400e6]
    assert fw.max_min([900e6], [[0], [0]], weights=[1, 2]).tolist() == [300e6, 600e6]
    # The demand of 100 leaves 800 to weights of 1 and 3.
    rates = fw.max_min([900e6], [[0], [0], [0]], demand_bps=[100e6, INF, INF], weights=[1, 1, 3])
    assert rates.tolist() == [100e6, 200e6, 600e6]


def test_max_min__unlimited_resources_and_padding() -> None:
    # The second session crosses nothing but the unlimited resource and has a demand.
    rates = fw.max_min([INF, 10.0], [[0, 1], [0, -1], [-1, 1]], demand_bps=[INF, 7.0, INF])
    assert rates.tolist() == [5.0, 7.0, 5.0]


def test_max_min__nothing_to_share() -> None:
    assert fw.max_min([], []).shape == (0,)
    assert fw.max_min([1.0], np.empty((0, 3), dtype=np.int32)).shape == (0,)
    assert fw.max_min([0.0], [[0]]).tolist() == [0.0]


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64])
def test_max_min__takes_every_integer_type(dtype: type[np.integer]) -> None:
    assert fw.max_min([6.0, 2.0], np.array([[0], [0], [1]], dtype=dtype)).tolist() == [3.0, 3.0, 2.0]


def test_max_min__takes_lists_tuples_views_and_other_byte_orders() -> None:
    capacity, sessions = np.array([600e6, 500e6, 900e6]), np.array([[0, 2], [1, 2]])
    expected = [450e6, 450e6]
    assert fw.max_min(tuple(capacity), [(0, 2), (1, 2)]).tolist() == expected
    assert fw.max_min(capacity.astype(np.float32), sessions).tolist() == expected
    assert fw.max_min(capacity.astype(">f8"), sessions.astype(">i4")).tolist() == expected
    assert fw.max_min(np.repeat(capacity, 2)[::2], np.asfortranarray(sessions)).tolist() == expected
    assert fw.max_min(capacity[::-1], 2 - sessions[:, ::-1]).tolist() == expected
    assert fw.max_min([900_000_000], [[0], [0]]).tolist() == expected  # whole numbers


def test_max_min__leaves_its_arguments_alone() -> None:
    capacity, sessions = np.array([600e6, 500e6]), np.array([[0, -1], [0, 1]], dtype=np.int32)
    capacity.setflags(write=False)
    sessions.setflags(write=False)
    before = capacity.tobytes(), sessions.tobytes()
    rates = fw.max_min(capacity, sessions)
    assert (capacity.tobytes(), sessions.tobytes()) == before
    rates[0] = 1.0  # the result is the caller's own


MISTAKES: list[tuple[dict[str, object], str]] = [
    ({"capacity_bps": [float("nan"), 1.0]}, r"capacity_bps: capacity NaN bit/s of resource 0 must be from 0"),
    ({"capacity_bps": [1.0, -1.0]}, r"capacity_bps: capacity -1 bit/s of resource 1"),
    ({"capacity_bps": [1.0, 1e300]}, r"capacity_bps: capacity .* of resource 1"),
    ({"capacity_bps": [[1.0, 1.0]]}, r"capacity_bps: 2 dimensions, expected one"),
    ({"capacity_bps": 1.0}, r"capacity_bps: 0 dimensions, expected one"),
    ({"capacity_bps": ["1 Mb/s", "2 Mb/s"]}, r"capacity_bps: .*, expected numbers"),
    ({"capacity_bps": [1.0, None]}, r"capacity_bps: object, expected numbers"),
    ({"capacity_bps": [1j, 1.0]}, r"capacity_bps: complex128, expected numbers"),
    ({"capacity_bps": [True, False]}, r"capacity_bps: bool, expected numbers"),
    ({"capacity_bps": [[1.0], [1.0, 2.0]]}, r"capacity_bps: "),
    ({"sessions": [[0, 1], [1]]}, r"sessions: .*inhomogeneous"),
    ({"sessions": [0, 1]}, r"sessions: 1 dimensions, expected two"),
    ({"sessions": [[0.0], [1.0]]}, r"sessions: float64, expected integers"),
    ({"sessions": [[True], [False]]}, r"sessions: bool, expected integers"),
    ({"sessions": [["a"], ["b"]]}, r"sessions: .*, expected integers"),
    ({"sessions": [[0], [2]]}, r"sessions: session 1 crosses resource 2, but the problem has 2 resources"),
    ({"sessions": [[0], [-2]]}, r"sessions: -2 is not a resource index"),
    ({"sessions": [[0], [2**32 - 1]]}, r"sessions: 4294967295 is not a resource index"),
    ({"sessions": [[0], [2**33]]}, r"sessions: 8589934592 is not a resource index"),
    ({"sessions": [[0], [2**80]]}, r"sessions: object, expected integers"),
    ({"sessions": [[0, 0], [0, 1]]}, r"sessions: session 0 crosses resource 0 twice"),
    ({"sessions": [[0], [-1]]}, r"sessions: session 1 is unlimited"),
    ({"sessions": np.empty((2, 0), dtype=np.int32)}, r"sessions: .*without resources"),
    ({"demand_bps": [1.0]}, r"demand_bps: 1 demands for 2 sessions"),
    ({"demand_bps": [1.0, float("nan")]}, r"demand_bps: demand NaN bit/s of session 1"),
    ({"demand_bps": [-1.0, 1.0]}, r"demand_bps: demand -1 bit/s of session 0"),
    ({"weights": [1.0, 1.0, 1.0]}, r"weights: 3 weights for 2 sessions"),
    ({"weights": [1.0, 0.0]}, r"weights: weight 0 of session 1 must be from"),
    ({"weights": [1.0, INF]}, r"weights: weight inf of session 1"),
]


@pytest.mark.parametrize(("wrong", "message"), MISTAKES)
def test_max_min__mistakes_name_the_argument(wrong: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"capacity_bps": [1.0, 2.0], "sessions": [[0], [1]]}
    with pytest.raises(ValueError, match=message):
        fw.max_min(**{**arguments, **wrong})  # type: ignore[arg-type]


def test_max_min__same_bits_every_time_and_from_every_integer_type() -> None:
    capacity, sessions = random_network(20_000)
    first = fw.max_min(capacity, sessions).tobytes()
    assert fw.max_min(capacity, sessions).tobytes() == first
    assert fw.max_min(capacity, sessions.astype(np.int64)).tobytes() == first
    assert fw.max_min(capacity.tolist(), sessions.tolist()).tobytes() == first


def test_max_min__two_million_sessions_use_up_every_bottleneck() -> None:
    capacity, sessions = random_network(2_000_000)
    rates = fw.max_min(capacity, sessions)
    load = np.bincount(sessions.ravel(), weights=np.repeat(rates, 2), minlength=capacity.size)
    assert (load <= capacity * (1 + 1e-9)).all()
    # Definition 2: every session crosses a full resource at which it has the highest rate.
    highest = np.zeros(capacity.size)
    np.maximum.at(highest, sessions.ravel(), np.repeat(rates, 2))
    is_full = load[sessions] >= capacity[sessions] * (1 - 1e-9)
    is_highest = highest[sessions] <= rates[:, None] * (1 + 1e-9)
    assert (is_full & is_highest).any(axis=1).all()


def test_max_min__other_threads_run_meanwhile() -> None:
    capacity, sessions = random_network(1_000_000)
    assert runs_beside(lambda: fw.max_min(capacity, sessions))


def random_network(sessions: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
    """Sources with four sessions each, as many sinks, drawn with replacement."""
    generator = np.random.default_rng(7)
    sources = sessions // 4
    capacity = generator.uniform(100e6, 10e9, 2 * sources)
    rows = np.empty((sessions, 2), dtype=np.int32)
    rows[:, 0] = np.repeat(np.arange(sources, dtype=np.int32), 4)
    rows[:, 1] = sources + generator.integers(sources, size=sessions, dtype=np.int32)
    return capacity, rows
