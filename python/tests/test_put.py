"""Sending, listing, progress, cancellation and asyncio, over the loopback device."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import fairwave as fw

HERE = "127.0.0.1:0"


@pytest.fixture
def inbox(tmp_path: Path) -> Any:
    (tmp_path / "inbox").mkdir()
    with fw.serve(tmp_path / "inbox", writable=True, readable=True, listen=HERE) as server:
        yield server


def make_tree(path: Path) -> Path:
    (path / "below").mkdir(parents=True)
    (path / "a.h5").write_bytes(b"a" * 1000)
    (path / "b.tmp").write_bytes(b"b" * 10)
    (path / "below" / "c.h5").write_bytes(b"c" * 100_000)
    return path


def files_below(path: Path) -> list[str]:
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())


def test_put__sends_a_tree_and_resumes(tmp_path: Path, inbox: fw.Server) -> None:
    tree = make_tree(tmp_path / "tree")
    transfer = fw.put(tree, inbox.ticket)
    again = fw.put([tree], inbox.ticket)
    assert (transfer.files, transfer.bytes, transfer.resumed_bytes) == (3, 101_010, 0)
    assert again.resumed_bytes == 101_010
    assert files_below(tmp_path / "inbox") == ["tree/a.h5", "tree/b.tmp", "tree/below/c.h5"]
    with pytest.raises(OSError, match="no-such-thing"):
        fw.put(tmp_path / "no-such-thing", inbox.ticket)


def test_options__choose_files_in_both_directions(tmp_path: Path, inbox: fw.Server) -> None:
    tree = make_tree(tmp_path / "tree")
    fw.put(tree, inbox.ticket, exclude=["*.tmp"], max_size=50_000, compress=3)
    assert files_below(tmp_path / "inbox") == ["tree/a.h5"]
    fw.put(tree, inbox.ticket)
    # A text is one pattern.
    fw.get(inbox.ticket, tmp_path / "there", include="*/", exclude=["+ *.tmp", "- *"])
    # Paths of a share start with the name of its directory.
    assert files_below(tmp_path / "there") == ["inbox/tree/b.tmp"]
    fw.get(inbox.ticket, tmp_path / "large", min_size=50_000)
    assert files_below(tmp_path / "large") == ["inbox/tree/below/c.h5"]


def test_options__back_up_and_delete(tmp_path: Path, inbox: fw.Server) -> None:
    tree, there = make_tree(tmp_path / "tree"), tmp_path / "there"
    fw.put(f"{tree}/.", inbox.ticket)
    fw.get(inbox.ticket, there)
    (tmp_path / "inbox" / "a.h5").write_bytes(b"new")
    (tmp_path / "inbox" / "b.tmp").unlink()
    transfer = fw.get(inbox.ticket, there, backup=True, backup_dir="old", delete=True)
    assert transfer.deleted == 1
    assert files_below(there) == ["inbox/a.h5", "inbox/below/c.h5", "old/inbox/a.h5", "old/inbox/b.tmp"]
    (there / "inbox" / "a.h5").write_bytes(b"here")
    fw.get(inbox.ticket, there, ignore_existing=True)
    assert (there / "inbox" / "a.h5").read_bytes() == b"here"


def test_serve__deletes_if_it_allows_that(tmp_path: Path, inbox: fw.Server) -> None:
    tree = make_tree(tmp_path / "tree")
    with pytest.raises(OSError, match="refused"):
        fw.put(tree, inbox.ticket, delete=True)
    (tmp_path / "other").mkdir()
    with fw.serve(tmp_path / "other", writable=True, delete=True, listen=HERE) as server:
        fw.put(tree, server.ticket)
        (tree / "b.tmp").unlink()
        assert fw.put(tree, server.ticket, delete=True).deleted == 1
    assert files_below(tmp_path / "other") == ["tree/a.h5", "tree/below/c.h5"]
    with pytest.raises(ValueError, match="delete: requires writable"):
        fw.serve(tree, delete=True, listen=HERE)


def test_options__errors_name_the_option(tmp_path: Path, inbox: fw.Server) -> None:
    wrong: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (TypeError, r"get\(\) got an unexpected keyword argument 'exclud'. Did you mean 'exclude'\?", {"exclud": "a"}),
        (ValueError, "max_delete: requires delete", {"max_delete": 3}),
        (ValueError, "numeric_ids: requires archive", {"numeric_ids": True}),
        (ValueError, "backup: the directory of backups", {"backup": True, "backup_dir": "../up"}),
        (ValueError, "durable: ", {"durable": "soon"}),
        (ValueError, 'compress: unknown value "10"', {"compress": 10}),
        (ValueError, "exclude: a pattern of", {"exclude": ["a" * 100_000]}),
        (ValueError, 'path_control: "reno" must be "bbr" or "cubic"', {"path_control": "reno"}),
    ]
    for kind, match, options in wrong:
        with pytest.raises(kind, match=match):
            fw.get(inbox.ticket, tmp_path / "there", **options)


def test_get__renames_a_single_file(tmp_path: Path, inbox: fw.Server) -> None:
    fw.put(make_tree(tmp_path / "tree"), inbox.ticket)
    transfer = fw.get(inbox.ticket, tmp_path / "there", ["inbox/tree/below/c.h5"], rename="copy.h5")
    assert (transfer.files, files_below(tmp_path / "there")) == (1, ["copy.h5"])


def test_ls__lists_what_the_command_lists(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree")
    (tree / "link").symlink_to("a.h5")
    with fw.serve(tree, listen=HERE) as server:
        top = fw.ls(server.ticket)
        below = fw.ls(server.ticket, ["tree"]).set_index("path")
        whole = fw.ls(server.ticket, recursive=True)
        missing = fw.ls(server.ticket, ["none"])
    assert top[["path", "kind", "bytes"]].to_numpy().tolist() == [["tree", "directory", -1]]
    assert below["kind"].to_dict() == {
        "tree/a.h5": "file",
        "tree/b.tmp": "file",
        "tree/below": "directory",
        "tree/link": "link",
    }
    assert below.loc["tree/link", "detail"] == "a.h5"
    assert below.loc["tree/a.h5", "modified_s"] == pytest.approx((tree / "a.h5").stat().st_mtime)
    assert "tree/below/c.h5" in list(whole["path"])
    assert missing[["path", "kind"]].to_numpy().tolist() == [["none", "failed"]]


def test_progress__grows_to_the_total(tmp_path: Path, inbox: fw.Server) -> None:
    data = tmp_path / "data.bin"
    data.write_bytes(os.urandom(2_000_000))
    for sends in (True, False):
        seen: list[fw.Progress] = []
        if sends:
            fw.put(data, inbox.ticket, limit="40 Mb/s", progress=seen.append)
        else:
            fw.get(inbox.ticket, tmp_path / "there", limit="40 Mb/s", progress=seen.append)
        counts = [now.bytes for now in seen]
        assert counts == sorted(counts)
        assert seen[-1] == fw.Progress(1, 1, 2_000_000, 2_000_000, 0)


def test_progress__an_exception_stops_the_transfer(tmp_path: Path, inbox: fw.Server) -> None:
    data = tmp_path / "data.bin"
    data.write_bytes(os.urandom(9_000_000))

    def fail(now: fw.Progress) -> None:
        raise KeyError(now.bytes)

    with pytest.raises(KeyError):
        fw.put(data, inbox.ticket, limit="30 Mb/s", progress=fail)
    assert not (tmp_path / "inbox" / "data.bin").exists()
    assert fw.put(data, inbox.ticket).bytes == 9_000_000


def test_cancel__keeps_data_for_the_same_call(tmp_path: Path) -> None:
    data = tmp_path / "data.bin"
    data.write_bytes(os.urandom(20_000_000))
    stop = threading.Event()
    with fw.serve(data, listen=HERE) as server:

        def report(now: fw.Progress) -> None:
            if now.bytes >= 8_000_000:
                stop.set()

        with pytest.raises(fw.TransferError, match="the transfer was stopped") as error:
            fw.get(server.ticket, tmp_path / "there", limit="60 Mb/s", progress=report, cancel=stop)
        assert error.value.transfer.files == 0
        assert not (tmp_path / "there" / "data.bin").exists()
        transfer = fw.get(server.ticket, tmp_path / "there")
    assert transfer.resumed_bytes >= 8_000_000
    assert (tmp_path / "there" / "data.bin").read_bytes() == data.read_bytes()


def test_cancel__ends_the_wait_for_a_server(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        here = free.getsockname()
    with fw.serve(tmp_path, listen=f"{here[0]}:{here[1]}") as server:
        ticket = server.ticket
    stop = threading.Event()
    stop.set()
    # The socket receives the datagrams and does not answer.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(here)
        with pytest.raises(fw.TransferError, match="the transfer was stopped"):
            fw.get(ticket, tmp_path / "there", cancel=stop)


def test_aget__is_cancelled_with_its_task(tmp_path: Path) -> None:
    data = tmp_path / "data.bin"
    data.write_bytes(os.urandom(20_000_000))

    async def cancelled(ticket: str) -> None:
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()

        def report(now: fw.Progress) -> None:
            assert asyncio.get_running_loop() is loop
            if now.bytes >= 8_000_000:
                begun.set()

        task = asyncio.create_task(fw.aget(ticket, tmp_path / "there", limit="60 Mb/s", progress=report))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with fw.serve(data, listen=HERE) as server:
        asyncio.run(cancelled(server.ticket))
        deadline = time.monotonic() + 120
        while not server.transfers()["is_over"].all() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.transfers()["is_over"].all()
        transfer = asyncio.run(fw.aget(server.ticket, tmp_path / "there"))
    assert transfer.resumed_bytes >= 8_000_000
    assert (tmp_path / "there" / "data.bin").read_bytes() == data.read_bytes()


def test_aget__many_run_at_once(tmp_path: Path, inbox: fw.Server) -> None:
    names = [f"{number}.bin" for number in range(12)]
    for name in names:
        (tmp_path / name).write_bytes(os.urandom(1000))

    async def all_of_them() -> list[fw.Transfer]:
        await fw.aput([tmp_path / name for name in names], inbox.ticket)
        return await asyncio.gather(*(fw.aget(inbox.ticket, tmp_path / name[:-4], [f"inbox/{name}"]) for name in names))

    assert [transfer.files for transfer in asyncio.run(all_of_them())] == [1] * 12
    assert all((tmp_path / name[:-4] / "inbox" / name).exists() for name in names)
    with pytest.raises(ValueError, match="ticket: not a ticket"):
        asyncio.run(fw.aget("nonsense", tmp_path))


def test_options__append_keeps_what_is_longer(tmp_path: Path, inbox: fw.Server) -> None:
    (tmp_path / "log").write_bytes(b"one\n")
    fw.put(tmp_path / "log", inbox.ticket)
    (tmp_path / "inbox" / "log").write_bytes(b"another\n")
    fw.put(tmp_path / "log", inbox.ticket, append=True, fuzzy=True)
    assert (tmp_path / "inbox" / "log").read_bytes() == b"another\n"
