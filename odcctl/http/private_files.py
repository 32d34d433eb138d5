"""Files of the user that odcctl writes: whole or not at all, for the user alone."""

from __future__ import annotations

import os


def read(path: str) -> str:
    """ "" when it is not there."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def write(path: str, text: str) -> None:
    """Mode 0600; its folder is made, 0700. A link stays one: what it leads to is written."""
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
