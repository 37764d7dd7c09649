"""Importing the package loads nothing that takes long."""

import subprocess
import sys


def test_import__leaves_out_what_takes_long() -> None:
    code = "import sys; before = set(sys.modules); import fairwave; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "fairwave" in loaded
    assert not loaded & {"pandas", "matplotlib", "dask", "distributed", "pyarrow", "polars"}
