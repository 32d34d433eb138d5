"""The program of a build's container: fixed text, the same in all of them."""

from __future__ import annotations

from importlib.resources import files

PROGRAM = files(__name__).joinpath("build.sh").read_text()
"""Read at once: the daemon may not read its own files any more when it serves."""

WRONG = 65
"""It ends so when it is the Dockerfile that is at fault: trying again would not help."""
