"""The programs of steps, for any POSIX shell."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

TEXTS: Mapping[str, str] = {
    name: files(__name__).joinpath(f"{name}.sh").read_text()
    for name in ("common", "start", "follow", "give", "listen", "client")
}
"""Read at import: while serving, the daemon may not be able to read its own files."""
