"""The measurements. Each number has a range that it must lie in, and the source of that range."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from side_by_side.network import veth
from side_by_side.tools import Plan, run_fairwave

from .programs import LIMIT_S, Failed, Home, Missing, Running, needs_root, path, stopped

# A random content is neither compressed nor full of holes.
CHANCE = random.Random(1)


@dataclasses.dataclass
class Value:
    """One number of a run, and the range that it has to lie in."""

    name: str
    value: float
    unit: str
    least: float
    most: float
    source: str

    @property
    def is_in_range(self) -> bool:
        return self.least <= self.value <= self.most


ANY = float("inf")
Measure = Callable[[Path], list[Value]]
MEASUREMENTS: dict[str, Measure] = {}
# Those that take a minute or longer: `--long` runs them.
LONG: set[str] = set()


def measurement(name: str, is_long: bool = False) -> Callable[[Measure], Measure]:
    def add(measure: Measure) -> Measure:
        MEASUREMENTS[name] = measure
        if is_long:
            LONG.add(name)
        return measure

    return add


# --- the testbed


class Busy(Exception):
    """The command itself found that the machine was too busy."""


def testbed(command: Path, *words: str) -> dict[str, Any]:
    with Home(command) as home:
        lines = home.run("testbed", "run", "--json", "--quiet", *words, status=None)
        if not lines:
            said = home.running[-1].last_words()
            raise (Missing if "namespace" in said else Failed)(said)
        run = lines[-1]
        if "skipped" in run:
            raise Busy(f"{run['skipped']}: {run['because']}")
        return run


@measurement("testbed: one session ramps up to its node")
def one_session(command: Path) -> list[Value]:
    run = testbed(command, "002-fig-ix-5", "--set", "runs=1", "--scale", "0.125", "--duration", "12 s")
    # An eighth of 700 Mb/s.
    rate = run["sessions"][0]["final_wire_rate_bps"] / 1e6
    values = [Value("final rate", rate, "Mb/s", 87.5 * 0.97, 87.5 * 1.03, "papers/002/wire.toml: 700 Mb/s, 3 %")]
    if run["times_are_good"]:
        # A session that starts with its share has it after 0.1 s. Only scenarios that ask for a fair start have one.
        at_s = run["metrics"]["converged_s"]
        values.append(Value("converged", ANY if at_s is None else at_s, "s", 0.3, ANY, "no fair start"))
    return values


def shares(run: dict[str, Any], share_bps: float, tolerance: float, source: str) -> list[Value]:
    rates = [session["final_wire_rate_bps"] for session in run["sessions"]]
    furthest = max(rates, key=lambda rate: abs(rate - share_bps))
    least, most = share_bps * (1 - tolerance) / 1e6, share_bps * (1 + tolerance) / 1e6
    return [
        Value("the furthest from its share", furthest / 1e6, "Mb/s", least, most, source),
        Value("Jain's index", run["metrics"]["jain"], "", 0.99, 1.0, source),
    ]


def utilisation(run: dict[str, Any]) -> Value:
    link = next(link for link in run["links"] if link["name"] == "d1:in")
    return Value("utilisation of the sink", link["utilisation"], "", 0.9, 1.0, "max-min share")


@measurement("testbed: five sources share a sink whatever their RTTs")
def five_rtts(command: Path) -> list[Value]:
    run = testbed(command, "002-fig-ix-8", "--scale", "0.25", "--duration", "9 s")
    # A quarter of 700 Mb/s, for five. A session that looks for its least RTT in the last second has less in that.
    return [*shares(run, 35e6, 0.05, "papers/002/wire.toml: 140 Mb/s each"), utilisation(run)]


@measurement("testbed: five to one under GTP")
def five_gtp(command: Path) -> list[Value]:
    return five_to_one(command, "gtp")


@measurement("testbed: five to one under Tally")
def five_tally(command: Path) -> list[Value]:
    return five_to_one(command, "tally")


def five_to_one(command: Path, scheme: str) -> list[Value]:
    run = testbed(command, "five-to-one", "--scheme", scheme, "--scale", "0.2", "--duration", "6 s")
    # A fifth of 500 Mb/s, for five.
    return shares(run, 20e6, 0.05, "max-min share")


@measurement("testbed: CUBIC of the kernel fills a sink")
def kernel_cubic(command: Path) -> list[Value]:
    run = testbed(command, "five-to-one", "--scheme", "kernel:cubic", "--scale", "0.2", "--duration", "5 s")
    total = run["metrics"]["total_bps"] / 1e6
    return [Value("all together", total, "Mb/s", 90, 110, "the node's capacity, 100 Mb/s")]


@measurement("relay: lateness and load")
def relay(command: Path) -> list[Value]:
    with Home(command) as home:
        lines = home.run("testbed", "emulate", "--json", status=None)
        if not lines:
            said = home.running[-1].last_words()
            raise (Missing if "namespace" in said else Failed)(said)
        one, twenty = lines[-1]["one_flow"], lines[-1]["twenty_flows"]
    source = "crates/testbed/src/calibration.rs"
    return [
        Value("late, half of the packets of one flow", one["late_half_us"], "us", 0, 100, source),
        Value("late, 99 % of them", one["late_p99_us"], "us", 0, 1000, source),
        Value("carried of twenty flows", twenty["carried_bps"] / 1e9, "Gb/s", 1.5, ANY, source),
        Value("overflows", one["overflows"] + twenty["overflows"], "packets", 0, 0, source),
    ]


# --- bench


def bench(command: Path, server: list[str], client: list[str]) -> dict[str, Any]:
    with Home(command) as home:
        _, ticket = home.serve("bench", "serve", "--listen", "127.0.0.1:0", *server)
        return home.run("bench", ticket, "--json", *client)[-1]


DEDICATED = ["--path", "dedicated", "--capacity"]


@measurement("bench: memory to memory over loopback")
def loopback(command: Path) -> list[Value]:
    words = [*DEDICATED, "100 Gb/s"]
    done = bench(command, words, [*words, "--time", "3 s"])
    return [Value("goodput", done["goodput_bps"] / 1e9, "Gb/s", 5, ANY, "ours, on two cores")]


@measurement("bench: memory to memory over a veth pair of 1500 bytes")
def over_veth(command: Path) -> list[Value]:
    needs_root()
    with veth(1500, True) as (source, sink):
        outcome = run_fairwave()(Plan(source, sink, "10.66.1.1", 4, program=command.resolve()))
    goodput = outcome.goodput_bps / 1e9
    return [Value("goodput", goodput, "Gb/s", 10, ANY, "half of the results page")]


@measurement("bench: each way keeps to its limit")
def limits(command: Path) -> list[Value]:
    values = []
    for direction in ("send", "receive", "both"):
        for name, words in {"dedicated": [*DEDICATED, "500 Mb/s"], "shared": []}.items():
            done = bench(command, words, [*words, "--time", "2 s", "--limit", "20 Mb/s", "--direction", direction])
            for flow in done["sessions"]:
                label = f"{direction}, {flow['direction']}, {name}"
                values.append(Value(label, flow["wire_bps"] / 1e6, "Mb/s", 2, 20.4, "--limit 20 Mb/s, and 2 %"))
    return values


@measurement("bench: sessions that no capacity limits share what a process can do")
def many_sessions(command: Path) -> list[Value]:
    values = []
    for count in (2, 10, 50):
        done = bench(command, [], ["--time", "4 s", "--sessions", str(count)])
        values.append(Value(f"Jain's index of {count}", done["jain"], "", 0.9, 1.0, "ours"))
    return values


@measurement("bench: 200 sessions open and live beside those that take all")
def open_many(command: Path) -> list[Value]:
    words = [*DEDICATED, "5 Gb/s"]
    begin = time.monotonic()
    done = bench(command, words, [*words, "--time", "3 s", "--sessions", "200"])
    opening_s = time.monotonic() - begin - done["wall_s"]
    least = min(session["bytes"] for session in done["sessions"])
    return [
        Value("all were open after", opening_s, "s", 0, 30, "ours"),
        Value("the least that one moved", least, "bytes", 1, ANY, "ours"),
    ]


@measurement("bench: UDP is blocked: one wait, and not one a session")
def blocked_bench(command: Path) -> list[Value]:
    with Home(command) as home, blocked() as words:
        _, ticket = home.serve("bench", "serve", *words)
        begin = time.monotonic()
        call = ["--sessions", "8", "--time", "500 ms", "--limit", "2 Mb/s", "--json"]
        done = home.run("bench", ticket, *call)[-1]
        took = time.monotonic() - begin
    if done["carrier"] != "tcp":
        raise Failed(f"it went over {done['carrier']}")
    return [Value("took", took, "s", 2.5, 10, "2 s of waiting, once")]


# --- attacks on a session


@measurement("forged packets cost no more than themselves (--plain)")
def forged(command: Path) -> list[Value]:
    def rate(forgeries: bool) -> float:
        is_over = threading.Event()
        with path() as one, Home(command) as home:
            seen: list[bytes] = []

            def keep(datagram: bytes) -> list[bytes]:
                seen[:] = [datagram]
                return [datagram]

            def forge() -> None:
                while not is_over.wait(0.001):
                    if seen and one.client:
                        with contextlib.suppress(OSError):
                            one.near.sendto(seen[0][:-1] + bytes([seen[0][-1] ^ 1]), one.client)

            one.to_client = keep
            words = [*DEDICATED, "40 Mb/s", "--plain"]
            _, ticket = home.serve("bench", "serve", *one.words, *words)
            thread = threading.Thread(target=forge, daemon=True)
            if forgeries:
                thread.start()
            try:
                call = ["--direction", "receive", "--time", "2 s", "--json", *words]
                return float(home.run("bench", ticket, *call)[-1]["goodput_bps"])
            finally:
                is_over.set()

    best = {forgeries: max(rate(forgeries) for _ in range(2)) for forgeries in (False, True)}
    return [Value("rate beside 1000 a second, over the rate alone", best[True] / best[False], "", 0.8, ANY, "ours")]


@measurement("replayed packets count for nothing")
def replayed(command: Path) -> list[Value]:
    with path() as one, Home(command) as home:
        one.to_client = lambda datagram: [datagram] * 5
        words = [*DEDICATED, "20 Mb/s"]
        _, ticket = home.serve("bench", "serve", *one.words, *words)
        client = home.start("bench", ticket, "--direction", "receive", "--time", "4 s", "--json", *words)
        time.sleep(2.5)
        status = home.run("status", "--json")[-1]
        mine = next(process for process in status["processes"] if process["command"] == "bench")
        measured = max(session["measured_bps"] or 0 for session in mine["sessions"])
        client.until(lambda event: event["event"] == "done")
    return [
        Value("measured at the sink, each packet five times", measured / 1e6, "Mb/s", 10, 22, "capacity 20 Mb/s, 10 %")
    ]


@measurement("a flood of hellos slows no transfer")
def flood(command: Path) -> list[Value]:
    values = []
    for kind in ("without a cookie", "with a wrong MAC"):
        is_over = threading.Event()
        with path() as one, Home(command) as home:
            hellos: list[bytes] = []

            def keep(datagram: bytes, hellos: list[bytes] = hellos) -> list[bytes]:
                # The first datagram of a client is its hello.
                hellos[:] = hellos or [datagram]
                return [datagram]

            def send(hellos: list[bytes] = hellos, is_over: threading.Event = is_over, kind: str = kind) -> None:
                hello = hellos[0] if kind == "without a cookie" else hellos[0][:-1] + bytes([hellos[0][-1] ^ 1])
                host, port = one.server.rsplit(":", 1)
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flooder:
                    begin, sent = time.monotonic(), 0
                    while not is_over.is_set():
                        for _ in range(sent, int(10_000 * (time.monotonic() - begin))):
                            with contextlib.suppress(OSError):
                                flooder.sendto(hello, (host, int(port)))
                            sent += 1
                        time.sleep(0.001)

            one.to_server = keep
            words = [*DEDICATED, "20 Mb/s"]
            _, ticket = home.serve("bench", "serve", *one.words, *words)
            client = home.start("bench", ticket, "--direction", "receive", "--time", "6 s", "--json", *words)
            rates: list[float] = []
            thread = threading.Thread(target=send, daemon=True)
            try:
                for event in client.events():
                    if event["event"] == "progress":
                        rates.append(event["receive_goodput_bps"])
                        if len(rates) == 3:
                            thread.start()
            finally:
                is_over.set()
        # The first second opens the session, the fourth has the beginning of the flood.
        quotient = min(rates[4:]) / max(rates[1:3])
        values.append(Value(f"rate beside 10 000 a second {kind}, over before", quotient, "", 0.95, ANY, "ours"))
    return values


# --- stops


def burst_after_a_stop(command: Path, stops: str, seconds: float) -> tuple[dict[int, int], int]:
    """The slots of 100 ms of a path to a taker, and the slot in which a stopped end went on."""
    with path() as one, Home(command) as home:
        words = [*DEDICATED, "40 Mb/s"]
        giver, ticket = home.serve("bench", "serve", *one.words, *words)
        taker = home.start("bench", ticket, "--direction", "receive", "--time", f"{seconds + 6:g} s", "--json", *words)
        taker.until(lambda event: event["event"] == "progress")
        with stopped(giver if stops == "giver" else taker, seconds):
            at = int(time.monotonic() * 10)
            time.sleep(2)
        return dict(one.slots), at


@measurement("an end that was stopped for 3 s sends no burst")
def stop(command: Path) -> list[Value]:
    values = []
    for who in ("giver", "taker"):
        slots, _ = burst_after_a_stop(command, who, 3)
        # 40 Mb/s are 500 kB in 100 ms.
        most = max(slots.values()) / 1e3
        values.append(Value(f"most in 100 ms, {who} stopped", most, "kB", 100, 1000, "twice the capacity"))
    return values


@measurement("an end that was stopped for 33 s finds its session over", is_long=True)
def long_stop(command: Path) -> list[Value]:
    slots, at = burst_after_a_stop(command, "giver", 33)
    after = sum(size for slot, size in slots.items() if at <= slot < at + 10) / 1e3
    return [Value("sent in the second after", after, "kB", 0, 20, "a session ends after 30 s of silence")]


@measurement("--limit holds after a stall")
def limit_after_a_stall(command: Path) -> list[Value]:
    values = []
    for verb in ("get", "put"):
        with Home(command) as home:
            (home.place / "big.bin").write_bytes(CHANCE.randbytes(30_000_000))
            (home.place / "in").mkdir()
            offer = ["big.bin"] if verb == "get" else ["in", "--writable"]
            serve, ticket = home.serve("serve", *offer, "--listen", "127.0.0.1:0")
            words = [ticket, "to"] if verb == "get" else ["big.bin", ticket]
            client = home.start(verb, *words, "--json", "--limit", "30 Mb/s")
            client.until(lambda event: came(event) > 3_000_000)
            with stopped(serve, 2):
                rates = rates_of(client)
        values.append(Value(f"{verb}: most in a second", max(rates), "Mb/s", 15, 36, "--limit 30 Mb/s, and 20 %"))
    return values


def came(event: dict[str, Any]) -> int:
    return int(event.get("bytes_done") or 0) + int(event.get("bytes_held") or 0)


def rates_of(client: Running, span_s: float = 1.0) -> list[float]:
    """Rates of a transfer over spans of a second, until it ends."""
    moments = [(event["elapsed_s"], came(event)) for event in client.events() if event["event"] == "progress"]
    rates = []
    for at, (begin_s, begin) in enumerate(moments):
        end = next(((end_s, end) for end_s, end in moments[at:] if end_s - begin_s >= span_s), None)
        if end:
            rates.append(8 * (end[1] - begin) / (end[0] - begin_s) / 1e6)
    return rates or [0.0]


# --- a daemon


def start_daemon(home: Home, capacity: str) -> Running:
    daemon = home.start("daemon", "--capacity", capacity, "--quiet")
    wait_for("a daemon", lambda: (home.place / "d.sock").exists() and "node" in home.run("status", "--json")[-1])
    return daemon


def wait_for(what: str, holds: Callable[[], Any]) -> float:
    """Seconds until something holds."""
    begin = time.monotonic()
    while not holds():
        if time.monotonic() - begin > LIMIT_S:
            raise Failed(f"{what}: not within {LIMIT_S:.0f} s")
        time.sleep(0.05)
    return time.monotonic() - begin


def grants(home: Home) -> list[float]:
    """Grants of a daemon to the sinks that carry a load, Mb/s."""
    sessions = home.run("status", "--json")[-1]["sessions"]
    loaded = [one for one in sessions if one["receives"] and one["command"] == "bench" and one["measured_bps"] > 1e5]
    return sorted(one["expected_bps"] / 1e6 for one in loaded)


def share_of_daemon(command: Path, rule: str) -> list[Value]:
    capacity, values = 24.0, []

    def settled(home: Home, count: int, what: str) -> None:
        fair = capacity / count

        def is_shared() -> bool:
            found = grants(home)
            return len(found) == count and all(abs(one - fair) <= 0.03 * fair for one in found)

        values.append(Value(what, wait_for(what, is_shared), "s", 0, 60, f"each within 3 % of {fair:g} Mb/s"))

    with Home(command) as home:
        daemon = start_daemon(home, f"{capacity:g} Mb/s")
        tickets = [
            home.serve("bench", "serve", "--listen", "127.0.0.1:0", "--rule", rule, "--quiet")[1] for _ in range(2)
        ]

        def fetch(server: int) -> Running:
            words = ["--direction", "receive", "--time", "3600 s", "--rule", rule, "--quiet"]
            return home.start("bench", tickets[server], *words)

        clients = [fetch(server) for server in (0, 0, 1)]
        settled(home, 3, "three share after")
        clients.pop().kill()
        home.running.pop()
        settled(home, 2, "two share after one was killed")
        daemon.kill()
        time.sleep(3)
        status = home.run("status", "--json")[-1]
        left = [
            session["expected_bps"]
            for process in status["processes"]
            if process["command"] == "bench"
            for session in process["sessions"]
            if session["expected_bps"]
        ]
        most = capacity * 1.02
        values.append(
            Value(
                "all together without a daemon",
                sum(left) / 1e6,
                "Mb/s",
                0.8 * capacity,
                most,
                "the last grants, and 2 %",
            )
        )
        start_daemon(home, f"{capacity:g} Mb/s")
        settled(home, 2, "two share after a new daemon")
    return values


@measurement("a daemon shares between processes of GTP")
def daemon_gtp(command: Path) -> list[Value]:
    return share_of_daemon(command, "gtp")


@measurement("a daemon shares between processes of Tally")
def daemon_tally(command: Path) -> list[Value]:
    return share_of_daemon(command, "tally")


# --- how long commands take


@contextlib.contextmanager
def blocked() -> Iterator[list[str]]:
    """A place in front of a server that lets TCP through and swallows UDP: how the server is started."""
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(tcp.getsockname())
        server = stack.enter_context(path()).server
        host, port = server.rsplit(":", 1)

        def carry(near: socket.socket, far: socket.socket) -> None:
            with contextlib.suppress(OSError):
                while part := near.recv(65536):
                    far.sendall(part)
            with contextlib.suppress(OSError):
                far.shutdown(socket.SHUT_WR)

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    near, _ = tcp.accept()
                    far = socket.create_connection((host, int(port)))
                    for one, other in ((near, far), (far, near)):
                        threading.Thread(target=carry, args=(one, other), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        at, number = tcp.getsockname()
        yield ["--listen", server, "--advertise", f"{at}:{number}"]


@measurement("get: where UDP is blocked the first byte comes over TCP")
def blocked_get(command: Path) -> list[Value]:
    with Home(command) as home, blocked() as words:
        (home.place / "small.bin").write_bytes(b"the first byte, and some more")
        _, ticket = home.serve("serve", "small.bin", *words)
        begin = time.monotonic()
        done = home.run("get", ticket, "to", "--json")[-1]
        took = time.monotonic() - begin
    if done["carrier"] != "tcp":
        raise Failed(f"it went over {done['carrier']}")
    return [Value("took", took, "s", 0, 6, "ours")]


@measurement("get: no answer is reported")
def no_answer(command: Path) -> list[Value]:
    with Home(command) as home:
        (home.place / "a.txt").write_bytes(b"hello")
        serve, ticket = home.serve("serve", "a.txt", "--listen", "127.0.0.1:0")
        serve.kill()
        home.running.remove(serve)
        begin = time.monotonic()
        home.run("get", ticket, "to", status=None)
        took = time.monotonic() - begin
    return [Value("took", took, "s", 0, 20, "ours")]


@contextlib.contextmanager
def slow_get(command: Path) -> Iterator[tuple[Home, Running, Running]]:
    """A get that takes minutes, and its server."""
    with Home(command) as home:
        (home.place / "big.bin").write_bytes(CHANCE.randbytes(60_000_000))
        serve, ticket = home.serve("serve", "big.bin", "--listen", "127.0.0.1:0")
        get = home.start("get", ticket, "to", "--json", "--limit", "8 Mb/s")
        get.until(lambda event: came(event) > 100_000)
        yield home, serve, get


@measurement("serve: a ticket that is revoked ends what goes on with it")
def revocation(command: Path) -> list[Value]:
    with slow_get(command) as (home, _, get):
        ticket = home.run("serve", "--tickets", "--json")[0]["id"]
        begin = time.monotonic()
        home.run("serve", "--revoke", ticket)
        get.until(lambda event: event["event"] == "failed")
        took = time.monotonic() - begin
    return [Value("took", took, "s", 0, 2, "SECURITY.md: within two seconds")]


@measurement("get: an interrupt ends a transfer, also one that waits for its server")
def interrupt(command: Path) -> list[Value]:
    values = []
    for waits in (False, True):
        with slow_get(command) as (_, serve, get):
            if waits:
                serve.signal(signal.SIGINT)
                get.until(lambda event: event["event"] == "retry" and event["attempt"] == 2)
            begin = time.monotonic()
            get.signal(signal.SIGINT)
            get.until(lambda event: event["event"] == "stopped")
            get.end()
            took = time.monotonic() - begin
        values.append(Value("took while it waits" if waits else "took", took, "s", 0, 5 if waits else 2, "ours"))
    return values


@measurement("get: a limit of 16 Mb/s is used and kept to")
def limit(command: Path) -> list[Value]:
    with Home(command) as home:
        (home.place / "big.bin").write_bytes(CHANCE.randbytes(10_000_000))
        _, ticket = home.serve("serve", "big.bin", "--listen", "127.0.0.1:0")
        rates = rates_of(home.start("get", ticket, "to", "--json", "--limit", "16 Mb/s"))
    return [
        Value("least in a second", min(rates[1:] or rates), "Mb/s", 8, 16.8, "--limit 16 Mb/s"),
        Value("most in a second", max(rates), "Mb/s", 8, 24, "--limit 16 Mb/s"),
    ]
