"""Show a reservation's progress until it is active: in one changing line, or a line per change.

It is fetched after events of the job, and at intervals, since the queue also moves without events.
"""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any

from odcctl.exits import Refused, Unreachable
from odcctl.follow import Patience
from odcctl.http.client import Client, Reply
from odcctl.http.sse import Events
from odcctl.http.wire import LostAnswer
from odcctl.reservation_states import WAITING
from odcctl.reservations.describe import Reservation, message, queue_place, status
from odcctl.text import render

LOOK_S, LOOK_REMOTE_S = 1.0, 5.0
TICK_S = 1.0
_CLEAR = "\r\x1b[K"


class Progress:
    """The progress of a reservation, on standard error."""

    def __init__(self, *, verbose: bool) -> None:
        self._verbose = verbose
        self._began = time.monotonic()
        self._shown_state: tuple[Any, ...] = ()
        self._rewrites = sys.stderr.isatty()
        self._dirty = False

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
        """Remove the line."""
        if self._dirty:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
            self._dirty = False

    def _line(self, parts: list[str]) -> None:
        text = "  ".join(part for part in parts if part)
        width = shutil.get_terminal_size().columns - 1
        cut = text if len(text) <= width else text[: width - 1] + "…"
        sys.stderr.write(f"{_CLEAR}{cut}")
        sys.stderr.flush()
        self._dirty = True


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
