"""The runner's folders: its own, and no link of anyone's."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path


def make_folder(path: Path, mode: int) -> None:
    """Make a folder of this process's user, or take the one that is there. Raises OSError.

    As root the runner writes, opens and gives away what is in it, so another user's folder, or a
    link to a folder elsewhere, is refused.
    """
    with contextlib.suppress(FileExistsError):
        try:
            path.mkdir(0o700)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(0o700)
    link = path.lstat()
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    # A link of our own is the operator's, who put the folder on another disk.
    if not (stat.S_ISLNK(link.st_mode) and link.st_uid == os.geteuid()):
        flags |= os.O_NOFOLLOW
    descriptor = os.open(path, flags)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "the folder is another user's", str(path))
        # Jobs of any user must reach their script and kept output below it, and list nothing.
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
