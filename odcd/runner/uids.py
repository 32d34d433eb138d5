"""The users that jobs may run as: the runner's own check, and the daemon's check at submit."""

from __future__ import annotations

import grp
import os
import pwd

from odcd.runner.rules import Reader, Rules

NOT_PEOPLE = frozenset({65534, 65535, 2**32 - 2, 2**32 - 1})
"""The user `nobody`, and numbers that are no user at all."""

MIN_GID = 100
"""Lower numbers are groups of the system: root, disk, shadow."""


def refusal(rules: Rules, uid: int) -> str | None:
    """Why no job may run as the user if root starts the jobs; None: it may."""
    if uid == 0:
        return None if rules.allow_root else "jobs may not run as root here"
    if not 0 < uid < 2**32 - 1:
        return f"user id {uid} is not the id of a user"
    if rules.min_uid and uid in NOT_PEOPLE:
        return f"user id {uid} is shared by everything without its own account"
    if uid < rules.min_uid:
        return f"user id {uid} is a system account: the ids of users begin at {rules.min_uid}"
    return None


class Users:
    """The users that may have processes here. The runner checks this itself and trusts no
    daemon."""

    def __init__(self, reader: Reader, daemon_uid: int) -> None:
        """daemon_uid: the account that commands the runner. A job of this user could reach the
        database and the runner."""
        self._reader = reader
        self._daemon_uid = daemon_uid

    @property
    def rules(self) -> Rules:
        return self._reader.rules

    def refusal(self, uid: int) -> str | None:
        """Why no process may have this user's id; None: it may."""
        own = os.geteuid()
        if own != 0:
            # A user's own runner cannot change to any other user.
            return (
                None if uid == own else f"odcd runs as uid {own} and cannot start jobs of uid {uid}"
            )
        if uid == self._daemon_uid != 0:
            return f"user id {uid} is the daemon's own account"
        return refusal(self.rules, uid)


def groups_of(uid: int, gid: int) -> list[int]:
    """All groups of a process of this user with this primary group.

    Raises ValueError when the user does not belong to the group: a daemon may request any group.
    """
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        # A user without an account here has only a private group.
        groups, known = [gid], gid == uid or (gid >= MIN_GID and not _is_anybodys(gid))
    else:
        groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
        known = gid in groups
    if not known and uid != 0:
        raise ValueError(f"user id {uid} is not in group {gid}")
    return groups


def has_group_alone(uid: int, gid: int) -> bool:
    """Whether no other user has the group, as far as this machine knows, and its number is the
    user's own. Most systems create such a group with an account."""
    if gid != uid:
        return False
    try:
        members = grp.getgrgid(gid).gr_mem
    except KeyError:
        members = []
    others = [entry for entry in pwd.getpwall() if entry.pw_uid != uid]
    names = {entry.pw_name for entry in pwd.getpwall() if entry.pw_uid == uid}
    return names.issuperset(members) and all(entry.pw_gid != gid for entry in others)


def _is_anybodys(gid: int) -> bool:
    """Whether the group has a name here, or is the primary group of an account."""
    try:
        grp.getgrgid(gid)
    except KeyError:
        return any(entry.pw_gid == gid for entry in pwd.getpwall())
    return True
