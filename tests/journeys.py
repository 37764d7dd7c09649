"""Five journeys of users between namespaces of this machine, each from an empty home: `make journeys`.

1. install    cp to a host where nothing is installed
2. sftp       cp to a host that allows only sftp
3. between    cp from one host to another, from a third, with a direct way and without
4. workflow   a Snakemake rule with remote input
5. users      three users on one node: serve and get, cp, and a web server behind a bridge

Each transfer but that of the workflow is killed once in its middle and repeated; trees are compared. Needs root and
OpenSSH; a journey whose tool is missing is left out. Exit status 1 if one fails.
"""

from __future__ import annotations

import argparse
import contextlib
import filecmp
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from side_by_side.network import Failed, ip, spaces

PORT = 2222
LIMIT_S = 300.0
# Killed in its middle, a transfer at this rate has moved a part and not all.
SLOW = "150 Mb/s"
TREE_MB = 60
# The node of the three users, and the time over which their rates are counted.
CAPACITY, WINDOW_S = "24 Mb/s", 10.0
USERS = {"ann": 20001, "ben": 20002, "cai": 20003}


class MissingError(Exception):
    """This system lacks what a journey needs."""


class World:
    """Hosts in namespaces, each with an sshd and an empty home, and cables between them."""

    def __init__(self, stack: contextlib.ExitStack, command: Path, cables: list[str]) -> None:
        """Cables are pairs of hosts."""
        self.place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="journeys-")))
        self.place.chmod(0o755)
        self.command, self.stack = command.resolve(), stack
        self.running: list[subprocess.Popen[bytes]] = []
        stack.callback(self.stop)
        names = sorted(set("".join(cables)))
        self.spaces = dict(zip(names, stack.enter_context(spaces(len(names))), strict=True))
        self.addresses: dict[str, str] = {}
        for number, cable in enumerate(cables):
            one, other = cable[0], cable[1]
            ip(
                *("-n", self.spaces[one], "link", "add", f"to-{other}", "type", "veth"),
                *("peer", "name", f"to-{one}", "netns", self.spaces[other]),
            )
            for last, (host, peer) in enumerate([(one, other), (other, one)], start=1):
                address = f"10.77.{number}.{last}"
                ip("-n", self.spaces[host], "address", "add", f"{address}/24", "dev", f"to-{peer}")
                ip("-n", self.spaces[host], "link", "set", f"to-{peer}", "up")
                self.addresses[host + peer] = address
        for name in names:
            self.home(name).mkdir()
        keys = [self.place / name for name in ("host-key", "user-key")]
        for key in keys:
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)

    def home(self, host: str) -> Path:
        """Home directory of a host."""
        return self.place / host

    def words(self, host: str, words: list[str], user: str = "") -> list[str]:
        """A command at a host, by a user."""
        to_user = (
            ["setpriv", "--reuid", f"{USERS[user]}", "--regid", f"{USERS[user]}", "--clear-groups"] if user else []
        )
        return ["ip", "netns", "exec", self.spaces[host], *to_user, *words]

    def environment(self, host: str, user: str = "") -> dict[str, str]:
        """Environment of a user at a host."""
        home = self.home(host) / user
        return {"PATH": "/usr/bin:/bin", "HOME": f"{home}", "XDG_RUNTIME_DIR": f"{home}/run", "LANG": "C.UTF-8"}

    def start(self, host: str, words: list[str], user: str = "", **more: Any) -> subprocess.Popen[bytes]:
        """Starts a command at a host, by a user."""
        environment = self.environment(host, user)
        home = Path(environment["HOME"])
        for directory in (home, home / "run"):
            if not directory.exists():
                directory.mkdir(mode=0o700)
                os.chown(directory, USERS.get(user, 0), USERS.get(user, 0))
        more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **more}
        child = subprocess.Popen(
            self.words(host, words, user), cwd=home, env={**environment, **more.pop("env", {})}, **more
        )
        self.running.append(child)
        return child

    def stop(self) -> None:
        """Ends all that was started."""
        for child in reversed(self.running):
            if child.poll() is None:
                child.kill()
            child.wait()

    def sshd(self, host: str, only: str = "") -> None:
        """Starts the sshd of a host: commands start in its home, without the environment of the host's user."""
        shell = self.place / f"{host}-shell"
        home = self.home(host)
        shell.write_text(
            "#!/bin/sh\n"
            f"cd {home} && mkdir -p run && exec env -i HOME={home} XDG_RUNTIME_DIR={home}/run "
            'PATH=/usr/bin:/bin SSH_CONNECTION="$SSH_CONNECTION" sh -c "$SSH_ORIGINAL_COMMAND"\n'
        )
        shell.chmod(0o755)
        lines = [
            *(f"Port {PORT}", f"HostKey {self.place}/host-key", f"AuthorizedKeysFile {self.place}/user-key.pub"),
            *("StrictModes no", "PermitRootLogin yes", "UsePAM no", f"PidFile {self.place}/{host}.pid"),
            *(f"ForceCommand {only or shell}", "Subsystem sftp internal-sftp"),
        ]
        config = self.place / f"{host}-config"
        config.write_text("\n".join(lines) + "\n")
        Path("/run/sshd").mkdir(exist_ok=True)
        self.start(host, ["/usr/sbin/sshd", "-D", "-f", f"{config}"], stderr=subprocess.DEVNULL)

    def ssh(self) -> str:
        """The ssh command to all hosts."""
        options = ["StrictHostKeyChecking=no", f"UserKnownHostsFile={self.place}/known", "LogLevel=ERROR"]
        return " ".join(["ssh", "-p", f"{PORT}", "-i", f"{self.place}/user-key", *(f"-o {one}" for one in options)])

    def fairwave(self, host: str, *words: str, user: str = "", **more: Any) -> subprocess.Popen[bytes]:
        """Starts fairwave at a host."""
        return self.start(host, [f"{self.command}", *words], user, **more)

    def killed_once(self, host: str, *words: str, user: str = "") -> dict[str, Any]:
        """Runs a transfer, kills it in its middle, and repeats it: the last event of that."""
        first = self.fairwave(host, *words, "--json", "--limit", SLOW, user=user, stdout=subprocess.PIPE)
        assert first.stdout
        for line in first.stdout:
            event = json.loads(line)
            if event.get("bytes_done", 0) > TREE_MB * 200_000:
                break
        else:
            raise Failed(f"{' '.join(words)}: ended before its middle")
        first.send_signal(signal.SIGKILL)
        first.wait()
        last = self.fairwave(host, *words, "--json", user=user, stdout=subprocess.PIPE)
        output, _ = last.communicate(timeout=LIMIT_S)
        end: dict[str, Any] = json.loads(output.splitlines()[-1])
        if last.returncode or end["event"] != "done":
            raise Failed(f"{' '.join(words)}: exit status {last.returncode}: {end}")
        if not end["bytes_resumed"]:
            raise Failed(f"{' '.join(words)}: started over")
        return end


