"""Run by Python before all else in the daemons and commands of the tests: daemon.py puts this
folder on their path. The account that runs the tests has the home that HOME names, and sh.

odcd reads both from the user database and starts login shells with them. A tester's own start files
shall be no matter of the tests, and what the tests do to a shell no matter of the tester's home.

ODC_TEST_CLOCK names a file with a number of seconds: the wall clock of the daemon is ahead by that
much, from the moment that the file changes.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

_Key = TypeVar("_Key")
_UID, _HOME = os.getuid(), os.environ["HOME"]  # now, for a daemon lets go of both


def _with_test_home(
    look: Callable[[_Key], pwd.struct_passwd],
) -> Callable[[_Key], pwd.struct_passwd]:
    def lookup(key: _Key) -> pwd.struct_passwd:
        entry = look(key)
        if entry.pw_uid != _UID:
            return entry
        return pwd.struct_passwd((*entry[:5], _HOME, "/bin/sh"))

    return lookup


pwd.getpwuid = _with_test_home(pwd.getpwuid)
pwd.getpwnam = _with_test_home(pwd.getpwnam)


def _step_clock(offset: Path) -> None:
    from odcd.clock import SystemClock

    plain = SystemClock.now

    def now(clock: SystemClock) -> datetime:
        try:
            return plain(clock) + timedelta(seconds=float(offset.read_text()))
        except (OSError, ValueError):
            return plain(clock)

    SystemClock.now = now


if "ODC_TEST_CLOCK" in os.environ:
    _step_clock(Path(os.environ["ODC_TEST_CLOCK"]))
