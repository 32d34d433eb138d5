"""Begin a run with --sync: find and pack the files before anything is submitted."""

from __future__ import annotations

import os

from odcctl.exits import Failure
from odcctl.http.client import Client
from odcctl.sync import kept, sending
from odcctl.text.render import clean, note

FOLDER = "ODC_SYNC_FOLDER"
"""The variable that names the folder, in the job, in which the copy is made."""
_SHOWN = 5


def prepare(client: Client, folder: str) -> tuple[kept.Kept, dict[str, object]]:
    """The state to keep, and the field sync of the job's submit. Raises Failure."""
    options = client.get("/v1/submit-options").json()
    if "sync_max_bytes" not in options:
        raise Failure("this server is too old for run --sync", "Ask its operators to upgrade it.")
    found = sending.find(folder, options["sync_max_bytes"])
    place = os.environ.get(FOLDER) or "/tmp"
    token = os.urandom(16).hex()
    kept.make_folder()
    made = kept.Kept(
        token=token, server=str(client.addresses[0]), folder=found.folder,
        prefix=f"{place.rstrip('/')}/odc-sync-{token}",
    )  # fmt: skip
    try:
        packed = _pack(found, made.archive)
    except BaseException:
        made.forget()
        raise
    made.known = {path: [digest] for path, digest in packed.digests.items()}
    note(f"odcctl: {clean(folder)}: {found.amount} to send")
    _list("not sent", found.unsent)
    _list("changed while it was read", packed.changed)
    return made, {"token": token, "folder": place, "size_bytes": found.amount.size}


def _pack(found: sending.Found, path: str) -> sending.Packed:
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(number, "r+b") as out:
            return sending.pack(found, out)
    except OSError as error:
        raise Failure(
            f"the files cannot be packed in {path}: {error.strerror}",
            "XDG_STATE_HOME can name a folder with more space.",
        ) from None


def _list(what: str, lines: list[str]) -> None:
    for line in lines[:_SHOWN]:
        note(f"odcctl: {what}: {clean(line)}")
    if len(lines) > _SHOWN:
        note(f"odcctl: {what}: {len(lines) - _SHOWN} more")
