"""Let one user read and execute a file that stays root's.

Its owner could chmod and grow it, on the daemon's disk and past every quota.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from typing import Literal

from odcd.runner.uids import has_group_alone

Means = Literal["acl", "group", "owner"]
"""By which the user may. owner: the file is the user's after all."""

_ACL = "system.posix_acl_access"
_ENTRY = struct.Struct("<HHI")
_NOBODY = 2**32 - 1
_USER_OBJ, _USER, _GROUP_OBJ, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
_READ_EXECUTE = 5
# No ACLs on this file system, or none that name this user.
_WITHOUT = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EPERM})


def give(fd: int, uid: int, gid: int) -> Means:
    """fd: a file of root's, mode 0500. Raises OSError.

    Without ACLs the user's group may read it, if it has no other member, else the user owns it.
    """
    if _set_acl(fd, uid):
        return "acl"
    if has_group_alone(uid, gid):
        os.fchown(fd, -1, gid)
        os.fchmod(fd, 0o550)
        return "group"
    os.fchown(fd, uid, gid)
    os.fchmod(fd, 0o500)
    return "owner"


def _set_acl(fd: int, uid: int) -> bool:
    try:
        os.setxattr(fd, _ACL, _acl(uid))
    except OSError as error:
        if error.errno in _WITHOUT:
            return False
        raise
    # A file system that does not know ACLs may store one; one that knows shows the mask as the
    # group's permissions.
    return stat.S_IMODE(os.fstat(fd).st_mode) == 0o550


def _acl(uid: int) -> bytes:
    """As the kernel takes it: version 2, then tag, permissions and id of each entry."""
    entries = (
        (_USER_OBJ, _READ_EXECUTE, _NOBODY), (_USER, _READ_EXECUTE, uid), (_GROUP_OBJ, 0, _NOBODY),
        (_MASK, _READ_EXECUTE, _NOBODY), (_OTHER, 0, _NOBODY),
    )  # fmt: skip
    return struct.pack("<I", 2) + b"".join(_ENTRY.pack(*entry) for entry in entries)
