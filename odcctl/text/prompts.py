"""Questions to the user at a terminal. Callers check that there is one."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def prompt(question: str) -> str:
    """Read one line, without surrounding blanks. The end of input counts as Ctrl-C."""
    show(question, end=" ")
    try:
        line = _line()
    except UnicodeDecodeError:
        return ""
    except KeyboardInterrupt:
        show("")
        raise
    if not line:
        show("")
        raise KeyboardInterrupt
    return line.strip()


def _line() -> str:
    """Read a line. Waits on a descriptor, too, so that Ctrl-C works from the moment the question
    shows: a signal before the read begins would go unnoticed until the next key."""
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


def prompt_until_valid(question: str, default: str, read: Callable[[str], T]) -> T:
    """Ask until read accepts the answer; read raises ValueError with the reason to ask again.
    default: used for an empty answer."""
    while True:
        answer = prompt(f"{question} [{default}]:" if default else f"{question}:")
        try:
            return read(answer or default)
        except ValueError as error:
            show(f"  {error}")


def agree(question: str, default: bool = False) -> bool:
    def read(answer: str) -> bool:
        if answer.lower() not in ("y", "yes", "n", "no"):
            raise ValueError("enter y or n")
        return answer.lower() in ("y", "yes")

    return prompt_until_valid(f"{question} (y/n)", "y" if default else "n", read)


def choose(question: str, names: Sequence[str], lines: Sequence[str], default: int = 0) -> int:
    """The index of the choice, made by number or by name. lines: the text of each choice."""
    width = len(str(len(names)))
    for number, line in enumerate(lines, start=1):
        show(f"  {number:>{width}}. {line}")

    def read(answer: str) -> int:
        if answer.isascii() and answer.isdecimal() and 0 < int(answer) <= len(names):
            return int(answer) - 1
        matches = [at for at, name in enumerate(names) if name.casefold() == answer.casefold()]
        if len(matches) != 1:
            raise ValueError(f"enter a number from 1 to {len(names)}, or a name")
        return matches[0]

    return prompt_until_valid(question, str(default + 1), read)


def show(text: str, end: str = "\n") -> None:
    """Print to standard error if it is a terminal, otherwise to standard output."""
    stream = sys.stderr if sys.stderr.isatty() else sys.stdout
    stream.write(text + end)
    stream.flush()
