"""The text of a table of recurring jobs: read, edited, and the time zone it is written for."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import Any

from odcctl.exits import Failure
from odcctl.text import render

NEW = (
    "# Recurring jobs: minute, hour, day of month, month, day of week, command.\n"
    "# #SCRON lines have options of odcctl submit for the next entry. For example:\n"
    "#\n"
    "# #SCRON --time=30 --gpus=1\n"
    "# 30 3 * * mon-fri ./nightly.sh\n"
)
DISABLED = "#DISABLED: "
LOCALTIME = "/etc/localtime"
ZONES = "/zoneinfo/"


def read(path: str) -> str:
    """The text of a file; "-": of standard input. Raises Failure."""
    try:
        if path == "-":
            return sys.stdin.buffer.read().decode()
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except OSError as error:
        raise Failure(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Failure(f"{path} is not UTF-8 text") from None


def shown_text(table: dict[str, Any]) -> str:
    """The table's text; the lines of disabled entries are comments."""
    lines = table["text"].split("\n")
    for entry in table["entries"]:
        if entry["disabled_at"]:
            for at in range(entry["first_line"] - 1, entry["line"]):
                if lines[at].strip():
                    lines[at] = f"{DISABLED}{lines[at]}"
    return "\n".join(lines)


def local_zone() -> str:
    """The name of the user's time zone: of TZ, or else of this machine; UTC if it has no name."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if named and not named.startswith("/"):
        return named
    target = os.path.realpath(named or LOCALTIME)
    return target.rpartition(ZONES)[2] if ZONES in target else _named_zone()


def _named_zone() -> str:
    try:
        with open("/etc/timezone", encoding="ascii") as file:
            return file.read().strip() or "UTC"
    except (OSError, UnicodeDecodeError):
        return "UTC"


class Draft:
    """A text that is being edited, in a file that only the user can read."""

    def __init__(self, text: str) -> None:
        number, self.path = tempfile.mkstemp(prefix="odc-cron-", suffix=".scrontab")
        with os.fdopen(number, "w", encoding="utf-8", newline="") as file:
            file.write(text)

    def edit(self) -> str:
        """Let the user edit it; return the new text. Raises Failure."""
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        # The variable may have arguments, as in "code --wait".
        code = subprocess.call(["/bin/sh", "-c", f'{editor} "$@"', editor, self.path])
        if code:
            raise Failure(f"the editor {render.clean(editor)} ended with code {code}")
        return read(self.path)

    def remove(self) -> None:
        os.unlink(self.path)
