"""The user's terminal while a program elsewhere has it: every key goes to that program."""

from __future__ import annotations

import posix
import termios
import tty

TYPE_CHECKING = False

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any
else:
    import _signal as signal


class OwnTerminal:
    """Standard input."""

    def __init__(self, send: Callable[[str], None]) -> None:
        """send: sends a message to the step."""
        self._send = send
        self._before: list[Any] | None = None

    @property
    def is_raw(self) -> bool:
        return self._before is not None

    def take(self) -> None:
        """TCSANOW, here and below, keeps keys that were pressed before."""
        if self._before is None:
            self._before = termios.tcgetattr(0)
        tty.setraw(0, termios.TCSANOW)
        self._send_size()

    def restore(self) -> None:
        if self._before is not None:
            before, self._before = self._before, None
            try:  # noqa: SIM105 (contextlib costs 3 ms)
                termios.tcsetattr(0, termios.TCSANOW, before)
            except (OSError, termios.error):
                pass  # the window was closed

    def on_signal(self, number: int) -> None:
        if number == signal.SIGWINCH:
            self._send_size()
        elif number == signal.SIGCONT and self.is_raw:
            # A shell that had stopped us has changed the terminal.
            try:  # noqa: SIM105 (contextlib costs 3 ms)
                self.take()
            except (OSError, termios.error):
                pass  # the window was closed, which sends HUP and CONT

    def _send_size(self) -> None:
        try:
            size = posix.get_terminal_size(0)
        except OSError:
            return  # the window was closed
        self._send(f'{{"rows":{size.lines},"columns":{size.columns}}}')
