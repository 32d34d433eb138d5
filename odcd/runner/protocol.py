"""The protocol between daemon and runner: one JSON object per line over a Unix stream socket.

A request is {"id": n, "op": name, ...}; its answer {"id": n, "ok": {...}} or
{"id": n, "error": {"code", "message"}}, in order. A connection starts with hello, which has the
daemon's versions and its term; both sides then use the highest common version. A connection that
sent `observe` also receives {"facts": [...]} as events happen. Answers to open_output and attach
carry a file descriptor (SCM_RIGHTS).

Fields may be added within a version, and unknown fields must be ignored. So a newer daemon can take
over an older runner and its jobs.
"""

from __future__ import annotations

import json
from typing import Any

VERSIONS = (1,)

SOCKET_NAME = "runner.sock"
LOCK_NAME = "runner.lock"

MAX_MESSAGE_BYTES = 512 * 1024 * 1024
"""A limit to protect against a broken peer. A daemon stays far below it (see odcd.executor.starts);
earlier daemons sent many jobs at once."""

LEADERSHIP_LOST = "leadership_lost"
NO_COMMON_VERSION = "no_common_version"
BAD_REQUEST = "bad_request"
NOT_FOUND = "not_found"
NOT_READY = "not_ready"
IO_ERROR = "io_error"

COMMANDS = frozenset({
    "start", "stop", "signal", "set_end", "tell", "adopt", "acknowledge", "quit",
    "start_step", "stop_step", "signal_step", "acknowledge_step", "release",
})  # fmt: skip
"""Operations that change something. They are refused on connections without the highest term."""


class ProtocolError(Exception):
    """A request that gets an error as its answer."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def encode(message: dict[str, Any]) -> bytes:
    return encode_part(message) + b"\n"


def encode_part(value: object) -> bytes:
    """UTF-8 that keeps lone surrogates, which json.loads of earlier versions can read, too. Escapes
    would turn a letter of two bytes into six."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="surrogatepass")


def decode(line: bytes) -> dict[str, Any]:
    """Raises ProtocolError if the line is not one JSON object."""
    try:
        message = json.loads(line)
    except ValueError as error:
        raise ProtocolError(BAD_REQUEST, f"not a line of JSON: {error}") from None
    if not isinstance(message, dict):
        raise ProtocolError(BAD_REQUEST, "not a JSON object")
    return message


def common_version(theirs: object) -> int:
    """The highest version that both sides support. Raises ProtocolError when there is none."""
    offered = theirs if isinstance(theirs, list) else []
    shared = [version for version in VERSIONS if version in offered]
    if not shared:
        raise ProtocolError(
            NO_COMMON_VERSION, f"this runner speaks {list(VERSIONS)}, the daemon {offered}"
        )
    return max(shared)
