"""The language between daemon and runner: one JSON object a line over a unix stream socket.

A request is {"id": n, "op": name, ...}; its answer {"id": n, "ok": {...}} or
{"id": n, "error": {"code", "message"}}, in order. A connection opens with hello, which names the
versions the daemon speaks and its term; both then keep to the highest version they share. A
connection that sent `observe` is also sent {"facts": [...]} as things happen. Answers of
open_output and attach carry a file descriptor (SCM_RIGHTS).

Within a version fields may be added and must be ignored when unknown, so a newer daemon can take
over an older runner and the jobs it runs.
"""

from __future__ import annotations

import json
from typing import Any

VERSIONS = (1,)

SOCKET_NAME = "runner.sock"
LOCK_NAME = "runner.lock"

MAX_MESSAGE_BYTES = 512 * 1024 * 1024
"""A bound against a broken peer. A daemon stays far below (see odcd.executor.starts); earlier ones
sent many jobs at once."""

LEADERSHIP_LOST = "leadership_lost"
NO_COMMON_VERSION = "no_common_version"
BAD_REQUEST = "bad_request"
NOT_FOUND = "not_found"
NOT_READY = "not_ready"
IO_ERROR = "io_error"

COMMANDS = frozenset({"start", "stop", "signal", "set_end", "tell", "adopt", "acknowledge", "quit"})
"""Operations that change something: refused on a connection whose term is not the highest."""


class ProtocolError(Exception):
    """A request that is answered with an error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def encode(message: dict[str, Any]) -> bytes:
    return encode_part(message) + b"\n"


def encode_part(value: object) -> bytes:
    """UTF-8, in which a lone surrogate stays one: so json.loads reads it, of earlier versions, too.
    Escapes instead would make a letter of two bytes six."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="surrogatepass")


def decode(line: bytes) -> dict[str, Any]:
    """Raises ProtocolError for anything but one JSON object."""
    try:
        message = json.loads(line)
    except ValueError as error:
        raise ProtocolError(BAD_REQUEST, f"not a line of JSON: {error}") from None
    if not isinstance(message, dict):
        raise ProtocolError(BAD_REQUEST, "not a JSON object")
    return message


def common_version(theirs: object) -> int:
    """The highest version both sides speak. Raises ProtocolError when there is none."""
    offered = theirs if isinstance(theirs, list) else []
    shared = [version for version in VERSIONS if version in offered]
    if not shared:
        raise ProtocolError(
            NO_COMMON_VERSION, f"this runner speaks {list(VERSIONS)}, the daemon {offered}"
        )
    return max(shared)
