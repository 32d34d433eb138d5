"""Programs and settings of a dev server's container: fixed text, the same in all of them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

NAMES = {"jupyter_config": "jupyter_config.py"}
FILES: Mapping[str, str] = {
    NAMES.get(name, name.removesuffix(".sh")): files(__name__).joinpath(name).read_text()
    for name in ("start.sh", "keys.sh", "tell.sh", "nproc.sh", "profile.sh", "look.sh",
                 "contents.sh", "jupyter.sh", "jupyter_config", "sshd_config", "ssh_config")
}  # fmt: skip
"""By their names in /odc/job. Read at import: while serving, the daemon may not be able to read its
own files."""

UNFIT = 78
"""The exit code of the start program if its image cannot become a dev server."""
