"""Send a submit to the daemon. Only the daemon parses sbatch's options: argv is sent unchanged."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from odcctl.exits import Failure, Refused
from odcctl.http.client import Client
from odcctl.text.render import note

STDIN = "-"
MAX_READ_BYTES = 8 * 1024 * 1024
"""Twice the daemon's limit for a script: a longer one is rejected, and does not fill the memory."""


def submit(
    client: Client, command: str, argv: Sequence[str], sync: Mapping[str, object] | None = None
) -> dict[str, Any]:
    """The daemon's answer: {"id", "wait", "parsable", …}, or {"test_only": …}. sync: the job runs
    in a copy of a folder, see odcctl.sync."""
    body: dict[str, Any] = {
        "command": command,
        "argv": [_utf8(word, f"argument {at}") for at, word in enumerate(argv, start=1)],
        "work_dir": _work_dir(),
        "environment": _environment(),
        "umask": _umask(),
        "script": None,
        "script_path": None,
        "submit_host": os.uname().nodename,
        "stdin_is_tty": sys.stdin.isatty(),
    }
    if sync is not None:
        body |= {"work_dir": "/", "sync": sync}
    try:
        return client.post_once("/v1/submit-argv", body).json()
    except Refused as refused:
        if refused.title != "ScriptNeeded":
            raise
        path = str(refused.problem.get("script_path"))
    if path != STDIN and path not in argv:
        # The server may belong to another user, who must not choose which file is sent.
        raise Failure(
            f'the server asked for the file "{path}", which the command line does not name',
            "It was not sent. Check that you use the right server.",
        )
    body["script"] = read_script(path)
    body["script_path"] = path
    return client.post_once("/v1/submit-argv", body).json()


def read_script(path: str) -> str:
    """The text of a script: "-" is standard input; a bare name is also searched on PATH."""
    if path == STDIN:
        data, name = sys.stdin.buffer.read(MAX_READ_BYTES), "the script on standard input"
    else:
        found = _find(path)
        name = f'script "{path}"'
        try:
            with open(found, "rb") as file:
                data = file.read(MAX_READ_BYTES)
        except OSError as error:
            raise Failure(f"{name} cannot be read: {error.strerror}", _script_hint(path)) from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Failure(
            f"{name} is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}",
            "A job's script is text. To run a program, use --wrap, or call it from a script.",
        ) from None


def _find(path: str) -> str:
    if "/" in path or os.path.exists(path):
        return path
    for folder in os.get_exec_path():
        candidate = os.path.join(folder, path)
        if os.path.isfile(candidate) and os.access(candidate, os.R_OK):
            return candidate
    return path


def _script_hint(path: str) -> str | None:
    if "/" in path or os.path.exists(path):
        return None
    return "It is neither in this folder nor on PATH. To run a command: odcctl submit --wrap CMD"


def _environment() -> dict[str, str]:
    kept: dict[str, str] = {}
    for name, value in os.environ.items():
        try:
            kept[_strict(name)] = _strict(value)
        except UnicodeError:
            shown = os.fsencode(name).decode("utf-8", "replace")
            note(f"odcctl: warning: variable {shown} is not UTF-8 and is left out of the job")
    return kept


def _work_dir() -> str:
    try:
        return _utf8(os.getcwd(), "the name of this folder")
    except FileNotFoundError:
        raise Failure(
            "this folder no longer exists", "Change to an existing folder, or use --chdir."
        ) from None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _utf8(text: str, what: str) -> str:
    try:
        return _strict(text)
    except UnicodeError:
        raise Failure(f"{what} is not UTF-8") from None


def _strict(text: str) -> str:
    return os.fsencode(text).decode("utf-8")
