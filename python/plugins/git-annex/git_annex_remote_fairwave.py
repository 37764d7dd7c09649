"""git-annex special remote: contents are files on a machine that runs ``fairwave serve``.

Its protocol is https://git-annex.branchable.com/design/external_special_remote_protocol/. Set it up with

    FAIRWAVE_TICKET=fw1... git annex initremote NAME type=external externaltype=fairwave encryption=none

The ticket must be one of ``fairwave serve DIRECTORY --writable --readable``, with ``--delete`` if contents are to be
dropped there. git-annex keeps it among the credentials of this clone, not in the git-annex branch.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote

from fsspec.callbacks import Callback

from fairwave.fsspec import FairwaveFileSystem


class Remote:
    """The remote's side of the conversation with git-annex."""

    def __init__(self, requests: TextIO, replies: TextIO) -> None:
        """Store both directions."""
        self._requests, self._replies = requests, replies
        self._share: Any = None
        # The name of the served directory.
        self._top = ""

    def run(self) -> None:
        """Reply to requests until git-annex closes its end."""
        self._say("VERSION 1")
        while request := self._hear():
            word, _, rest = request.partition(" ")
            answer = getattr(self, f"on_{word.lower()}", None)
            if answer is None:
                self._say("UNSUPPORTED-REQUEST")
            else:
                answer(rest)

    def on_extensions(self, _: str) -> None:
        """Decline all of git-annex's extensions."""
        self._say("EXTENSIONS")

    def on_listconfigs(self, _: str) -> None:
        """Offer no settings: the ticket is a credential."""
        self._say("CONFIGEND")

    def on_getcost(self, _: str) -> None:
        """Cost as much as other remotes over a network."""
        self._say("COST 200")

    def on_initremote(self, _: str) -> None:
        """Keep the ticket as a credential."""
        ticket = os.environ.get("FAIRWAVE_TICKET", "")
        if not ticket:
            self._say("INITREMOTE-FAILURE set FAIRWAVE_TICKET to the ticket of the server")
            return
        self._say(f"SETCREDS ticket fairwave {ticket}")
        self._say("INITREMOTE-SUCCESS")

    def on_prepare(self, _: str) -> None:
        """Read the ticket: a newer one may be in the environment."""
        self._say("GETCREDS ticket")
        kept = self._hear().removeprefix("CREDS ").partition(" ")[2]
        ticket = os.environ.get("FAIRWAVE_TICKET") or kept
        if not ticket:
            self._say("PREPARE-FAILURE no ticket: set FAIRWAVE_TICKET and run git annex enableremote")
            return
        self._say("GETGITDIR")
        # On the file system of the contents, where they need not be copied.
        place = Path(self._hear().removeprefix("VALUE "), "annex", "fairwave")
        self._share = FairwaveFileSystem(ticket, cache_dir=place)
        self._say("PREPARE-SUCCESS")

    def on_transfer(self, request: str) -> None:
        """Store or retrieve a content."""
        direction, key, file = request.split(" ", 2)
        progress = _Progress(lambda size: self._say(f"PROGRESS {size}"))

        def transfer() -> str:
            if direction == "STORE":
                self._share.put_file(file, self._path(key), callback=progress)
            else:
                self._share.get_file(self._path(key), file, callback=progress)
            return f"TRANSFER-SUCCESS {direction} {key}"

        self._answer(transfer, f"TRANSFER-FAILURE {direction} {key}")

    def on_checkpresent(self, key: str) -> None:
        """Look for a content."""
        self._answer(
            lambda: f"CHECKPRESENT-{'SUCCESS' if self._has(key) else 'FAILURE'} {key}", f"CHECKPRESENT-UNKNOWN {key}"
        )

    def on_remove(self, key: str) -> None:
        """Delete a content, if it is there."""

        def remove() -> str:
            if self._has(key):
                self._share.rm_file(self._path(key))
            return f"REMOVE-SUCCESS {key}"

        self._answer(remove, f"REMOVE-FAILURE {key}")

    def _answer(self, work: Callable[[], str], failure: str) -> None:
        try:
            self._say(work())
        except (OSError, ValueError) as error:
            self._say(f"{failure} {' '.join(str(error).split())}")

    def _has(self, key: str) -> bool:
        try:
            return bool(self._share.info(self._path(key))["type"] == "file")
        except FileNotFoundError:
            return False

    def _path(self, key: str) -> str:
        """Return the path of a content: a key may contain slashes and wildcards."""
        if not self._top:
            self._top = self._share.ls("", detail=False)[0]
        return f"{self._top}/{quote(key, safe='')}"

    def _say(self, line: str) -> None:
        self._replies.write(f"{line}\n")
        self._replies.flush()

    def _hear(self) -> str:
        return self._requests.readline().rstrip("\n")


class _Progress(Callback):  # type: ignore[misc]
    """Reports the bytes of a transfer."""

    def __init__(self, report: Callable[[int], None]) -> None:
        """Store what reports them."""
        super().__init__()
        self._report = report

    def call(self, *_: Any, **__: Any) -> None:
        """Report the bytes so far."""
        self._report(self.value)


def main() -> None:
    """Talk to git-annex over stdin and stdout."""
    Remote(sys.stdin, sys.stdout).run()


if __name__ == "__main__":
    main()
