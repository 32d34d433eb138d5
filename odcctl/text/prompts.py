"""Questions to the person at a terminal. Without one nothing ever asks."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def ask(question: str) -> str:
    """One line, without blanks around it. The end of input is as Ctrl-C."""
    say(question, end=" ")
    try:
        line = _line()
    except UnicodeDecodeError:
        return ""
    except KeyboardInterrupt:
        say("")
        raise
    if not line:
        say("")
        raise KeyboardInterrupt
    return line.strip()


def _line() -> str:
    """Read a line. Ctrl-C works also at the moment the question shows: a read that has not
    begun yet would not notice the signal before the next key, a descriptor does."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    before = signal.set_wakeup_fd(wake)
    try:
        while sys.stdin not in select.select([sys.stdin, woken], [], [])[0]:
            os.read(woken, 64)
        return sys.stdin.readline()
    finally:
        signal.set_wakeup_fd(before)
        os.close(woken)
        os.close(wake)


def ask_until(question: str, default: str, read: Callable[[str], T]) -> T:
    """The answer, parsed by read, which raises ValueError with the reason to ask again.
    default: what an empty answer means."""
    while True:
        answer = ask(f"{question} [{default}]:" if default else f"{question}:")
        try:
            return read(answer or default)
        except ValueError as error:
            say(f"  {error}")


def agree(question: str, default: bool = False) -> bool:
    def read(answer: str) -> bool:
        if answer.lower() not in ("y", "yes", "n", "no"):
            raise ValueError("enter y or n")
        return answer.lower() in ("y", "yes")

    return ask_until(f"{question} (y/n)", "y" if default else "n", read)


def choose(question: str, names: Sequence[str], lines: Sequence[str], default: int = 0) -> int:
    """Which of these, by number or by name. lines: how each is shown."""
    width = len(str(len(names)))
    for number, line in enumerate(lines, start=1):
        say(f"  {number:>{width}}. {line}")

    def read(answer: str) -> int:
        if answer.isascii() and answer.isdecimal() and 0 < int(answer) <= len(names):
            return int(answer) - 1
        alike = [at for at, name in enumerate(names) if name.casefold() == answer.casefold()]
        if len(alike) != 1:
            raise ValueError(f"enter a number from 1 to {len(names)}, or a name")
        return alike[0]

    return ask_until(question, str(default + 1), read)


def say(text: str, end: str = "\n") -> None:
    """To the person: beside the result, unless only the result is on the terminal."""
    stream = sys.stderr if sys.stderr.isatty() else sys.stdout
    stream.write(text + end)
    stream.flush()
