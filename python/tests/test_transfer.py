"""Files over the loopback device."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import fairwave as fw

HERE = "127.0.0.1:0"


def test_get__brings_a_tree(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "below").mkdir(parents=True)
    (tree / "empty").touch()
    (tree / "below" / "large").write_bytes(os.urandom(9_000_001))
    (tree / "link").symlink_to("below/large")
    os.mkfifo(tree / "pipe")
    with fw.serve([tree], listen=HERE) as server:
        transfer = fw.get(server.ticket, tmp_path / "there")
        again = fw.get(server.ticket, tmp_path / "there")
        assert list(server.transfers()["direction"]) == ["get", "get"]
    there = tmp_path / "there" / "tree"
    assert (
        hashlib.sha256((there / "below" / "large").read_bytes()).digest()
        == hashlib.sha256((tree / "below" / "large").read_bytes()).digest()
    )
    assert (there / "empty").stat().st_size == 0
    assert (there / "link").readlink() == Path("below/large")
    assert (transfer.files, transfer.bytes, transfer.resumed_bytes) == (2, 9_000_001, 0)
    assert list(transfer.skipped["path"]) == ["tree/pipe"]
    assert transfer.failed.empty
    assert again.resumed_bytes == 9_000_001


def test_get__takes_names_and_hashes_a_single_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a" * 10)
    (tmp_path / "b").write_bytes(b"b" * 20)
    with fw.serve([tmp_path / "a", tmp_path / "b"], listen=HERE) as server:
        transfer = fw.get(server.ticket, tmp_path / "there", ["b"])
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["b"]
    assert (transfer.files, transfer.bytes) == (1, 20)
    assert transfer.blake3 is not None
    assert len(transfer.blake3) == 64


def test_get__goes_on_when_the_server_comes_back(tmp_path: Path) -> None:
    data = tmp_path / "data.bin"
    data.write_bytes(os.urandom(12_000_000))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        here = f"127.0.0.1:{free.getsockname()[1]}"
    first = fw.serve([data], listen=here)
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(fw.get, first.ticket, tmp_path / "there", limit="30 Mb/s")
        lasting = pool.submit(fw.get, first.ticket, tmp_path / "elsewhere", limit="30 Mb/s", retry="0 s")
        while first.transfers()["bytes"].sum() < 4_000_000:
            assert not slow.done()
            time.sleep(0.01)
        first.close()
        with pytest.raises(fw.TransferError, match="the peer shut down"):
            lasting.result()
        with fw.serve([data], listen=here):
            transfer = slow.result()
    assert (tmp_path / "there" / "data.bin").read_bytes() == data.read_bytes()
    assert (transfer.bytes, transfer.resumed_bytes) == (12_000_000, 0)


def test_why__tells_what_holds_a_session_and_its_path(tmp_path: Path) -> None:
    data = tmp_path / "data.bin"
    data.write_bytes(os.urandom(2_000_000))
    with fw.serve([data], listen=HERE) as server, ThreadPoolExecutor() as pool:
        assert server.why().empty
        columns = list(server.why().columns)
        # Slow enough for any machine: nothing but the limit holds it.
        slow = pool.submit(fw.get, server.ticket, tmp_path / "there", limit="4 Mb/s")
        facts: dict[Any, Any] = {}
        # A rate is known after the first samples.
        while facts.get("limited_by") != "peer node" or not facts["delivery_rate_bps"] > 0:
            assert not slow.done(), facts
            facts = next(iter(server.why().to_dict("records")), {})
            time.sleep(0.01)
        assert slow.result().bytes == 2_000_000
    assert list(facts) == columns
    assert (facts["direction"], facts["carrier"]) == ("get", "udp")
    assert facts["because"]
    assert 0 < facts["least_rtt_s"] <= facts["rtt_s"]
    assert facts["loss_share"] == 0
    assert facts["delivery_rate_bps"] > 0


def test_serve__listens_at_the_usual_port_where_none_is_said(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        with contextlib.suppress(OSError):
            # If somebody else has it, that does as well.
            other.bind(("127.0.0.1", 8642))
        with pytest.raises(OSError, match="8642"):
            fw.serve([tmp_path], listen="127.0.0.1")
    with pytest.raises(ValueError, match=r'listen: "here" is not an address: use the form 192\.0\.2\.7, '):
        fw.serve([tmp_path], listen="here")


def test_get__says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ticket: not a ticket: it must start with"):
        fw.get("nonsense", tmp_path)
    with pytest.raises(ValueError, match=r"paths: .*no-such-thing"):
        fw.serve([tmp_path / "no-such-thing"], listen=HERE)
    with fw.serve([tmp_path], listen=HERE) as server:
        with pytest.raises(ValueError, match="limit"):
            fw.get(server.ticket, tmp_path, limit="3 parsecs")
        with pytest.raises(ValueError, match="retry"):
            fw.get(server.ticket, tmp_path, retry="soon")
        with pytest.raises(ValueError, match="path: "):
            fw.get(server.ticket, tmp_path, path="mine")  # type: ignore[arg-type]
        ticket = server.ticket
        assert ticket not in repr(server)
    with pytest.raises(OSError, match="no reply"):
        fw.get(ticket, tmp_path)


def test_get__keeps_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(os.urandom(2_000_000))
    with fw.serve([tmp_path / "a"], listen=HERE, capacity="1 Gb/s", path="dedicated") as server:
        transfer = fw.get(
            server.ticket, tmp_path / "there", limit="100 Mb/s", capacity="1 Gb/s", path="dedicated", plain=False
        )
    assert transfer.bytes == 2_000_000


def test_rule__is_taken_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(os.urandom(500_000))
    with fw.serve(tmp_path / "a", listen=HERE, capacity="1 Gb/s", rule="abr-hou") as server:
        transfer = fw.get(server.ticket, tmp_path / "there", capacity="1 Gb/s", rule="abr-charny")
        assert transfer.bytes == 500_000
        with pytest.raises(
            ValueError, match='rule: "cubic" is not a node rule\nhint: use one of gtp, gtp-printed, abr-'
        ):
            fw.get(server.ticket, tmp_path, rule="cubic")
    with pytest.raises(ValueError, match='rule: "gpt" is not a node rule'):
        fw.serve(tmp_path / "a", listen=HERE, rule="gpt")


def test_serve__takes_a_single_path(tmp_path: Path) -> None:
    (tmp_path / "big.bin").write_bytes(b"a" * 10)
    paths: list[Path | str] = [tmp_path / "big.bin", str(tmp_path / "big.bin")]
    for number, path in enumerate(paths):
        with fw.serve(path, listen=HERE) as server:
            transfer = fw.get(server.ticket, tmp_path / str(number))
        assert (transfer.files, transfer.bytes) == (1, 10)


def test_serve__hands_out_the_ticket_of_the_last_time(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        here = f"127.0.0.1:{free.getsockname()[1]}"

    def ticket(*, once: bool = False, expires_s: float | None = None) -> str:
        with fw.serve(tmp_path, listen=here, once=once, expires_s=expires_s) as server:
            return server.ticket

    first = ticket()
    assert ticket() == first
    day = ticket(expires_s=24 * 3600)
    assert day != first
    once = ticket(once=True)
    assert once not in (first, day)
    assert ticket() in (first, day)
    lasting = ticket(expires_s=math.inf)
    # The one that is good for longest.
    assert ticket() == lasting
    for wrong in (0, -1, math.nan):
        with pytest.raises(ValueError, match="expires_s"):
            ticket(expires_s=wrong)


def test_serve__a_writable_place_only_takes(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "of-another").write_bytes(b"secret")
    with (
        fw.serve(inbox, writable=True, listen=HERE) as server,
        pytest.raises(OSError, match="it accepts uploads only"),
    ):
        fw.get(server.ticket, tmp_path / "there")
    with fw.serve(inbox, writable=True, readable=True, listen=HERE) as server:
        assert fw.get(server.ticket, tmp_path / "there").files == 1
    with pytest.raises(ValueError, match="readable: requires writable"):
        fw.serve(inbox, readable=True, listen=HERE)


def test_get__links_that_lead_out_fail_unless_they_are_kept(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "absolute").symlink_to("/etc/hostname")
    with fw.serve(tree, listen=HERE) as server:
        transfer = fw.get(server.ticket, tmp_path / "there")
        assert list(transfer.failed["path"]) == ["tree/absolute"]
        assert fw.get(server.ticket, tmp_path / "there", links=True).failed.empty
    assert (tmp_path / "there" / "tree" / "absolute").readlink() == Path("/etc/hostname")


def test_transfers__count_what_a_visitor_was_given(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(os.urandom(15_000_000))
    (tmp_path / "b").write_bytes(b"b" * 20)
    with fw.serve([tmp_path / "a", tmp_path / "b"], listen=HERE) as server:
        fw.get(server.ticket, tmp_path / "one", ["a"])
        deadline = time.monotonic() + 120
        while not server.transfers()["is_over"].all() and time.monotonic() < deadline:
            time.sleep(0.01)
        row = server.transfers().iloc[-1]
    assert (row["files"], row["bytes"]) == (1, 15_000_000)
