"""The script of a reservation on the local executor: login shells in a terminal, one after the
other."""

from __future__ import annotations

from importlib.resources import files


def script() -> str:
    """The script of a reservation's job, which must run with a terminal (the option pty)."""
    return files(__name__).joinpath("login_shell.sh").read_text()
