"""A table that stays on the screen and changes with the queue; the daemon pushes, nothing polls.

Only lines that changed are written, all in one write, so nothing flickers.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence

from odcctl.exits import DONE, Refused, Unreachable, WrongUsage
from odcctl.http.client import Client
from odcctl.http.sse import Events
from odcctl.http.wire import LostAnswer
from odcctl.text import render

SETTLE_S = 0.3
"""Wait this long after an event for more events, or twice as long as the last fetch took."""
LOOK_S = 30.0
"""The table is also fetched without an event: planned starts change as time passes."""
RETRY_S = 1.0

ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"

Fetch = Callable[[], tuple[Sequence[str], Sequence[Sequence[str]]]]


class Screen:
    """The terminal's alternate screen, and the lines that it shows."""

    def __init__(self) -> None:
        self._shown: list[str] = []
        self._size = (0, 0)

    def show(self, lines: list[str]) -> None:
        lines = [render.harmless(line) for line in lines]
        size = shutil.get_terminal_size()
        parts: list[str] = []
        if size != self._size:
            self._size, self._shown = size, []
            parts.append("\x1b[2J")
        if len(lines) > size.lines:
            hidden = len(lines) - size.lines + 1
            lines = [*lines[: size.lines - 1], f"… {hidden} more"]
        for row in range(max(len(lines), len(self._shown))):
            new = lines[row] if row < len(lines) else ""
            old = self._shown[row] if row < len(self._shown) else ""
            if new != old:
                # After a line of full width, \x1b[K would erase its last character.
                clear = "\x1b[K" if len(new) < size.columns else ""
                parts.append(f"\x1b[{row + 1};1H{new}{clear}")
        self._shown = lines
        sys.stdout.write("".join(parts))
        sys.stdout.flush()


def watch(client: Client, title: str, fetch: Fetch, look_s: float = LOOK_S) -> int:
    """Show the table that fetch returns, until Ctrl-C; fetch it after events and every look_s."""
    if not sys.stdout.isatty():
        raise WrongUsage(
            "--watch requires a terminal", "Without --watch, the table is printed once."
        )
    fetch()  # Report errors in the request before the screen is cleared.
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGWINCH, _ignore)
    sys.stdout.write(ENTER)
    try:
        _keep_showing(client, title, fetch, woken, look_s)
    finally:
        sys.stdout.write(LEAVE)
        sys.stdout.flush()
    return DONE


def _keep_showing(client: Client, title: str, fetch: Fetch, woken: int, look_s: float) -> None:
    screen, body = Screen(), ""
    while True:
        try:
            events = Events(client.stream("GET", "/v1/events"))
            while not events.ended:
                began = time.monotonic()
                header, rows = fetch()
                body = render.table(header, rows, render.terminal_width())
                took_s = time.monotonic() - began
                screen.show([f"{title}    {time.strftime('%H:%M:%S')}", "", *body.splitlines()])
                _wait(events, woken, max(SETTLE_S, 2 * took_s), look_s)
            trouble = "the daemon ended the stream"
        except (LostAnswer, Unreachable) as error:
            trouble = str(error)
        except Refused as refused:
            if refused.status != 503:
                raise
            trouble = refused.message
        screen.show([f"{title}    the daemon does not answer: {trouble}", "", *body.splitlines()])
        time.sleep(RETRY_S)


def _ignore(number: int, frame: object) -> None:
    """A handler, so that the signal writes to the wakeup descriptor."""


def _wait(events: Events, woken: int, settle_s: float, look_s: float) -> None:
    """Wait for events, and settle_s for more of them; for a new size of the terminal; or look_s."""
    ready, _, _ = select.select([events, woken], [], [], look_s)
    if woken in ready:
        os.read(woken, 64)
    elif ready:
        until = time.monotonic() + settle_s
        while not events.ended and (left := until - time.monotonic()) > 0:
            events.next(left)
