"""Do something as another user of this machine, in a child process; requires root."""

from __future__ import annotations

import os
import pickle
import pwd
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")

AS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not AS_ROOT, reason="needs root, to be several users")
_FOLDER = Path(sys.prefix)
needs_open_checkout = pytest.mark.skipif(
    not all(folder.stat().st_mode & 0o001 for folder in (_FOLDER, *_FOLDER.parents)),
    reason=f"needs other users to reach {_FOLDER}: chmod o+x the folders above it",
)


def as_user(name: str, work: Callable[[], T]) -> T:
    """Return or raise the result of work(), run as that user."""
    entry = pwd.getpwnam(name)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        outcome: tuple[bool, object]
        try:
            os.initgroups(name, entry.pw_gid)
            os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
            os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)
            os.environ["HOME"] = "/nonexistent"
            outcome = (True, work())
        except BaseException as error:
            outcome = (False, error)
        with os.fdopen(writing, "wb") as answer:
            pickle.dump(outcome, answer)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        data = answer.read()
    os.waitpid(pid, 0)
    done, value = pickle.loads(data)
    if not done:
        raise value
    return value


def account(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        pytest.skip(f"this machine has no account {name}")


def ids_of(account: pwd.struct_passwd) -> dict[str, int]:
    return {"uid": account.pw_uid, "gid": account.pw_gid}


def folder_of(account: pwd.struct_passwd, path: Path) -> Path:
    path.mkdir()
    os.chown(path, account.pw_uid, account.pw_gid)
    path.chmod(0o755)
    return path
