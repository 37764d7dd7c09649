"""The command, started and ended, and a UDP path to a server that a measurement can watch and disturb."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Limit of every wait. A measurement that reaches it fails.
LIMIT_S = 120.0


class Failed(Exception):
    """The command did not do what it should; its last words."""


class Missing(Exception):
    """This system lacks what a measurement needs."""


class Home:
    """A user of the command, with a private state directory. Leaving the context ends all that was started."""

    def __init__(self, command: Path) -> None:
        self.command = command.resolve()
        self.directory = tempfile.TemporaryDirectory(prefix="fw-live-")
        self.place = Path(self.directory.name)
        self.running: list[Running] = []
        self.environment = {
            **os.environ,
            "XDG_STATE_HOME": str(self.place / "state"),
            "XDG_RUNTIME_DIR": str(self.place / "run"),
            "FAIRWAVE_DAEMON": str(self.place / "d.sock"),
        }
        for name in ("state", "run"):
            (self.place / name).mkdir(mode=0o700)

    def __enter__(self) -> Home:
        return self

    def __exit__(self, *_: object) -> None:
        for running in reversed(self.running):
            running.kill()
        self.directory.cleanup()

    def start(self, *words: str) -> Running:
        running = Running([str(self.command), *words], self.place, self.environment)
        self.running.append(running)
        return running

    def run(self, *words: str, status: int | None = 0) -> list[dict[str, Any]]:
        """Run it to its end, and give the objects that it printed."""
        running = self.start(*words)
        events = list(running.events())
        code = running.end()
        if status is not None and code != status:
            raise Failed(f"{' '.join(words[:2])}: status {code}: {running.last_words()}")
        return events

    def serve(self, *words: str) -> tuple[Running, str]:
        """Start a server, and give it with its ticket as a call names it."""
        running = self.start(*words)
        line = running.line()
        if line is None:
            raise Failed(f"{' '.join(words[:2])}: no ticket: {running.last_words()}")
        path = self.place / f"ticket-{running.child.pid}"
        path.write_text(line)
        return running, f"@{path}"


class Running:
    """A command under way."""

    def __init__(self, words: list[str], place: Path, environment: dict[str, str]) -> None:
        self.errors = tempfile.TemporaryFile("w+")
        self.child = subprocess.Popen(
            words,
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.errors,
        )
        self.rest = b""

    def line(self) -> str | None:
        """The next line, or None at the end."""
        assert self.child.stdout
        while b"\n" not in self.rest:
            if not select.select([self.child.stdout], [], [], LIMIT_S)[0]:
                raise Failed(f"no line for {LIMIT_S:.0f} s: {self.last_words()}")
            part = os.read(self.child.stdout.fileno(), 65536)
            if not part:
                return None
            self.rest += part
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode()

    def events(self) -> Iterator[dict[str, Any]]:
        while (line := self.line()) is not None:
            if line.startswith("{"):
                yield json.loads(line)

    def until(self, wanted: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """The first event of that kind."""
        for event in self.events():
            if wanted(event):
                return event
        raise Failed(f"it ended before: {self.last_words()}")

    def signal(self, number: int) -> None:
        self.child.send_signal(number)

    def end(self) -> int:
        try:
            return self.child.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"it does not end: {self.last_words()}") from None

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            self.child.kill()
        self.child.wait()
        if self.child.stdout:
            self.child.stdout.close()
        self.errors.close()

    def last_words(self) -> str:
        self.errors.seek(0)
        lines = self.errors.read().strip().splitlines()
        return lines[-1] if lines else "no output"


class UdpPath:
    """A UDP path of one client to a server: what a measurement wants to see or to change passes through here."""

    def __init__(self) -> None:
        self.near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.far = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for end in (self.near, self.far):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            end.bind(("127.0.0.1", 0))
        self.server = free_place()
        self.client: tuple[str, int] | None = None
        # Bytes of IP packets to the client, by slots of 100 ms.
        self.slots: dict[int, int] = {}
        # Called with each datagram to the client; what it returns is sent.
        self.to_client: Callable[[bytes], list[bytes]] = lambda datagram: [datagram]
        self.to_server: Callable[[bytes], list[bytes]] = lambda datagram: [datagram]
        self.is_over = False
        self.thread = threading.Thread(target=self._carry, daemon=True)
        self.thread.start()

    @property
    def words(self) -> list[str]:
        """How a server is reached by it."""
        host, port = self.near.getsockname()
        return ["--listen", self.server, "--advertise", f"{host}:{port}", "--carrier", "udp"]

    def _carry(self) -> None:
        host, port = self.server.rsplit(":", 1)
        while not self.is_over:
            for end in select.select([self.near, self.far], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):
                    datagram, sender = end.recvfrom(65536)
                    if end is self.near:
                        self.client = sender
                        for one in self.to_server(datagram):
                            self.far.sendto(one, (host, int(port)))
                    elif self.client:
                        slot = int(time.monotonic() * 10)
                        for one in self.to_client(datagram):
                            self.slots[slot] = self.slots.get(slot, 0) + len(one) + 28
                            self.near.sendto(one, self.client)

    def close(self) -> None:
        self.is_over = True
        self.thread.join()
        self.near.close()
        self.far.close()


@contextlib.contextmanager
def path() -> Iterator[UdpPath]:
    one = UdpPath()
    try:
        yield one
    finally:
        one.close()


def free_place() -> str:
    """An address at which nothing listens, below the ports that the system chooses from for connections."""
    for port in range(10_000 + os.getpid() % 10_000, 32_000):
        with socket.socket() as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            try:
                tcp.bind(("127.0.0.1", port))
                udp.bind(("127.0.0.1", port))
            except OSError:
                continue
            if port not in _given:
                _given.add(port)
                return f"127.0.0.1:{port}"
    raise Missing("no port is free")


_given: set[int] = set()


def needs_root() -> None:
    if os.geteuid() != 0:
        raise Missing("it needs root")


@contextlib.contextmanager
def stopped(running: Running, seconds: float) -> Iterator[None]:
    """Stop a process for some seconds; the caller goes on when it does."""
    running.signal(signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        running.signal(signal.SIGCONT)
    yield