def make_tree(place: Path, megabytes: int = TREE_MB) -> None:
    """A large file and many small ones."""
    source = random.Random(36)
    place.mkdir(parents=True)
    (place / "big.bin").write_bytes(source.randbytes(megabytes * 1_000_000))
    for number in range(200):
        (place / f"{number}.txt").write_bytes(source.randbytes(number * 10))


def check_same(one: Path, other: Path) -> None:
    """Compares two flat directories."""
    names = sorted(path.name for path in one.iterdir())
    if sorted(path.name for path in other.iterdir()) != names:
        raise Failed(f"{other} has other names than {one}")
    _, differ, errors = filecmp.cmpfiles(one, other, names, shallow=False)
    if differ or errors:
        raise Failed(f"{other} differs from {one}: {differ + errors}")


def try_until(holds: Callable[[], bool], what: str) -> None:
    """Waits until something holds."""
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        if time.monotonic() > deadline:
            raise Failed(f"{what}: not within {LIMIT_S:.0f} s")
        time.sleep(0.1)


@contextlib.contextmanager
def world(command: Path, *cables: str) -> Iterator[World]:
    """Hosts with these cables, until the end of the context."""
    with contextlib.ExitStack() as stack:
        yield World(stack, command, list(cables))


def rate(end: dict[str, Any]) -> str:
    """A transfer's rate as text."""
    return f"{end['goodput_bps'] / 1e6:.0f} Mb/s by {end['carrier']}, {end['bytes_resumed'] / 1e6:.0f} MB resumed"


def wait_for_ssh(here: World, host: str, client: str) -> None:
    """Waits until an sshd answers."""
    words = [*here.ssh().split(), here.addresses[host + client], "true"]
    try_until(lambda: here.start(client, words, stderr=subprocess.DEVNULL).wait() == 0, f"the sshd of {host}")


