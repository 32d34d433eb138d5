"""Make a folder with Slurm's commands: the program, and a link to it for each name."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable

from odcctl.remote.names import NAMES

PROGRAM = "odc-slurm"
MAX_SHEBANG = 120
"""Older kernels cut the first line of a script at 127 bytes."""


class Foreign(Exception):
    """A file that odc did not write has the name of a command; str() is its path."""


def program_text(default: str = "", python: str | None = None) -> str:
    """default: the socket to use if the environment names no server."""
    python = python or sys.executable
    body = (
        "import posix, sys\n"
        f"sys.path.append({_root()!r})\n"
        "from odcctl.remote import program\n"
        f"posix._exit(program.main({default!r}))\n"
    )
    first = f"#!{python} -IS"
    if len(first.encode()) <= MAX_SHEBANG and " " not in python:
        return f"{first}\n{body}"
    # For both the shell and Python: a string to one, a command to the other.
    return f"#!/bin/sh\n'''exec' '{python}' -IS \"$0\" \"$@\"\n' '''\n{body}"


def install_name() -> str:
    """The same for all calls of this installation, and another one for any other."""
    return hashlib.sha256(f"{sys.executable}\0{_root()}".encode()).hexdigest()[:10]


def _root() -> str:
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def make_folder(
    folder: str, *, default: str = "", names: Iterable[str] = NAMES, python: str | None = None,
    shared: bool = False,
) -> list[str]:  # fmt: skip
    """Write the program into the folder, and link the names to it; return their paths. Links that
    are there already are kept. Raises Foreign before anything changes, and OSError.

    shared: all users may enter the folder, whatever the umask is.
    """
    names = tuple(names)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    if shared:
        os.chmod(folder, 0o755)
    paths = [os.path.join(folder, name) for name in names]
    for path in paths:
        if os.path.lexists(path) and not _is_ours(path):
            raise Foreign(path)
    _replace(os.path.join(folder, PROGRAM), program_text(default, python))
    for path in paths:
        if not os.path.lexists(path):
            os.symlink(PROGRAM, path)
    return paths


def _is_ours(path: str) -> bool:
    return os.path.islink(path) and os.readlink(path) == PROGRAM


def _replace(path: str, text: str) -> None:
    """Commands may run at the same time, so the file is never half written."""
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except (OSError, UnicodeDecodeError):
        pass
    fresh = f"{path}.{os.getpid()}"
    number = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o755)
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(text)
        os.fchmod(number, 0o755)  # whatever the umask is
    os.replace(fresh, path)
