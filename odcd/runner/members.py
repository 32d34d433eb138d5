"""The runner's data about each member and attempt while they matter."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Any, Literal

from odcd.runner import record
from odcd.runner.record import Key

State = Literal["queued", "starting", "running", "ended"]


@dataclass(slots=True)
class EndSignal:
    """A signal to send some time before the end (sbatch's --signal)."""

    number: int
    before_s: float
    batch_only: bool


@dataclass(slots=True, eq=False)
class Member:
    key: Key
    uid: int
    state: State
    gid: int | None = None
    home: str | None = None
    """HOME of its environment. If both are None, an earlier runner did not record them."""
    order: dict[str, Any] | None = None
    """The order to run; kept until a shim has it."""
    limits: dict[str, int] | None = None
    cgroup: str | None = None
    mark: str = ""
    script: str | None = None
    """The name of its script file."""

    shim_pid: int | None = None
    watch_fd: int | None = None
    """A pidfd of a shim that another runner forked."""
    job_pid: int | None = None
    ticks: int = 0

    ends_at: float | None = None
    grace_s: float = 30.0
    end_signal: EndSignal | None = None
    early_signals: list[tuple[int, bool]] = field(default_factory=list)
    """Signals requested while it was starting: number, batch shell only."""
    stop_signal: int | None = None
    kill_at: float | None = None
    cause: str | None = None
    stuck_at: float | None = None
    """Its processes were killed; a shim that has not started the script by then is killed, too."""

    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Facts that were not acknowledged yet, by kind."""
    reported_at: float = 0.0
    synced: bool = False
    released: int | None = None
    """Its job only held nodes, and its user released them: the exit code to report."""
    has_steps: bool = False
    """It has ended, but steps of its job have not: its end is not reported yet."""
    drains: dict[str, str] = field(default_factory=dict)
    """Nodes on which hooks of its job failed: by rank, the reason."""
    has_hooks: bool = False
    """It has ended, but epilogs of its job have not: its end is not reported yet."""
    timers: int = 0
    """Increased to disarm all timers that were set before."""

    @property
    def live(self) -> bool:
        return self.state != "ended"

    def fact(self, kind: str, at: float, **more: Any) -> dict[str, Any]:
        job, attempt, rank = self.key
        return {"job": job, "attempt": attempt, "rank": rank, "kind": kind, "at": at, **more}

    def intent(self) -> dict[str, Any]:
        """The data that a later runner needs if the member starts."""
        end_signal = self.end_signal
        intent = {
            "uid": self.uid, "gid": self.gid, "at": time.time(), "mark": self.mark,
            "cgroup": self.cgroup, "ends_at": self.ends_at, "grace_s": self.grace_s,
            "signal": (
                [end_signal.number, end_signal.before_s, end_signal.batch_only]
                if end_signal
                else None
            ),
            "script": self.script,
        }  # fmt: skip
        # A home that is too long for the record is forgotten with this runner.
        with_home = {**intent, "home": self.home}
        return with_home if record.fits(record.INTENT, with_home) else intent

    def control(self) -> dict[str, Any]:
        """The data that a later runner needs to continue."""
        return {
            "ends_at": self.ends_at, "kill_at": self.kill_at, "cause": self.cause,
            "stop_signal": self.stop_signal, "signalled": self.end_signal is None,
            "released": self.released, **({"drains": self.drains} if self.drains else {}),
        }  # fmt: skip


def outcome(answer: dict[str, Any], cause: str | None) -> dict[str, Any]:
    """A shim's exit record as the end of a fact: kind, at, exit_code or signal, cause, detail,
    used."""
    if answer["e"] == "failed":
        return {
            "kind": "start_failed", "at": answer["at"],
            # launch: the machine's fault, so a retry may help; the job's own fault would only
            # repeat.
            "cause": cause or ("launch" if answer["passing"] else "unknown"),
            "detail": answer["detail"],
        }  # fmt: skip
    if answer["e"] == "lost":
        detail = answer["detail"]
        return {"kind": "lost", "at": answer["at"], "cause": "unknown", "detail": detail}
    status = answer["status"]
    signalled = os.WIFSIGNALED(status)
    failed = status != 0
    if cause is None and failed and answer.get("oom"):
        cause = "oom"
    return {
        "kind": "exited", "at": answer["at"], "cause": cause,
        "exit_code": None if signalled else os.WEXITSTATUS(status),
        "signal": os.WTERMSIG(status) if signalled else None,
        **({"used": answer["used"]} if "used" in answer else {}),
    }  # fmt: skip
