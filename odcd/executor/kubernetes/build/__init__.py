"""The program of a build's container: fixed text, the same in all of them."""

from __future__ import annotations

from importlib.resources import files

PROGRAM = files(__name__).joinpath("build.sh").read_text()
"""Read at import: while serving, the daemon may not be able to read its own files."""

WRONG = 65
"""The exit code if the Dockerfile is at fault: a retry would not help."""
