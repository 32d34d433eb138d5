"""The groups of users, from a file in the format of /etc/group that the site keeps up to date.

The groups that a client claims are never used: the file is the operators' own."""

from __future__ import annotations

import logging
from pathlib import Path

from odcd.errors import BadRequest

log = logging.getLogger(__name__)

FIELDS = 4
EXAMPLE = "For example vision:x:6001:alice,bob"


class GroupFile:
    """Read again whenever it changes, as a mounted ConfigMap does."""

    def __init__(self, path: Path) -> None:
        """Raises BadRequest."""
        self._path = path
        self._groups = read_groups(path)
        self._seen = self._version()

    def of(self, user: str) -> tuple[int, ...]:
        """The groups that name the user as a member. While the file cannot be read, those that it
        had before."""
        version = self._version()
        if version != self._seen:
            self._seen = version
            try:
                self._groups = read_groups(self._path)
            except BadRequest as error:
                log.error("kubernetes.groups_not_read", extra={"why": error.message})
        return self._groups.get(user, ())

    def _version(self) -> tuple[int, int]:
        try:
            found = self._path.stat()
        except OSError:
            return (0, 0)
        return (found.st_mtime_ns, found.st_ino)


def read_groups(path: Path) -> dict[str, tuple[int, ...]]:
    """The gids by user. Group 0 is left out: no job has it. Raises BadRequest."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"ODC_GROUP_FILE={path} cannot be read: {error}", f"{EXAMPLE}.") from error
    found: dict[str, set[int]] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        fields = text.split(":")
        if len(fields) != FIELDS or not fields[2].isdecimal() or int(fields[2]) >= 2**31:
            raise BadRequest(
                f"line {number} of ODC_GROUP_FILE={path} is not name:password:gid:members",
                f"{EXAMPLE}.",
            )
        for user in filter(None, (name.strip() for name in fields[3].split(","))):
            if gid := int(fields[2]):
                found.setdefault(user, set()).add(gid)
    return {user: tuple(sorted(gids)) for user, gids in found.items()}
