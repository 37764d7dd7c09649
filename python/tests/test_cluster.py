"""Sweeps on the workers of a Dask cluster."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pandas.testing import assert_frame_equal

import fairwave as fw

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
pytestmark = pytest.mark.filterwarnings("default")

STUDY: dict[str, Any] = {"set": {"options.alpha": [0.05, 0.1]}, "seeds": 20, "model": "fluid", "duration": "40 s"}


@pytest.fixture(autouse=True)
def _files_of_dask(tmp_path: Path) -> Iterator[None]:
    """The locks that Dask leaves in its directory stay below the test's."""
    with dask.config.set({"temporary-directory": str(tmp_path)}):
        yield


def test_sweep__on_a_cluster_that_loses_a_worker_has_the_rows_of_a_local_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    out = tmp_path / "r.parquet"
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        victim = next(iter(client.run(os.getpid).values()))

        def kill() -> None:
            # As soon as some rows are there, one of the two workers is gone.
            journal = out.with_name("r.parquet.part")
            for _ in range(120_000):
                if journal.exists() and journal.stat().st_size > 5_000:
                    os.kill(victim, signal.SIGKILL)
                    return
                time.sleep(0.001)

        killer = threading.Thread(target=kill)
        killer.start()
        rows = fw.sweep("five-to-one", client=client, out=out, **STUDY)
        killer.join()
        # It is gone: its nanny has another one in its place, or none yet.
        assert victim not in client.run(os.getpid).values()
    local = fw.sweep("five-to-one", **STUDY)
    assert_frame_equal(rows, local)
    assert_frame_equal(fw.read_parquet(out), local)


def test_sweep__a_mistake_at_a_worker_comes_out() -> None:
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(fw.ScenarioError, match="does not run in the fluid model"),
    ):
        fw.sweep("five-to-one", client=client, scheme="cubic", model="fluid")