def install(command: Path) -> Iterator[tuple[str, str]]:
    """A host where nothing is installed."""
    with world(command, "ca") as here:
        make_tree(here.home("c") / "tree")
        here.sshd("a")
        wait_for_ssh(here, "a", "c")
        to = f"{here.addresses['ac']}:in/"
        end = here.killed_once("c", "cp", "--ssh", here.ssh(), "--install", "tree", to)
        check_same(here.home("c") / "tree", here.home("a") / "in" / "tree")
        copies = list((here.home("a") / ".cache" / "fairwave").glob("*/*"))
        if [copy.name for copy in copies] != ["fairwave"]:
            raise Failed(f"the copies of the command are {copies}")
        yield "nothing installed at the far end", rate(end)


def sftp(command: Path) -> Iterator[tuple[str, str]]:
    """A host that allows only sftp."""
    with world(command, "ca") as here:
        make_tree(here.home("c") / "tree")
        here.sshd("a", only="internal-sftp")
        try_until((here.place / "a.pid").exists, "the sshd of a")
        to = f"{here.addresses['ac']}:{here.home('a')}/in/"
        end = here.killed_once("c", "cp", "--ssh", here.ssh(), "--carrier", "sftp", "tree", to)
        check_same(here.home("c") / "tree", here.home("a") / "in" / "tree")
        yield "only sftp at the far end", rate(end)


def between(command: Path) -> Iterator[tuple[str, str]]:
    """From one host to another, from a third."""
    for what, cables, carrier in [("with a direct way", ["ca", "cb", "ab"], "udp"), ("without", ["ca", "cb"], "ssh")]:
        with world(command, *cables) as here:
            make_tree(here.home("a") / "tree")
            for host in "ab":
                here.sshd(host)
                wait_for_ssh(here, host, "c")
            places = [f"{here.addresses['ac']}:tree", f"{here.addresses['bc']}:in/"]
            end = here.killed_once("c", "cp", "--ssh", here.ssh(), "--install", *places)
            check_same(here.home("a") / "tree", here.home("b") / "in" / "tree")
            if end["carrier"] != carrier:
                raise Failed(f"{what} it went by {end['carrier']}")
            yield f"A to B from C, {what}", rate(end)


def workflow(command: Path) -> Iterator[tuple[str, str]]:
    """A Snakemake rule with remote input: the plug-in's test, without a kill."""
    if not shutil.which("snakemake"):
        raise MissingError("snakemake is not installed")
    tests = Path(__file__).parent.parent / "python" / "tests" / "test_plugins.py"
    words = [sys.executable, "-m", "pytest", "--quiet", "-k", "snakemake", tests]
    environment = {**os.environ, "FAIRWAVE": f"{command.resolve()}"}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise Failed(done.stdout[-500:])
    yield "a Snakemake rule with remote input", "as tested"


