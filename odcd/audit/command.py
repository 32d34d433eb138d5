"""Audit log lines for commands that work on the database without the daemon."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from odcd.audit.log import STDOUT, AuditLog
from odcd.clock import SystemClock
from odcd.errors import OdcError
from odcd.home.account import name_of
from odcd.variables import read_audit


class CommandAudit:
    """command: as typed, without secrets. Create this before the command gives up root."""

    def __init__(
        self, environment: Mapping[str, str], command: str, facts: Mapping[str, object]
    ) -> None:
        self._place = read_audit(environment, detached=False)
        sudo = environment.get("SUDO_UID", "")
        self._who = {
            "user": name_of(os.getuid()), "uid": os.getuid(), "operator": True, "by": "command",
            "from": {"sudo_uid": int(sudo)} if sudo.isdecimal() and len(sudo) < 11 else {},
            "method": "COMMAND", "route": command, **facts,
        }  # fmt: skip

    @contextmanager
    def noting(self) -> Generator[None]:
        """Wrap the work. Call it as the account that does the work, which owns the log's folder.

        Raises OdcError before the work when the log cannot be opened.
        """
        if self._place in (None, STDOUT):
            yield
            return
        log = AuditLog(self._place, SystemClock())
        outcome: dict[str, object] = {"status": 500}
        try:
            yield
            outcome = {"status": 200}
        except OdcError as error:
            outcome = {"status": error.status, "code": error.code}
            raise
        finally:
            log.note({**self._who, **outcome})
            log.close()
