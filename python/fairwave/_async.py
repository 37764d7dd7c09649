"""Transfers for asyncio: each runs in its thread, and stops when its task is cancelled."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Unpack

from fairwave._command import copy
from fairwave._options import Durable, TransferOptions
from fairwave._transfer import Progress, Transfer, get, put


async def aget(
    ticket: str,
    destination: str | os.PathLike[str] = ".",
    names: Iterable[str] = (),
    *,
    rename: str | None = None,
    durable: Durable = "group",
    progress: Callable[[Progress], object] | None = None,
    **options: Unpack[TransferOptions],
) -> Transfer:
    """Download files as `get` does, in an asyncio task.

    Cancelling the task stops the transfer, and waits until received data is kept: the same call resumes. ``progress``
    is called in the event loop.
    """
    return await _in_thread(
        lambda report, stop: get(
            ticket, destination, names, rename=rename, durable=durable, progress=report, cancel=stop, **options
        ),
        progress,
    )


async def aput(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    ticket: str,
    *,
    progress: Callable[[Progress], object] | None = None,
    **options: Unpack[TransferOptions],
) -> Transfer:
    """Upload files as `put` does, in an asyncio task; see `aget`."""
    return await _in_thread(lambda report, stop: put(paths, ticket, progress=report, cancel=stop, **options), progress)


async def acopy(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    destination: str | os.PathLike[str],
    *,
    port: str | None = None,
    ssh: str | None = None,
    remote_command: str | None = None,
    command: str = "fairwave",
    durable: Durable = "group",
    progress: Callable[[Progress], object] | None = None,
    **options: Unpack[TransferOptions],
) -> Transfer:
    """Copy files as `copy` does, in an asyncio task; see `aget`."""
    return await _in_thread(
        lambda report, stop: copy(
            sources,
            destination,
            port=port,
            ssh=ssh,
            remote_command=remote_command,
            command=command,
            durable=durable,
            progress=report,
            cancel=stop,
            **options,
        ),
        progress,
    )


_Report = Callable[[Progress], object]


async def _in_thread(call: Callable[[_Report | None, threading.Event], Transfer], progress: _Report | None) -> Transfer:
    loop, stop = asyncio.get_running_loop(), threading.Event()
    report = None if progress is None else lambda now: loop.call_soon_threadsafe(progress, now)
    # The loop's own threads are few, and a transfer may take hours.
    pool = ThreadPoolExecutor(1, "fairwave")
    transfer = loop.run_in_executor(pool, call, report, stop)
    pool.shutdown(wait=False)
    try:
        return await asyncio.shield(transfer)
    except asyncio.CancelledError:
        stop.set()
        # Its result is of no use, and neither is its error.
        transfer.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait([transfer])
        raise
