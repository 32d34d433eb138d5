"""Settings in the config file beside the server's address, which odcctl.http.address reads."""

from __future__ import annotations

import json
import re

from odcctl.http import private_files as files
from odcctl.http.address import config_path

_TABLE = re.compile(r"\s*\[")


def keep(key: str, value: str | bool) -> None:
    """Write one value of the config file; every other line of it stays."""
    path = config_path()
    lines = files.read(path).splitlines()
    told = f"{key} = {json.dumps(value, ensure_ascii=False)}"
    own = re.compile(rf"\s*{re.escape(key)}\s*=")
    # Lines after a table's header belong to that table.
    top = next((at for at, line in enumerate(lines) if _TABLE.match(line)), len(lines))
    found = next((at for at, line in enumerate(lines[:top]) if own.match(line)), None)
    if found is None:
        lines.insert(top, told)
    else:
        lines[found] = told
    files.write(path, "\n".join([*lines, ""]))
