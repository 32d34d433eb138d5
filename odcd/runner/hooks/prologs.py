"""The prologs of a job: its members start only after all of them have succeeded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from odcd.runner.hooks.hooks import Hooks
from odcd.runner.lifecycle import Lifecycle
from odcd.runner.members import Member


class Prologs:
    def __init__(self, hooks: Hooks, lifecycle: Lifecycle) -> None:
        self._hooks = hooks
        self._lifecycle = lifecycle

    def run_before(self, members: Sequence[Member], done: Callable[[], None]) -> None:
        """Run the prolog for each of these queued members of one attempt, then call done. If one
        fails, they all fail to start first."""
        if not (members and self._hooks.wanted):
            done()
            return
        failed: dict[Member, str] = {}
        unwritten: list[str] = []
        left = len(members)

        def ended(member: Member, why: str | None) -> None:
            nonlocal left
            left -= 1
            if why is not None:
                failed[member] = why
            if left == 0:
                self._fail(members, failed, unwritten)
                done()

        for member in members:
            try:
                self._hooks.prolog(member, lambda why, member=member: ended(member, why))
            except (OSError, KeyError, TypeError, ValueError) as error:
                unwritten.append(f"cannot run its prolog: {error}")
                ended(member, None)

    def _fail(
        self, members: Sequence[Member], failed: dict[Member, str], unwritten: Sequence[str]
    ) -> None:
        if not failed and not unwritten:
            return
        why = next((f"the prolog failed: {why}" for why in failed.values()), None) or unwritten[0]
        for member in members:
            if member.state == "queued":
                own = failed.get(member)
                self._lifecycle.fail_queued(member, f"the prolog failed: {own}" if own else why)
