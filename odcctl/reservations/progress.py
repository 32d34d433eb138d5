"""Show a reservation's progress until it is active: in one changing line, or a line per change.

It is fetched after events of the job, and at intervals, since the queue also moves without events.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from odcctl.exits import Refused, Unreachable
from odcctl.follow import Patience
from odcctl.http.client import Client, Reply
from odcctl.http.sse import Events
from odcctl.http.wire import LostAnswer
from odcctl.reservation_states import WAITING
from odcctl.reservations.describe import Reservation, message, queue_place, status
from odcctl.text import render

if TYPE_CHECKING:
    from rich.live import Live

LOOK_S, LOOK_REMOTE_S = 1.0, 5.0
TICK_S = 1.0


class Progress:
    """The progress of a reservation, on standard error."""

    def __init__(self, *, verbose: bool) -> None:
        self._verbose = verbose
        self._began = time.monotonic()
        self._shown_state: tuple[Any, ...] = ()
        self._rewrites = sys.stderr.isatty()
        self._live: Live | None = None

    def show(self, one: Reservation, now_s: float) -> None:
        parts = [f"reservation {one['id']}: {status(one)}"]
        if one["status"] in ("pending", "queued"):
            parts.append(queue_place(one, now_s))
        text, activity = ", ".join(part for part in parts if part), message(one, now_s)
        state = (one["status"], one.get("phase"), one.get("queue_position"))
        if self._verbose or one.get("phase") == "image_build":
            # The message shows the steps of the build.
            state = (*state, activity)
        if (not self._rewrites or self._verbose) and state != self._shown_state:
            self.clear()
            render.note(f"odcctl: {text}" + (f"; {activity}" if activity else ""))
        if self._rewrites:
            self._line(
                [text, render.duration(time.monotonic() - self._began), render.clean(activity)]
            )
        self._shown_state = state

    def clear(self) -> None:
        """Nothing of the line is left."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _line(self, parts: list[str]) -> None:
        from rich.text import Text

        if self._live is None:
            self._live = _new_live()
            self._live.start()
        text = render.harmless("  ".join(part for part in parts if part))
        line = Text(text, no_wrap=True, overflow="ellipsis")
        self._live.update(line, refresh=True)


def _new_live() -> Live:
    """A line that is erased in the end. Rich is imported only for it: a script's reserve starts
    faster without."""
    from rich.console import Console
    from rich.live import Live

    return Live(
        console=Console(stderr=True, force_terminal=True), transient=True, auto_refresh=False,
        redirect_stdout=False, redirect_stderr=False,
    )  # fmt: skip


def follow(client: Client, reservation: int, progress: Progress) -> Reply:
    """Follow a reservation until it no longer waits, also through outages; return its state."""
    patience = Patience()
    patience.reached()
    while True:
        try:
            return _follow(client, reservation, progress, patience)
        except (LostAnswer, Unreachable, Refused) as error:
            progress.clear()
            patience.endure(error)


def _follow(client: Client, reservation: int, progress: Progress, patience: Patience) -> Reply:
    path = f"/v1/reservations/{reservation}"
    events = Events(client.stream("GET", f"/v1/jobs/{reservation}/events", {"after": 0}))
    look_s = LOOK_S if client.addresses[0].path is not None else LOOK_REMOTE_S
    try:
        while not events.ended:
            reply = client.request("GET", path)
            one = reply.json()
            patience.reached()
            if one["status"] not in WAITING:
                return reply
            fetched_at, passed = time.monotonic(), 0.0
            while passed < look_s and not events.ended:
                progress.show(one, reply.now_s + passed)
                if events.next(min(TICK_S, look_s - passed)) is not None:
                    break
                passed = time.monotonic() - fetched_at
    finally:
        events.close()
    raise LostAnswer("the stream of events ended")
