"""The program of the pods that test the network: fixed text, in the two languages that images of
jobs most often have."""

from __future__ import annotations

from importlib.resources import files

PORT = 8471
LISTENS = "odc: listening"
NO_PROGRAM = "odc: the image has neither python3 nor perl"
SCRIPT = (
    files(__name__)
    .joinpath("canary.sh")
    .read_text()
    .replace("@PYTHON@", files(__name__).joinpath("canary.py.txt").read_text())
    .replace("@PERL@", files(__name__).joinpath("canary.pl").read_text())
)
"""Arguments: `listen`, or `probe WINDOW PATIENCE TARGET...` with targets NAME=HOST=PORT=KIND, where
KIND is closed or open. A closed target is tried from the first moment on for WINDOW seconds, an
open one until it answers or PATIENCE seconds have passed. The program writes the names of the
targets that it reached to its termination message, one a line, after a line `odc: probed`."""
PROBED = "odc: probed"
