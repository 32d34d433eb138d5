"""The accounts that odcd's processes run as."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from odcd.errors import OdcError

ACCOUNT = "odc"
DATABASE_ACCOUNT = "odc-db"
"""Runs PostgreSQL, so that the daemon cannot become its superuser."""
FORMER_ACCOUNT = "postgres"
"""Earlier versions used it where `odc` could not be created; root takes over such homes."""

# The effective user applies to all threads of the process, so only one may act at a time.
_acting = threading.RLock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    name: str
    uid: int
    gid: int

    def child(self) -> dict[str, object]:
        """Arguments that make subprocess run a child as this account; empty if we already are
        it."""
        if os.getuid() == self.uid:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    @contextmanager
    def acting(self) -> Generator[None]:
        """When running as root, do file work with only this account's rights.

        Symbolic links that the account left in its folders then reach nothing that it could not
        reach itself. Start no process meanwhile: its real user would be root.
        """
        with _acting:
            if os.getuid() != 0 or os.geteuid() == self.uid:
                yield
                return
            groups, gid = os.getgroups(), os.getegid()
            os.setgroups([self.gid])
            os.setegid(self.gid)
            os.seteuid(self.uid)
            try:
                yield
            finally:
                os.seteuid(0)
                os.setegid(gid)
                os.setgroups(groups)


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
    """The account the daemon runs as: the current one, or for root `odc`, created if missing.

    Raises OdcError when it cannot be created: sharing another service's account would give that
    service access to our files.
    """
    if os.geteuid() != 0:
        return current()
    found = _made(ACCOUNT)
    if found is None:
        raise OdcError(
            f"the account {ACCOUNT} does not exist and could not be created",
            f"Create it: useradd --system --user-group --shell /usr/sbin/nologin {ACCOUNT}",
        )
    return found


def database_account(daemon: Account) -> Account:
    """The account PostgreSQL runs as: for root `odc-db`, otherwise the daemon's.

    If `odc-db` cannot be created, the daemon's account is used, and `odcd doctor` reports it.
    """
    if os.geteuid() != 0:
        return daemon
    return _made(DATABASE_ACCOUNT) or daemon


def _made(name: str) -> Account | None:
    if not exists(name):
        _create(name)
    if not exists(name):
        return None
    entry = pwd.getpwnam(name)
    if entry.pw_uid == 0:
        raise OdcError(f"the account {name} is root", "Give the account its own user id.")
    return Account(name=name, uid=entry.pw_uid, gid=entry.pw_gid)


def exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _create(name: str) -> None:
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if useradd is None:
        return
    options = ["--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
    # If it fails, the account is still missing; another odcd may also have created it meanwhile.
    subprocess.run(
        [useradd, *options, "--shell", "/usr/sbin/nologin", name],
        capture_output=True,
        check=False,
    )


def become(account: Account, home: Path) -> None:
    """Drop root permanently."""
    os.initgroups(account.name, account.gid)
    os.setresgid(account.gid, account.gid, account.gid)
    os.setresuid(account.uid, account.uid, account.uid)
    # Libraries look for files below HOME, and root's is no longer accessible.
    os.environ["HOME"] = str(home)


def name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user id {uid}"
