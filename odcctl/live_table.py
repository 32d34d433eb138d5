"""A table that stays on the screen and changes with the queue; the daemon pushes, nothing polls.

Rich owns the screen. Only lines that changed are written, all in one write, so nothing flickers:
Rich's Live would write the whole screen at every change.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from odcctl.exits import DONE, Refused, Unreachable, WrongUsage
from odcctl.http.client import Client
from odcctl.http.sse import Events
from odcctl.http.wire import LostAnswer
from odcctl.text import render

if TYPE_CHECKING:
    from rich.console import Console

SETTLE_S = 0.3
"""Wait this long after an event for more events, or twice as long as the last fetch took."""
LOOK_S = 30.0
"""The table is also fetched without an event: planned starts change as time passes."""
RETRY_S = 1.0

Fetch = Callable[[], tuple[Sequence[str], Sequence[Sequence[str]]]]


class Screen:
    """The terminal's alternate screen, and the lines that it shows."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown: list[str] = []
        self._size = (0, 0)

    def show(self, lines: list[str]) -> None:
        from rich.control import Control

        lines = [render.harmless(line) for line in lines]
        size = self._console.size
        with self._console:  # buffers until the end of the block
            if size != self._size:
                self._size, self._shown = size, []
                self._console.control(Control.clear())
            if len(lines) > size.height:
                hidden = len(lines) - size.height + 1
                lines = [*lines[: size.height - 1], f"… {hidden} more"]
            for row in range(max(len(lines), len(self._shown))):
                new = lines[row] if row < len(lines) else ""
                old = self._shown[row] if row < len(self._shown) else ""
                if new != old:
                    self._put_line(row, new)
        self._shown = lines

    def _put_line(self, row: int, line: str) -> None:
        from rich.control import Control
        from rich.segment import ControlType
        from rich.text import Text

        text, width = Text(line), self._console.width
        text.truncate(width, overflow="ellipsis")
        self._console.control(Control.move_to(0, row))
        self._console.print(text, end="", soft_wrap=True)
        # At the right edge there is nothing to clear, and it would take the last letter.
        if text.cell_len < width:
            self._console.control(Control((ControlType.ERASE_IN_LINE, 0)))


def watch(client: Client, title: str, fetch: Fetch, look_s: float = LOOK_S) -> int:
    """Show the table that fetch returns, until Ctrl-C; fetch it after events and every look_s."""
    if not sys.stdout.isatty():
        raise WrongUsage(
            "--watch requires a terminal", "Without --watch, the table is printed once."
        )
    # Rich is imported only here: everyday commands start faster without.
    from rich.console import Console

    console = Console(force_terminal=True)
    if console.is_dumb_terminal:
        raise WrongUsage(
            "--watch requires a terminal that can move its cursor, and TERM is dumb",
            "Without --watch, the table is printed once.",
        )
    fetch()  # Report errors in the request before the screen is cleared.
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGWINCH, _ignore)
    with console.screen():
        _keep_showing(client, title, fetch, Screen(console), woken, look_s)
    return DONE


def _keep_showing(
    client: Client, title: str, fetch: Fetch, screen: Screen, woken: int, look_s: float
) -> None:
    body = ""
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
