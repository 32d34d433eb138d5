"""A file that sends a browser to an address that other users of the machine cannot read."""

from __future__ import annotations

import html
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

KEPT_S = 30.0
"""How long a browser may take to start; the ticket in the address is good for a minute."""
_PAGE = """<!doctype html><meta charset="utf-8"><title>odc</title>
<meta http-equiv="refresh" content="0; url={0}"><meta name="referrer" content="no-referrer">
<p><a href="{0}">Continue to odc</a></p>
"""


def make(url: str) -> Path:
    """A file of mode 0600 in a new folder of mode 0700."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    base = runtime if runtime and _is_ours(runtime) else None
    file = Path(tempfile.mkdtemp(prefix="odcctl-", dir=base)) / "page.html"
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(_PAGE.format(html.escape(url)))
    return file


def remove(file: Path) -> None:
    with suppress(OSError):
        file.unlink()
        file.parent.rmdir()


def remove_later(file: Path) -> None:
    """Remove the file in a child process, so that the command returns at once."""
    if os.fork():
        return
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(null, descriptor)
        time.sleep(KEPT_S)
        remove(file)
    finally:
        os._exit(0)


def _is_ours(folder: str) -> bool:
    try:
        found = os.stat(folder)
    except OSError:
        return False
    return found.st_uid == os.geteuid() and not found.st_mode & 0o077
