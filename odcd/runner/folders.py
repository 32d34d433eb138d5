"""The runner's folders, which must be its own and no link of another user."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path


def make_folder(path: Path, mode: int) -> None:
    """Create a folder owned by this process's user, or use the existing one. Raises OSError.

    As root the runner writes, opens and changes the owner of files in it. So it refuses another
    user's folder, and another user's link to a folder elsewhere.
    """
    with contextlib.suppress(FileExistsError):
        try:
            path.mkdir(0o700)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(0o700)
    link = path.lstat()
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    # Our own link is allowed: an operator may have put the folder on another disk.
    if not (stat.S_ISLNK(link.st_mode) and link.st_uid == os.geteuid()):
        flags |= os.O_NOFOLLOW
    descriptor = os.open(path, flags)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "the folder belongs to another user", str(path))
        # Jobs of all users must reach their script and kept output below it, but must not list it.
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
