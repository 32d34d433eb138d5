"""Functions that the tests run as jobs."""

from __future__ import annotations

import os
import threading
from pathlib import Path


class Odd(Exception):
    """Cannot be pickled: its argument is a lock."""

    def __init__(self, what: str) -> None:
        super().__init__(threading.Lock())
        self.what = what

    def __str__(self) -> str:
        return self.what


def add(a: int, b: int = 1) -> int:
    return a + b


def divide(a: int, b: int) -> float:
    return a / b


def odd() -> None:
    raise Odd("strange")


def lock() -> object:
    return threading.Lock()


def end(code: int) -> None:
    os._exit(code)


def until(flag: str) -> None:
    while not Path(flag).exists():
        pass
