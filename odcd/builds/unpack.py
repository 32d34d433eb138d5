"""The program that reads one context, in a process of its own: see odcd.builds.reading.

Its argument is the name of the Dockerfile, its stdin the context. Its stdout is one line of JSON,
then the packed context. A refusal is a line with its code.
"""

from __future__ import annotations

import json
import resource
import sys

from odcd.builds.context import IGNORE, MAX_SENT_BYTES, read_context
from odcd.errors import OdcError, TooLarge

CPU_S = 10
MEMORY_BYTES = 512 * 1024 * 1024


def main(dockerfile: str) -> int:
    limit()
    try:
        context = read_context(sys.stdin.buffer.read(MAX_SENT_BYTES + 1), dockerfile)
        head, packed = {"digest": context.digest}, context.packed
    except MemoryError:
        error = TooLarge("the context needs too much memory when it is unpacked", IGNORE)
        head, packed = _refusal(error), b""
    except OdcError as error:
        head, packed = _refusal(error), b""
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n" + packed)
    return 0


def limit() -> None:
    """Keep this process from using more than one context needs."""
    for kind, most in (
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 16),
    ):
        resource.setrlimit(kind, (most, most))


def _refusal(error: OdcError) -> dict[str, str | None]:
    return {"code": error.code, "message": error.message, "hint": error.hint}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
