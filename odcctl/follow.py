"""Follow jobs to their end, also across a restart of the daemon: the jobs outlive it."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from odcctl.exits import Refused, Unreachable
from odcctl.http.client import Client, Params, quote
from odcctl.http.wire import LostAnswer
from odcctl.text.render import note

LONG_POLL_S = 300
OUTAGE_S = 600.0
"""How long the daemon may be away before a command that follows gives up."""
FIRST_PAUSE_S, LAST_PAUSE_S = 0.1, 2.0

T = TypeVar("T")


class Patience:
    """Repeats what fails because the daemon is away, once it has been reached at all."""

    def __init__(self) -> None:
        self._reached = False
        self._since: float | None = None
        self._pause_s = FIRST_PAUSE_S

    def try_again(self, call: Callable[[], T]) -> T:
        while True:
            try:
                result = call()
            except (LostAnswer, Unreachable, Refused) as error:
                self.endure(error)
            else:
                self.reached()
                return result

    def reached(self) -> None:
        self._reached, self._since = True, None
        self._pause_s = FIRST_PAUSE_S

    def endure(self, error: LostAnswer | Unreachable | Refused) -> None:
        """Sleep a little; or raise, when this is no outage or a too long one."""
        if isinstance(error, Refused) and error.status != 503:
            raise error
        now = time.monotonic()
        if self._since is None:
            self._since = now
            if self._reached:
                note("odcctl: the daemon does not answer; waiting for it")
        if not self._reached or now - self._since > OUTAGE_S:
            if isinstance(error, LostAnswer):
                raise Unreachable(f"the connection to the daemon was lost: {error}") from error
            raise error
        time.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, LAST_PAUSE_S)


@contextmanager
def outages(patience: Patience) -> Generator[None]:
    """Survive the daemon being away within the block; the caller runs it again."""
    try:
        yield
    except (LostAnswer, Unreachable, Refused) as error:
        patience.endure(error)


def wait_for_end(client: Client, selector: str, patience: Patience) -> list[dict[str, Any]]:
    """The jobs of a selector when all have ended, by long poll."""
    path = f"/v1/jobs/{quote(selector)}"
    # The first question is answered at once: from then on an outage is one, and no wrong address.
    wait_s = 0

    def ask() -> dict[str, Any]:
        return client.request("GET", path, {"wait": wait_s}, timeout_s=wait_s + 60.0).json()

    while True:
        answer = patience.try_again(ask)
        if answer["ended"]:
            return answer["jobs"]
        wait_s = LONG_POLL_S


def output(
    client: Client, selector: str, params: Params, patience: Patience, *, resumable: bool
) -> Iterator[bytes]:
    """A job's output as it comes. resumable: after an outage go on where it stopped."""
    path = f"/v1/jobs/{quote(selector)}/logs"
    seen = 0
    while True:
        skip = seen
        try:
            answer = client.stream("GET", path, params)
            patience.reached()
            for piece in answer:
                rest = piece[skip:]
                skip -= len(piece) - len(rest)
                seen += len(rest)
                if rest:
                    yield rest
            return
        except (LostAnswer, Unreachable, Refused) as error:
            if seen and not resumable:
                raise Unreachable(
                    "the connection to the daemon was lost in the middle of the output"
                ) from error
            patience.endure(error)
