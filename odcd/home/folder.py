"""The home folder: whose it is, what may be in it, and safe ways for root to work below it.

As root the home belongs to root, group `odc`, mode 1775: the daemon may add files of its own, and
can neither rename nor replace what root keeps there (the lock, the runner's folder, the database's
folder, the binaries). No function here follows a symbolic link below the home.
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
"""What tells a home from a folder that merely looks like one: root is about to change its owner."""
CLIENT_PARTS = frozenset({"ssh"})
"""What odcctl keeps in ~/.odc, be there a daemon or not."""
RUNNER = "runner"
ROOT_MODE, USER_MODE = 0o1775, 0o700
MARKER_MODE = 0o640
"""Not for others: whoever may read a file may lock it, and keep the daemon from starting."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def prepare_home(home: Path, account: Account) -> None:
    """Make the home folder, or take the one that is there if it can be ours.

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
            f"home {home} cannot be made: {error.strerror}", "Choose another with --home."
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
            f"home {home} holds other things already ({', '.join(sorted(found)[:3])})",
            "Choose an empty or a new folder with --home.",
        )


def former_owners(account: Account) -> frozenset[int]:
    """Who else may own a home's files: earlier versions gave all of them to the daemon's account.

    Nobody else's, where we are not root.
    """
    owners = {account.uid}
    if os.geteuid() == 0:
        with suppress(KeyError):
            owners.add(pwd.getpwnam(FORMER_ACCOUNT).pw_uid)
    return frozenset(owners)


def check_entry(folder: Path, account: Account) -> None:
    """The account can reach the folder; it must pass every folder above."""
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
    """A descriptor of a folder that an operator named; that one may be a link of theirs."""
    descriptor = os.open(folder, _FOLDER & ~os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_marker(path: Path, account: Account) -> int:
    """Open the home's lock file to read and write, made if it is missing. Raises OdcError."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _FILE, MARKER_MODE)
    except OSError as error:
        raise OdcError(
            f"{path} cannot be written: {error.strerror}",
            _LINK_HINT
            if path.is_symlink()
            else "Run odcd as the user who made this home, or choose another with --home.",
        ) from error
    try:
        status = os.fstat(descriptor)
        theirs = former_owners(account) | {os.geteuid()}
        # A second name may be of a file elsewhere, which the account linked here.
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or status.st_uid not in theirs:
            raise OdcError(f"{path} is not a file of odcd's", _LINK_HINT)
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
    """Make a folder directly below one of root's, of that owner and mode; was it made now?

    former: owners that it may have had before. A link of our own is the operator's, who put the
    folder on another disk. Raises OdcError when it is another user's link or folder.
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
        raise OdcError(f"{path} is not a folder of odcd's: {error.strerror}", _LINK_HINT) from error
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
    """Give a folder and all in it to another account, the folder itself last.

    What does not belong to a former owner keeps its owner: it may be a link to a file elsewhere.
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
            # By the descriptor: the name may be another file's by now.
            os.chown(f"/proc/self/fd/{descriptor}", owner.uid, owner.gid)
    finally:
        os.close(descriptor)


def read_own(path: Path, limit: int = 65536) -> str:
    """The text of a small file that may lie in another account's folder.

    Never follows a link at its name, nor waits for a FIFO. Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | _FILE)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileNotFoundError(f"{path} is not a regular file")
        return os.read(descriptor, limit).decode(errors="replace")
    finally:
        os.close(descriptor)
