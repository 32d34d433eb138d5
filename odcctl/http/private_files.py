"""Files that odcctl writes: atomically, and readable by the user only."""

from __future__ import annotations

import os


def read(path: str) -> str:
    """ "" if the file does not exist."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def write(path: str, text: str) -> None:
    """Write with mode 0600; create the folder with 0700. Of a link, the target is written."""
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    scratch = f"{folder}/.odcctl-{os.getpid()}"
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(
            descriptor, "w", encoding="utf-8", errors="surrogateescape", newline=""
        ) as file:
            file.write(text)
        os.replace(scratch, path)
    except BaseException:
        os.unlink(scratch)
        raise
