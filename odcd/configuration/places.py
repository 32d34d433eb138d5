"""Whether the daemon could write to the files that settings name. Nothing is created."""

from __future__ import annotations

import os
import stat
from contextlib import nullcontext
from pathlib import Path

from odcd.errors import BadRequest
from odcd.home.account import ACCOUNT, exists, service_account


def check_audit_log(place: str | None) -> None:
    """Raises BadRequest for a file that the daemon's account cannot append to."""
    if place in (None, "-"):
        return
    # As root without the account, which `odcd up` creates: only what root sees can be checked.
    known = os.geteuid() != 0 or exists(ACCOUNT)
    with service_account().acting() if known else nullcontext():
        why = _why_unwritable(Path(place))
    if why is not None:
        raise BadRequest(
            f'ODC_AUDIT_LOG="{place}" cannot be written: {why}',
            "Name a file in a folder that the daemon's account may write to.",
        )


def _why_unwritable(path: Path) -> str | None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return _why_closed(path.parent)
    except OSError as error:
        return f"{error.strerror}"
    if stat.S_ISDIR(mode):
        return "it is a folder"
    if stat.S_ISLNK(mode):
        return "it is a symbolic link, which odcd does not follow"
    allowed = os.access(path, os.W_OK, effective_ids=True)
    return None if allowed else "the daemon's account may not write to it"


def _why_closed(folder: Path) -> str | None:
    if not folder.exists():
        return f"the folder {folder} does not exist"
    if not folder.is_dir():
        return f"{folder} is not a folder"
    allowed = os.access(folder, os.W_OK | os.X_OK, effective_ids=True)
    return None if allowed else f"the daemon's account may not write to {folder}"
