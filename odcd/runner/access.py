"""Give one user read and execute access to a file that root still owns.

An owner could chmod and grow the file, on the daemon's disk and beyond every quota.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from typing import Literal

from odcd.runner.uids import has_group_alone

Means = Literal["acl", "group", "owner"]
"""How the user gets access. owner: the user owns the file after all."""

_ACL = "system.posix_acl_access"
_ENTRY = struct.Struct("<HHI")
_NOBODY = 2**32 - 1
_USER_OBJ, _USER, _GROUP_OBJ, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
_READ_EXECUTE = 5
# This file system has no ACLs, or none that can name this user.
_WITHOUT = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EPERM})


def give(fd: int, uid: int, gid: int) -> Means:
    """fd: a file owned by root, mode 0500. Raises OSError.

    Without ACLs, the user's group may read the file if it has no other member. Otherwise the user
    becomes the owner.
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
    # A file system without support for ACLs may still store one. With support, the group
    # permissions show the ACL's mask.
    return stat.S_IMODE(os.fstat(fd).st_mode) == 0o550


def _acl(uid: int) -> bytes:
    """In the kernel's format: the version 2, then tag, permissions and id of each entry."""
    entries = (
        (_USER_OBJ, _READ_EXECUTE, _NOBODY), (_USER, _READ_EXECUTE, uid), (_GROUP_OBJ, 0, _NOBODY),
        (_MASK, _READ_EXECUTE, _NOBODY), (_OTHER, 0, _NOBODY),
    )  # fmt: skip
    return struct.pack("<I", 2) + b"".join(_ENTRY.pack(*entry) for entry in entries)
