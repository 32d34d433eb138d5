"""The home folder: its owner, its permitted contents, and safe ways for root to work below it.

For root's daemon the home belongs to root, group `odc`, mode 1775. The daemon may add its own
files, but can neither rename nor replace those that root keeps there (the lock, the runner's
folder, the database's folder, the binaries). No function here follows a symbolic link below the
home, except one that root or the user itself made.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from odcd.errors import OdcError
from odcd.home.account import FORMER_ACCOUNT, Account, name_of

MARKER = "odcd.lock"
"""Identifies a home. Without it root would change the owner of a folder that only looks like
one."""
CLIENT_PARTS = frozenset({"ssh"})
"""Files that odcctl keeps in ~/.odc, with or without a daemon."""
RUNNER = "runner"
ROOT_MODE, USER_MODE = 0o1775, 0o700
MARKER_MODE = 0o640
"""Not readable by others: a user who can read the file can lock it and keep the daemon from
starting."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def prepare_home(home: Path, account: Account) -> None:
    """Create the home folder, or use the existing one if it can be ours.

    Only the home itself ever changes its owner; folders above it stay as they are.
    """
    if not home.is_absolute():
        raise OdcError(f"home {home} is not an absolute path", "Give --home an absolute path.")
    missing = [folder for folder in (home, *home.parents) if not folder.exists()]
    try:
        home.mkdir(parents=True, mode=0o755 if os.geteuid() == 0 else USER_MODE)
        fresh = True
    except FileExistsError:
        fresh = False
    except OSError as error:
        raise OdcError(
            f"home {home} cannot be created: {error.strerror}", "Choose another with --home."
        ) from error
    if not fresh:
        check_ours(home, account)
    try:
        check_entry(home, account)
    except OdcError:
        for folder in missing:
            folder.rmdir()
        raise
    with opened(home) as folder:
        if os.geteuid() == 0:
            os.fchown(folder, 0, account.gid)
            os.fchmod(folder, ROOT_MODE)
        elif fresh:
            os.fchmod(folder, USER_MODE)
    os.close(open_marker(home / MARKER, account))
    if os.geteuid() == 0:
        own_folder(home / RUNNER, 0, 0, 0o711)


def check_ours(home: Path, account: Account) -> None:
    status = home.stat()
    if not stat.S_ISDIR(status.st_mode):
        raise OdcError(f"home {home} is not a folder", "Choose another with --home.")
    if status.st_uid not in former_owners(account) | {os.geteuid()}:
        raise OdcError(
            f"home {home} belongs to {name_of(status.st_uid)}, not to {account.name}",
            f"Run odcd as {name_of(status.st_uid)}, or choose another folder with --home.",
        )
    found = {path.name for path in home.iterdir()}
    known = CLIENT_PARTS if os.geteuid() != 0 else frozenset[str]()
    if MARKER not in found and found - known:
        raise OdcError(
            f"home {home} already contains other files ({', '.join(sorted(found)[:3])})",
            "Choose an empty or new folder with --home.",
        )


def former_owners(account: Account) -> frozenset[int]:
    """All accounts that may own a home's files: earlier versions gave every file to the daemon's
    account.

    Only the account itself, unless we are root.
    """
    owners = {account.uid}
    if os.geteuid() == 0:
        with suppress(KeyError):
            owners.add(pwd.getpwnam(FORMER_ACCOUNT).pw_uid)
    return frozenset(owners)


def check_entry(folder: Path, account: Account) -> None:
    """Check that the account can reach the folder: it needs access to every folder above."""
    for above in reversed(folder.parents):
        status = above.stat()
        allowed = (
            status.st_mode & stat.S_IXOTH
            or (status.st_uid == account.uid and status.st_mode & stat.S_IXUSR)
            or (status.st_gid == account.gid and status.st_mode & stat.S_IXGRP)
        )
        if not allowed and account.uid != 0:
            raise OdcError(
                f"the account {account.name} cannot enter {above} "
                f"(mode {stat.S_IMODE(status.st_mode):04o}, owner {name_of(status.st_uid)})",
                "Choose a home elsewhere with --home, /var/lib/odc for example.",
            )


