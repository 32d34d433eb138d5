"""Who odcd is on this machine: the account it runs as, and the folder it calls home."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from odcd.errors import OdcError

ACCOUNT = "odc"
FALLBACK_ACCOUNT = "postgres"
MARKER = "odcd.lock"
"""What tells a home from a folder that merely looks like one: root is about to give it away."""
CLIENT_PARTS = frozenset({"ssh"})
"""What odcctl keeps in ~/.odc, be there a daemon or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    name: str
    uid: int
    gid: int

    def child(self) -> dict[str, object]:
        """Arguments that make subprocess run a child as this account; nothing when we are it."""
        if os.geteuid() == self.uid:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, path: Path, mode: int) -> None:
        """Give a path that odc made to the account."""
        path.chmod(mode)
        if os.geteuid() == 0:
            os.chown(path, self.uid, self.gid)


def current() -> Account:
    return _of(os.geteuid())


def _of(uid: int) -> Account:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        raise OdcError(
            f"user id {uid} has no name, which PostgreSQL needs",
            "Give the user an entry in /etc/passwd, or use another PostgreSQL: odcd serve --dsn …",
        ) from None
    return Account(name=entry.pw_name, uid=uid, gid=entry.pw_gid)


def service_account() -> Account:
    """The account the daemon runs as: our own, or as root `odc`, made when it is missing."""
    if os.geteuid() != 0:
        return current()
    if not exists(ACCOUNT):
        _create()
    for name in (ACCOUNT, FALLBACK_ACCOUNT):
        if exists(name):
            entry = pwd.getpwnam(name)
            return Account(name=name, uid=entry.pw_uid, gid=entry.pw_gid)
    raise OdcError(
        f"the account {ACCOUNT} does not exist and could not be made",
        f"Make it: useradd --system --user-group --shell /usr/sbin/nologin {ACCOUNT}",
    )


def exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _create() -> None:
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if useradd is None:
        return
    options = ["--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
    # Its failure shows as the account still missing; a second odcd may have made it meanwhile.
    subprocess.run(
        [useradd, *options, "--shell", "/usr/sbin/nologin", ACCOUNT],
        capture_output=True,
        check=False,
    )


def become(account: Account, home: Path) -> None:
    """Let go of root for good."""
    os.initgroups(account.name, account.gid)
    os.setresgid(account.gid, account.gid, account.gid)
    os.setresuid(account.uid, account.uid, account.uid)
    # Libraries look for their files below HOME, and root's is closed now.
    os.environ["HOME"] = str(home)


def prepare_home(home: Path, account: Account) -> None:
    """Make the home folder, or take the one that is there if it can be ours.

    Only the home itself is ever given to the account; folders above it stay as they are.
    """
    if not home.is_absolute():
        raise OdcError(f"home {home} is not an absolute path", "Give --home an absolute path.")
    mode = 0o755 if os.geteuid() == 0 else 0o700
    missing = [folder for folder in (home, *home.parents) if not folder.exists()]
    try:
        home.mkdir(parents=True, mode=mode)
        fresh = True
    except FileExistsError:
        fresh = False
    except OSError as error:
        raise OdcError(
            f"home {home} cannot be made: {error.strerror}", "Choose another with --home."
        ) from error
    if not fresh:
        check_ours(home, account)
    if fresh or (os.geteuid() == 0 and home.stat().st_uid == 0):
        account.own(home, mode)
    try:
        check_entry(home, account)
    except OdcError:
        for folder in missing:
            folder.rmdir()
        raise
    marker = home / MARKER
    if not marker.exists():
        marker.touch(mode=0o644)
        account.own(marker, 0o644)


def check_ours(home: Path, account: Account) -> None:
    status = home.stat()
    if not stat.S_ISDIR(status.st_mode):
        raise OdcError(f"home {home} is not a folder", "Choose another with --home.")
    if status.st_uid not in (account.uid, os.geteuid()):
        raise OdcError(
            f"home {home} belongs to {_name(status.st_uid)}, not to {account.name}",
            f"Run odcd as {_name(status.st_uid)}, or choose another folder with --home.",
        )
    found = {path.name for path in home.iterdir()}
    known = CLIENT_PARTS if os.geteuid() != 0 else frozenset[str]()
    if MARKER not in found and found - known:
        raise OdcError(
            f"home {home} holds other things already ({', '.join(sorted(found)[:3])})",
            "Choose an empty or a new folder with --home.",
        )


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
                f"(mode {stat.S_IMODE(status.st_mode):04o}, owner {_name(status.st_uid)})",
                "Choose a home elsewhere with --home, /var/lib/odc for example.",
            )


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user id {uid}"
