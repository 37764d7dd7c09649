"""The file system for fsspec, by fsspec's own calls and by pandas."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import pandas as pd
import pytest

import fairwave as fw
import fairwave.fsspec
from fairwave._transfer import Entry

HERE = "127.0.0.1:0"


@pytest.fixture
def share(tmp_path: Path) -> Iterator[fw.Server]:
    tree = tmp_path / "data"
    (tree / "below").mkdir(parents=True)
    (tree / "a.csv").write_text("a,b\n1,2\n3,4\n")
    (tree / "below" / "c.bin").write_bytes(bytes(range(256)) * 4096)
    (tree / "empty").mkdir()
    with fw.serve(tree, listen=HERE) as server:
        yield server


def test_url__is_read_by_fsspec_and_pandas(share: fw.Server) -> None:
    url = f"fairwave://{share.ticket}/data"
    table = pd.read_csv(f"{url}/a.csv")
    assert table.to_dict("list") == {"a": [1, 3], "b": [2, 4]}
    with fsspec.open(f"{url}/a.csv", "rt") as file:
        assert file.readline() == "a,b\n"
    files = fsspec.open_files(f"{url}/*.csv")
    assert [file.path for file in files] == ["data/a.csv"]
    table = pd.read_csv("fairwave:///data/a.csv", storage_options={"ticket": share.ticket})
    assert len(table) == 2


def test_ls__and_info_are_those_of_the_share(share: fw.Server, tmp_path: Path) -> None:
    fs = fsspec.filesystem("fairwave", ticket=share.ticket)
    assert share.ticket not in repr(fs)
    assert fs.ls("", detail=False) == ["data"]
    assert sorted(fs.ls("data", detail=False)) == ["data/a.csv", "data/below", "data/empty"]
    assert fs.ls("data/empty") == []
    assert fs.info("data/below/c.bin")["size"] == 1 << 20
    assert fs.modified("data/a.csv").timestamp() == pytest.approx((tmp_path / "data" / "a.csv").stat().st_mtime)
    assert (fs.isfile("data/a.csv"), fs.isdir("data/empty"), fs.isdir(""), fs.exists("data/none")) == (
        True,
        True,
        True,
        False,
    )
    assert fs.find("") == ["data/a.csv", "data/below/c.bin"]
    assert fs.glob("data/*/*.bin") == ["data/below/c.bin"]
    assert fs.du("data") == (1 << 20) + 12
    with pytest.raises(FileNotFoundError, match="data/none"):
        fs.ls("data/none")


def test_open__reads_ranges_of_a_file_fetched_once(share: fw.Server) -> None:
    fs = fsspec.filesystem("fairwave", ticket=share.ticket)
    whole = bytes(range(256)) * 4096
    with fs.open("data/below/c.bin") as file:
        file.seek(1000)
        assert file.read(300) == whole[1000:1300]
    assert fs.cat_file("data/below/c.bin", 100, 200) == whole[100:200]
    assert fs.cat_ranges(["data/below/c.bin"] * 2, [0, 5], [3, 9]) == [whole[:3], whole[5:9]]
    assert (fs.head("data/below/c.bin", 4), fs.tail("data/below/c.bin", 4)) == (whole[:4], whole[-4:])
    assert share.transfers()["bytes"].sum() <= 2 * len(whole)
    with pytest.raises(FileNotFoundError, match="none"):
        fs.open("data/none")
    with pytest.raises(NotImplementedError, match="put"):
        fs.open("data/a.csv", "wb")


def test_get__and_put_copy_trees(share: fw.Server, tmp_path: Path) -> None:
    fs = fsspec.filesystem("fairwave", ticket=share.ticket)
    fs.get("data", str(tmp_path / "there"), recursive=True)
    assert (tmp_path / "there" / "below" / "c.bin").stat().st_size == 1 << 20
    fs.get_file("data/a.csv", tmp_path / "renamed.csv")
    assert (tmp_path / "renamed.csv").read_text() == "a,b\n1,2\n3,4\n"
    with pytest.raises(OSError, match="refused"):
        fs.put_file(tmp_path / "renamed.csv", "data/new.csv")
    with pytest.raises(ValueError, match="NAME/new"):
        fs.put_file(tmp_path / "renamed.csv", "new.csv")
    (tmp_path / "inbox").mkdir()
    with fw.serve(tmp_path / "inbox", writable=True, readable=True, listen=HERE) as server:
        inbox = fsspec.filesystem("fairwave", ticket=server.ticket)
        seen = fsspec.callbacks.Callback()
        inbox.put_file(tmp_path / "renamed.csv", "inbox/deep/er/new.csv", callback=seen)
        assert (seen.size, seen.value) == (12, 12)
        inbox.put(str(tmp_path / "there"), "inbox/tree", recursive=True)
        assert inbox.cat("inbox/deep/er/new.csv") == b"a,b\n1,2\n3,4\n"
        assert inbox.exists("inbox/tree/below/c.bin")
    assert (tmp_path / "inbox" / "tree" / "a.csv").read_text() == "a,b\n1,2\n3,4\n"


def test_get__and_open_run_in_many_threads(tmp_path: Path) -> None:
    tree = tmp_path / "data"
    tree.mkdir()
    names = [f"data/{number}" for number in range(12)]
    for name in names:
        (tmp_path / name).write_text(name)
    with fw.serve(tree, listen=HERE) as server, ThreadPoolExecutor(12) as pool:
        fs = fsspec.filesystem("fairwave", ticket=server.ticket)
        list(pool.map(lambda name: fs.get_file(name, tmp_path / name.replace("/", "-")), names))
        assert [(tmp_path / name.replace("/", "-")).read_text() for name in names] == names
        assert list(pool.map(lambda name: fs.cat(name).decode(), names)) == names
    assert not list(tmp_path.glob(".fairwave-*"))


def test_cache__is_kept_where_the_caller_says(share: fw.Server, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    fs = fairwave.fsspec.FairwaveFileSystem(share.ticket, cache_dir=cache, skip_instance_cache=True)
    assert fs.cat("data/a.csv") == b"a,b\n1,2\n3,4\n"
    assert [path.read_bytes() for path in cache.rglob("a.csv")] == [b"a,b\n1,2\n3,4\n"]
    (tmp_path / "data" / "a.csv").write_text("changed")
    os.utime(tmp_path / "data" / "a.csv", (1, 1))
    assert fs.cat("data/a.csv") == b"changed"


def test_rm__deletes_one_file_if_the_server_allows_that(tmp_path: Path) -> None:
    (tmp_path / "inbox" / "below").mkdir(parents=True)
    for name in ("a*", "ab", "below/a*", "below/ab", "[a]*"):
        (tmp_path / "inbox" / name).write_text("a")
    with fw.serve(tmp_path / "inbox", writable=True, readable=True, listen=HERE) as server:
        fs = fsspec.filesystem("fairwave", ticket=server.ticket)
        with pytest.raises(OSError, match="refused"):
            fs.rm("inbox/ab")
    with fw.serve(tmp_path / "inbox", writable=True, readable=True, delete=True, listen=HERE) as server:
        fs = fsspec.filesystem("fairwave", ticket=server.ticket)
        fs.rm_file("inbox/a*")
        fs.rm_file("inbox/below/a*")
        fs.rm_file("inbox/[a]*")
        with pytest.raises(FileNotFoundError):
            fs.rm_file("inbox/none")
        with pytest.raises(IsADirectoryError):
            fs.rm_file("inbox/below")
        assert fs.find("") == ["inbox/ab", "inbox/below/ab"]


@pytest.mark.parametrize("name", ["data/..", "data/../../above", "/absolute", "data//b", "."])
def test_ls__refuses_names_that_lead_elsewhere(share: fw.Server, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def listed(*_: object, **__: object) -> list[Entry]:
        return [Entry("data", "directory", -1, 0o755, 0.0, ""), Entry(name, "file", 1, 0o644, 0.0, "")]

    monkeypatch.setattr(fairwave.fsspec, "entries", listed)
    fs = fsspec.filesystem("fairwave", ticket=share.ticket)
    with pytest.raises(ValueError, match="the server lists an invalid name"):
        fs.get("data", "there", recursive=True)
    with pytest.raises(ValueError, match=r'path with a component "\.\."'):
        fs.put_file(__file__, "data/../above")
