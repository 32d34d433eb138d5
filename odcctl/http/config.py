"""Write settings to the config file, which odcctl.http.address reads."""

from __future__ import annotations

import json
import re

from odcctl.http import private_files as files
from odcctl.http.address import config_path

_TABLE = re.compile(r"\s*\[")


def keep(key: str, value: str | bool) -> None:
    """Write one value to the config file; all other lines stay."""
    path = config_path()
    lines = files.read(path).splitlines()
    assignment = f"{key} = {json.dumps(value, ensure_ascii=False)}"
    assigned = re.compile(rf"\s*{re.escape(key)}\s*=")
    # Lines after a table's header belong to that table.
    top = next((at for at, line in enumerate(lines) if _TABLE.match(line)), len(lines))
    found = next((at for at, line in enumerate(lines[:top]) if assigned.match(line)), None)
    if found is None:
        lines.insert(top, assignment)
    else:
        lines[found] = assignment
    files.write(path, "\n".join([*lines, ""]))
