"""Launches one member: its control group, its order, its record, and a shim that gets them."""

from __future__ import annotations

import os
from pathlib import Path

from odcd.runner.cgroup import Cgroups
from odcd.runner.files import Files
from odcd.runner.members import Member
from odcd.runner.orders import order_of
from odcd.runner.shims import Shims
from odcd.runner.texts import Texts
from odcd.runner.uids import Users


class MemberLauncher:
    def __init__(
        self,
        run_dir: Path,
        files: Files,
        texts: Texts,
        cgroups: Cgroups,
        users: Users,
        shims: Shims,
    ) -> None:
        self.run_dir = run_dir
        self._files = files
        self._texts = texts
        self._cgroups = cgroups
        self._users = users
        self._shims = shims

    def launch(self, member: Member, gate: int | None) -> None:
        """gate: see Attempt.gate_of.

        Raises OSError, KeyError or ValueError when the member cannot start; FileExistsError when a
        record of it already exists. No record of this launch is left then.
        """
        member.cgroup = self._cgroups.create(str(member.key), member.limits)
        order = order_of(
            member, self.run_dir, self._texts, self._users.rules, gated=gate is not None
        )
        record_fd = self._files.create(member.key, member.intent())
        try:
            self._shims.give(member, record_fd, order, gate)
        except (OSError, KeyError, ValueError):
            self._files.give_up(member.key)
            raise
        finally:
            os.close(record_fd)
