"""A reservation until it is active, shown as it comes: one line that changes, or a line a change.

The job's events wake the question; the clock asks it, too, since the queue moves without them.
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
    """Where a reservation stands, on standard error."""

    def __init__(self, *, verbose: bool) -> None:
        self._verbose = verbose
        self._began = time.monotonic()
        self._told: tuple[Any, ...] = ()
        self._rewrites = sys.stderr.isatty()
        self._dirty = False

    def show(self, one: Reservation, now_s: float) -> None:
        words = [f"reservation {one['id']}: {status(one)}"]
        if one["status"] in ("pending", "queued"):
            words.append(queue_place(one, now_s))
        text, does = ", ".join(word for word in words if word), message(one, now_s)
        told = (one["status"], one.get("phase"), one.get("queue_position"))
        if self._verbose or one.get("phase") == "image_build":
            # Its steps are what there is to see of it.
            told = (*told, does)
        if (not self._rewrites or self._verbose) and told != self._told:
            self.clear()
            render.note(f"odcctl: {text}" + (f"; {does}" if does else ""))
        if self._rewrites:
            self._line([text, render.duration(time.monotonic() - self._began), render.clean(does)])
        self._told = told

    def clear(self) -> None:
        """Nothing of the line is left."""
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
    """Follow it until it no longer waits; its state then. Outages of the daemon are waited out."""
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
            asked, passed = time.monotonic(), 0.0
            while passed < look_s and not events.ended:
                progress.show(one, reply.now_s + passed)
                if events.next(min(TICK_S, look_s - passed)) is not None:
                    break
                passed = time.monotonic() - asked
    finally:
        events.close()
    raise LostAnswer("the stream of events ended")
