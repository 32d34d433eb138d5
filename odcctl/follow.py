"""Follow jobs until they end, even if the daemon restarts meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from odcctl.exits import Refused, Unreachable
from odcctl.http.client import Client, Params, quote
from odcctl.http.wire import Answer, LostAnswer
from odcctl.resumed import Resumed
from odcctl.text.render import note

LONG_POLL_S = 300
OUTAGE_S = 600.0
"""A command that follows jobs gives up after an outage of this length."""
SILENCE_S = 1.0
"""If a job has not started by then, the reason for its wait is printed."""
FIRST_PAUSE_S, LAST_PAUSE_S = 0.1, 2.0

T = TypeVar("T")


class Patience:
    """Repeats calls that fail during an outage of the daemon, once it has been reached."""

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
        """Pause before the next try. Raises error if it is no outage, or a too long one."""
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
    """End the block at an outage of the daemon, after a pause; the caller runs it again."""
    try:
        yield
    except (LostAnswer, Unreachable, Refused) as error:
        patience.endure(error)


def wait_for_end(client: Client, selector: str, patience: Patience) -> list[dict[str, Any]]:
    """Wait by long poll until all jobs of the selector have ended; return them."""
    path = f"/v1/jobs/{quote(selector)}"
    # The first request returns at once. From then on, a failure is an outage, not a wrong address.
    wait_s = 0

    def fetch() -> dict[str, Any]:
        return client.request("GET", path, {"wait": wait_s}, timeout_s=wait_s + 60.0).json()

    while True:
        answer = patience.try_again(fetch)
        if answer["ended"]:
            return answer["jobs"]
        wait_s = LONG_POLL_S


def output(
    client: Client, selector: str, params: Params, patience: Patience, *,
    resumed: Resumed | None, when_silent: Callable[[], None] | None = None,
) -> Iterator[bytes]:  # fmt: skip
    """A job's output as it arrives. resumed: how it continues after an outage; None: it does not.
    when_silent: called once if nothing arrives for a while at the beginning."""
    path = f"/v1/jobs/{quote(selector)}/logs"
    wrote = False
    while True:
        if resumed is not None:
            resumed.begin()
        try:
            answer = client.stream("GET", path, params)
            patience.reached()
            ask, when_silent = when_silent, None
            for piece in _pieces(answer, ask):
                new = piece if resumed is None else resumed.new(piece)
                if new:
                    wrote = True
                    yield new
            return
        except (LostAnswer, Unreachable, Refused) as error:
            if wrote and resumed is None:
                raise Unreachable(
                    "the connection to the daemon was lost in the middle of the output"
                ) from error
            patience.endure(error)


def _pieces(answer: Answer, when_silent: Callable[[], None] | None) -> Iterator[bytes]:
    if when_silent is not None:
        piece = answer.read(SILENCE_S)
        if piece is None:
            when_silent()
        elif piece:
            yield piece
    yield from answer