@contextmanager
def opened(folder: Path) -> Generator[int]:
    """A descriptor of a folder that an operator named, which may be a symbolic link."""
    descriptor = os.open(folder, _FOLDER & ~os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_marker(path: Path, account: Account) -> int:
    """Open the home's lock file for reading and writing, and create it if missing. Raises
    OdcError."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _FILE, MARKER_MODE)
    except OSError as error:
        raise OdcError(
            f"{path} cannot be written: {error.strerror}",
            _LINK_HINT
            if path.is_symlink()
            else "Run odcd as the user who created this home, or choose another with --home.",
        ) from error
    try:
        status = os.fstat(descriptor)
        theirs = former_owners(account) | {os.geteuid()}
        # A file with a second hard link may be a file elsewhere that the account linked here.
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or status.st_uid not in theirs:
            raise OdcError(f"{path} is not a file created by odcd", _LINK_HINT)
        if os.geteuid() == 0:
            os.fchown(descriptor, 0, account.gid)
            os.fchmod(descriptor, MARKER_MODE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


_LINK_HINT = "Someone replaced it. Find out who, remove it, then start odcd again."


def own_folder(path: Path, uid: int, gid: int, mode: int, *, former: frozenset[int] = frozenset()
) -> bool:  # fmt: skip
    """Create a folder directly below one of root's, with that owner and mode; return whether it was
    created.

    former: accepted previous owners. A symbolic link of our own account was made by the operator to
    move the folder to another disk. Raises OdcError for another user's link or folder.
    """
    try:
        path.mkdir(0o700)
        made = True
    except FileExistsError:
        made = False
    try:
        link = path.lstat()
        linked = stat.S_ISLNK(link.st_mode) and link.st_uid == os.geteuid()
        descriptor = os.open(path, _FOLDER & ~os.O_NOFOLLOW if linked else _FOLDER)
    except OSError as error:
        raise OdcError(
            f"{path} is not a folder created by odcd: {error.strerror}", _LINK_HINT
        ) from error
    try:
        owner = os.fstat(descriptor).st_uid
        if owner not in {uid, os.geteuid()} | former:
            raise OdcError(f"{path} belongs to {name_of(owner)}, not to {name_of(uid)}", _LINK_HINT)
        os.fchmod(descriptor, mode)
        if os.geteuid() == 0:
            os.fchown(descriptor, uid, gid)
    finally:
        os.close(descriptor)
    return made


def own_tree(path: Path, owner: Account, former: frozenset[int]) -> None:
    """Give a folder and its contents to another account, the folder itself last.

    Entries of other owners are left alone, and so are symbolic and hard links, which may lead to a
    file elsewhere.
    """
    for _, folders, names, folder in os.fwalk(path, topdown=False, follow_symlinks=False):
        for name in [*names, *folders]:
            _give(name, folder, owner, former)
    with opened(path.parent) as above:
        _give(path.name, above, owner, former)


def _give(name: str, folder: int, owner: Account, former: frozenset[int]) -> None:
    try:
        descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return
    try:
        status = os.fstat(descriptor)
        single = status.st_nlink == 1 or stat.S_ISDIR(status.st_mode)
        if status.st_uid in former and single and not stat.S_ISLNK(status.st_mode):
            # Use the descriptor: the name may refer to another file by now.
            os.chown(f"/proc/self/fd/{descriptor}", owner.uid, owner.gid)
    finally:
        os.close(descriptor)


def read_own(path: Path, limit: int = 65536) -> str:
    """The text of a small file that may be in another account's folder.

    Never follows a symbolic link at its name, and never waits for a FIFO. Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | _FILE)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileNotFoundError(f"{path} is not a regular file")
        return os.read(descriptor, limit).decode(errors="replace")
    finally:
        os.close(descriptor)
