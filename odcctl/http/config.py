"""What the config file keeps, beside the address of the server: odcctl.http.address reads it."""

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
    # What follows the head of a table is that table's.
    top = next((at for at, line in enumerate(lines) if _TABLE.match(line)), len(lines))
    found = next((at for at, line in enumerate(lines[:top]) if own.match(line)), None)
    if found is None:
        lines.insert(top, told)
    else:
        lines[found] = told
    files.write(path, "\n".join([*lines, ""]))