def users(command: Path) -> Iterator[tuple[str, str]]:
    """Three users on one node."""
    with world(command, "cs") as here:
        socket = here.home("s") / "daemon.sock"
        here.fairwave("s", "daemon", "--share-by", "user", "--capacity", CAPACITY, "--socket", f"{socket}", "--quiet")
        try_until(socket.exists, "the daemon")
        at_node: dict[str, Any] = {"env": {"FAIRWAVE_DAEMON": f"{socket}"}}
        address = here.addresses["sc"]
        for name, number in USERS.items():
            home = here.home("s") / name
            make_tree(home / "tree", 30)
            subprocess.run(["chown", "-R", f"{number}:{number}", home], check=True)

        # ann serves a tree to four clients.
        ticket = here.place / "ann.ticket"
        with ticket.open("wb") as out:
            here.fairwave("s", "serve", "tree", "--quiet", user="ann", stdout=out, **at_node)
        # cai runs a web server that knows nothing of Fairwave, behind a bridge.
        web = [sys.executable, "-m", "http.server", "8000", "--bind", "127.0.0.1", "--directory", "tree"]
        here.start("s", web, user="cai", stderr=subprocess.DEVNULL)
        bridge = here.place / "cai.ticket"
        with bridge.open("wb") as out:
            here.fairwave("s", "bridge", "--to", "127.0.0.1:8000", "--quiet", user="cai", stdout=out, **at_node)
        try_until(lambda: ticket.stat().st_size > 0 and bridge.stat().st_size > 0, "the tickets")
        # ben's two copies start their far ends over ssh.
        ssh = here.place / "ssh-to-ben"
        home = here.home("s") / "ben"
        there = here.words(
            "s", ["env", "-i", f"HOME={home}", f"XDG_RUNTIME_DIR={home}/run", f"FAIRWAVE_DAEMON={socket}"], "ben"
        )
        ssh.write_text(
            f'#!/bin/sh\n[ "$1" = -G ] && {{ echo "hostname {address}"; exit 0; }}\n'
            f"cd {home} && exec {' '.join(there)} PATH={here.command.parent}:/usr/bin:/bin "
            f'SSH_CONNECTION="{here.addresses["cs"]} 1 {address} 22" sh -c "$2"\n'
        )
        ssh.chmod(0o755)
        (home / "run").mkdir(exist_ok=True)
        os.chown(home / "run", USERS["ben"], USERS["ben"])

        def get(number: int) -> subprocess.Popen[bytes]:
            return here.fairwave("c", "get", f"@{ticket}", f"ann{number}/", "--quiet")

        def copy(number: int) -> subprocess.Popen[bytes]:
            return here.fairwave("c", "cp", "--ssh", f"{ssh}", "node:tree", f"ben{number}/", "--quiet")

        def fetch(number: int) -> subprocess.Popen[bytes]:
            words = ["curl", "-sSo", f"cai{number}.bin", "http://10.9.9.9:8000/big.bin"]
            return here.fairwave("c", "run", "--map", f"10.9.9.9:8000=@{bridge}", "--", *words)

        # One is killed in its middle and repeated.
        first = get(0)
        time.sleep(2)
        first.kill()
        first.wait()
        # Its session holds a part of ann's share until it has been silent for 30 s.
        status = [f"{here.command}", "status", "--json"]
        try_until(lambda: not shown(here, status, at_node)["sessions"], "the end of the killed session")
        clients = [*(get(number) for number in range(4)), *(copy(number) for number in range(2)), fetch(0)]
        try_until(lambda: len(rates(here, status, at_node)) == len(USERS), "sessions of three users")
        time.sleep(10)
        looks = []
        until = time.monotonic() + WINDOW_S
        while time.monotonic() < until:
            looks.append(rates(here, status, at_node))
            time.sleep(0.5)
        for client in clients:
            if client.wait(LIMIT_S):
                raise Failed(f"a client of the node: exit status {client.returncode}")
        for number in range(4):
            check_same(here.home("s") / "ann" / "tree", here.home("c") / f"ann{number}" / "tree")
        for number in range(2):
            check_same(here.home("s") / "ben" / "tree", here.home("c") / f"ben{number}" / "tree")
        if not filecmp.cmp(here.home("s") / "cai" / "tree" / "big.bin", here.home("c") / "cai0.bin", shallow=False):
            raise Failed("the file of the web server differs")
        means = {
            name: sum(look.get(number, 0.0) for look in looks) / len(looks) / 1e6 for name, number in USERS.items()
        }
        listed = ", ".join(f"{name} {mean:.2f}" for name, mean in means.items())
        fair = sum(means.values()) / len(means)
        if any(abs(mean - fair) > 0.1 * fair for mean in means.values()):
            raise Failed(f"not fair by user: {listed} Mb/s")
        yield (
            f"three users on one node of {CAPACITY} (4 gets, 2 cps, 1 web download)",
            f"{listed} Mb/s, means of {len(looks)} looks",
        )


def shown(here: World, status: list[str], at_node: dict[str, Any]) -> dict[str, Any]:
    """Status of the daemon, as root sees it."""
    done = here.start("s", status, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **at_node)
    output, _ = done.communicate(timeout=LIMIT_S)
    found: dict[str, Any] = json.loads(output)
    return found


def rates(here: World, status: list[str], at_node: dict[str, Any]) -> dict[int, float]:
    """Sent rates by user, from the daemon, in bit/s."""
    return {user["user"]: user["sent_bps"] for user in shown(here, status, at_node)["users"] if user["sent_bps"] > 0}


JOURNEYS = [install, sftp, between, workflow, users]


def main() -> int:
    """Runs the journeys."""
    parser = argparse.ArgumentParser(description="Run the five journeys.")
    parser.add_argument("command", type=Path, help="the fairwave command, static for --install")
    parser.add_argument("--only", choices=[journey.__name__ for journey in JOURNEYS], help="run one of them")
    options = parser.parse_args()
    if os.geteuid() != 0 or not Path("/usr/sbin/sshd").exists():
        print("journeys: left out: they need root and OpenSSH's sshd")
        return 0
    failed = 0
    for journey in JOURNEYS:
        if options.only not in (None, journey.__name__):
            continue
        try:
            for what, found in journey(options.command):
                print(f"{what}: {found}", flush=True)
        except MissingError as missing:
            print(f"{journey.__name__}: left out: {missing}", flush=True)
        except (Failed, subprocess.SubprocessError) as error:
            failed += 1
            print(f"{journey.__name__}: failed: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
