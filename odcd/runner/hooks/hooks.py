"""The prologs and epilogs of this node: a limited number at once, each with a time limit."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from odcd.runner import children, processes
from odcd.runner.helper import Helper, Watch
from odcd.runner.hooks import keeper
from odcd.runner.hooks.debts import Debts
from odcd.runner.hooks.environment import CONTEXTS, node_environment, owners
from odcd.runner.limits import Limits
from odcd.runner.log import Log
from odcd.runner.loop import Loop
from odcd.runner.members import Member
from odcd.runner.orders import mark_of
from odcd.runner.record import Key
from odcd.runner.rules import Rules

MAX_AT_ONCE = 32
STUCK_S = 10.0
"""A keeper that reports so long after its hook's time limit is killed, and its hook failed."""
LOOK_AGAIN_S = 0.05
PROLOG_ERROR, EPILOG_ERROR = "Prolog error", "Epilog error"
"""The reasons of drained nodes, as in Slurm."""

Done = Callable[[str | None], None]
"""Called at the end of a hook with the reason why it failed; None: it succeeded."""


class _Order(NamedTuple):
    kind: str
    key: Key
    done: Done
    still_wanted: Callable[[], bool]


class Hooks:
    def __init__(
        self, run_dir: Path, loop: Loop, log: Log, limits: Limits, rules: Callable[[], Rules]
    ) -> None:
        self._run_dir = run_dir
        self._loop = loop
        self._log = log
        self._limits = limits
        self._rules = rules
        self.debts = Debts(run_dir / "hooks")
        self._earlier = set(self.debts)
        """Members of an earlier runner, whose hook may still have processes."""
        self._running: dict[Key, list[_Order]] = {}
        """The members with a hook in progress, and their next hooks."""
        self._waiting: deque[_Order] = deque()
        self._failed: set[Key] = set()
        """Members whose prolog failed and whose epilog has not run yet."""

    @property
    def wanted(self) -> bool:
        """Whether members that start now get a prolog or an epilog."""
        return bool(self._rules().prolog or self._rules().epilog)

    def prolog(self, member: Member, done: Done) -> None:
        """Run the prolog; from now on the member's epilog is owed. Raises OSError, KeyError,
        TypeError or ValueError; then nothing was done."""
        env = node_environment(member)
        node = env.get("SLURMD_NODENAME", "")
        self.debts.add(member.key, {"uid": member.uid, "node": node, "env": env})
        if not self._rules().prolog:
            done(None)
            return
        self._give(_Order("prolog", member.key, done, lambda: member.live))

    def epilog(self, key: Key, done: Callable[[str | None], None]) -> None:
        """Run the epilog that is owed, after the prolog if that still runs. done: receives the
        reason to drain the node, if there is one."""

        def settle(why: str | None) -> None:
            reason = EPILOG_ERROR if why else None
            if key in self._failed:
                self._failed.discard(key)
                reason = PROLOG_ERROR
            self.debts.settle(key)
            self._earlier.discard(key)
            done(reason)

        if key in self._running or self._rules().epilog:
            self._give(_Order("epilog", key, settle, lambda: bool(self._rules().epilog)))
        else:
            settle(None)

    def _give(self, order: _Order) -> None:
        if order.key in self._running:
            self._running[order.key].append(order)
            return
        self._running[order.key] = []
        self._waiting.append(order)
        self._begin_some()

    _at_once = 0
    _beginning = False

    def _begin_some(self) -> None:
        if self._beginning:
            return
        self._beginning = True
        try:
            while self._waiting and self._at_once < MAX_AT_ONCE:
                order = self._waiting.popleft()
                self._at_once += 1
                self._begin(order)
        finally:
            self._beginning = False

    def _begin(self, order: _Order) -> None:
        if not self._is_clear(order.key):
            self._loop.at(time.time() + LOOK_AGAIN_S, lambda: self._begin(order))
            return
        if not order.still_wanted():
            self._end(order, None)
            return
        facts = self.debts.read(order.key)
        path = getattr(self._rules(), order.kind)
        if facts is None or not path:
            self._end(order, None if facts else "its file in RUN_DIR/hooks cannot be read")
            return
        try:
            self._run(order, path, facts["env"])
        except OSError as error:
            self._log.error("hook.failed", hook=order.kind, member=order.key, why=error)
            self._end(order, f"cannot start: {error.strerror}")

    def _is_clear(self, key: Key) -> bool:
        """Whether nothing is left of an earlier hook of the member. KILLs the processes of a hook
        whose keeper has died."""
        if self.debts.is_held(key):
            return False
        if key not in self._earlier:
            return True
        left = processes.leftovers(self._mark(key), os.geteuid(), None, 0)
        processes.signal_all(left, signal.SIGKILL)
        return not left

    def _mark(self, key: Key) -> str:
        return f"hook-{mark_of(key, self._run_dir)}"

    def _run(self, order: _Order, path: str, env: dict[str, str]) -> None:
        """Raises OSError when no process can be created."""
        limit_s = float(getattr(self._rules(), f"{order.kind}_timeout_s"))
        env = {
            **env, "SLURM_SCRIPT_CONTEXT": CONTEXTS[order.kind],
            processes.MARK: self._mark(order.key),
        }  # fmt: skip
        request = {"path": path, "env": env, "limit_s": limit_s, "owners": owners()}
        began = time.monotonic()
        watch: Watch

        def answered(channel: socket.socket) -> None:
            answer = _read(channel)
            watch.close()
            if answer is None:
                self._give_up(order, "the process that watched it was killed")
                return
            self._log_end(order, answer, time.monotonic() - began)
            self._end(order, answer["why"])

        def late() -> None:
            watch.close()
            self._give_up(order, f"did not end within {limit_s:g} s, and could not be killed")

        helper = self._fork(order.key, request)
        watch = Watch(self._loop, helper, limit_s + STUCK_S, answered, late)

    def _fork(self, key: Key, request: dict[str, Any]) -> Helper:
        lock_fd = self.debts.lock(key)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            gc.freeze()
            pid = children.fork()
            if pid == 0:
                keeper.keep(theirs, lock_fd, request, self._limits)
            try:
                ours.setblocking(False)
                return Helper(ours, os.pidfd_open(pid))
            except OSError:
                os.kill(pid, signal.SIGKILL)
                raise
        except OSError:
            ours.close()
            raise
        finally:
            os.close(lock_fd)
            theirs.close()

    def _give_up(self, order: _Order, why: str) -> None:
        self._log.error("hook.lost", hook=order.kind, member=order.key, why=why)
        # The next hook of the member waits until no process of this one is left.
        self._earlier.add(order.key)
        self._is_clear(order.key)
        self._end(order, why)

    def _log_end(self, order: _Order, answer: dict[str, Any], took_s: float) -> None:
        facts = {"hook": order.kind, "member": order.key, "took_s": f"{took_s:.2f}",
                 "output_bytes": answer["size"]}  # fmt: skip
        if answer["why"] is None:
            self._log.info("hook.ended", **facts)
        else:
            self._log.error("hook.failed", **facts, why=answer["why"], output=answer["output"])

    def _end(self, order: _Order, why: str | None) -> None:
        self._at_once -= 1
        if why is not None and order.kind == "prolog":
            self._failed.add(order.key)
        following = self._running.pop(order.key)
        if following:
            # The order of a member's hooks: none begins while another one runs.
            self._running[order.key] = following[1:]
            self._waiting.append(following[0])
        try:
            order.done(why)
        finally:
            self._begin_some()


def _read(channel: socket.socket) -> dict[str, Any] | None:
    """None: the keeper died before it could report."""
    data = b""
    with contextlib.suppress(OSError):
        data = channel.recv(65536)
    return json.loads(data) if data else None
