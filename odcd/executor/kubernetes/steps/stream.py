"""The output and the end of a step in its pods, as one journal, and the rules that concern several
tasks: --wait, --kill-on-bad-exit."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from odcd.clock import Clock
from odcd.errors import RunnerDown, WrongState
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.steps.follower import Event, Follower, Part
from odcd.executor.kubernetes.steps.outcome import Outcome, wait_status
from odcd.executor.kubernetes.steps.shell import PodShell
from odcd.records.step import StepKey
from odcd.runner.steps import report
from odcd.runner.steps.journal import EXITED, MESSAGE, OVER

Frame = tuple[bytes, int, bytes]
QUEUE = 64
BATCH_BYTES = 512 * 1024
MERGE_S = 0.1
"""Failures of several tasks within this time are reported in one line."""
NOTICES = 1_000_000
"""Messages about the whole step have numbers of tasks from here on, so that they appear once."""
CANCELLED, TERMINATING, WAITED, LOST = range(NOTICES, NOTICES + 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The parts of a step, and its rules. hosts: of each task. tasks: of each rank. ended: whether
    the job is being ended."""

    hosts: Mapping[int, str]
    tasks: Mapping[int, tuple[int, ...]]
    kill_on_bad_exit: bool = False
    wait_s: int = 0

    @classmethod
    def of(cls, encoded: Mapping[str, Any]) -> Plan:
        tasks: dict[int, list[int]] = {}
        for number, task in enumerate(encoded["tasks"]):
            tasks.setdefault(task["rank"], []).append(number)
        return cls(
            hosts={n: task["host"] for n, task in enumerate(encoded["tasks"])},
            tasks={rank: tuple(numbers) for rank, numbers in tasks.items()},
            kill_on_bad_exit=bool(encoded["kill_on_bad_exit"]), wait_s=encoded["wait_s"],
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """Calls that a stream may make. find_pod: by rank, None: its pod is gone or over. stop: end
    the step in all pods, because of a task. is_ending: whether the job is being ended."""

    find_pod: Callable[[int], Awaitable[Pod | None]]
    stop: Callable[[], Awaitable[None]]
    is_ending: Callable[[], bool]
    on_close: Callable[[dict[str, Any] | None], None]


class PodStepStream:
    """Implements odcd.executor.base.StepStream."""

    begin = 0
    has_marks = True

    def __init__(
        self, shell: PodShell, key: StepKey, plan: Plan, ways: Ways, clock: Clock, *, owner: bool
    ) -> None:
        self._shell = shell
        self._key = key
        self._name = f"{key[0]}.{key[2]}"
        self._plan = plan
        self._ways = ways
        self._clock = clock
        self._owner = owner
        self._events: asyncio.Queue[Event] = asyncio.Queue(QUEUE)
        self._outcome = Outcome(plan.hosts)
        self._marks: Mapping[str, int] = {}
        self._open: set[int] = set(plan.tasks)
        self._failed: dict[tuple[str, int], list[int]] = {}
        self._failed_at = self._wait_until = 0.0
        self._lost = self._broken = False
        self._tasks: set[asyncio.Task[None]] = set()
        self.end: dict[str, Any] | None = None

    async def read(self, offset: int, marks: Mapping[str, int]) -> list[Frame]:
        """See odcd.executor.base. The marks count only in the first call."""
        if self.end is not None or self._lost:
            return []
        if not self._tasks:
            self._begin(marks)
        frames: list[Frame] = []
        while not frames:
            if self._broken:
                raise RunnerDown("this daemon does not lead any longer")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._timeout()):
                    self._take(await self._events.get(), frames)
            size = sum(len(data) for _, _, data in frames)
            while size < BATCH_BYTES and not self._events.empty():
                event = self._events.get_nowait()
                size += len(event.data)
                self._take(event, frames)
            self._act_on_time(frames)
            if not self._open:
                self._report_failures(frames)
                if not self._lost:
                    self.end = self._outcome.end(self._clock.now().timestamp())
                    frames.append((OVER, 0, json.dumps(self.end).encode()))
                break
        return frames

    async def acknowledge(self, offset: int) -> None:
        """Does nothing: what was read long ago is removed."""

    def break_off(self) -> None:
        """This daemon no longer leads: the client must find the one that does."""
        self._broken = True
        with contextlib.suppress(asyncio.QueueFull):
            self._events.put_nowait(Event(kind="broken", rank=0))

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._ways.on_close(self.end)

    # -- events -----------------------------------------------------------------------------------

    def _begin(self, marks: Mapping[str, int]) -> None:
        self._marks = marks
        for rank, tasks in self._plan.tasks.items():
            own = {
                f"{kind}{task}": marks[f"{kind}{task}"]
                for kind in "oem" for task in tasks if f"{kind}{task}" in marks
            }  # fmt: skip
            part = Part(rank=rank, tasks=tasks, marks=own, done=set())
            follower = Follower(
                self._shell, self._clock, self._key, part, owner=self._owner,
                find_pod=self._ways.find_pod, put=self._events.put,
            )  # fmt: skip
            self._spawn(follower.run())

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)

    def _take(self, event: Event, frames: list[Frame]) -> None:
        if event.kind == "output":
            data = event.data
            if event.stream == b"m":
                host = self._plan.hosts[event.task]
                lines = data.decode(errors="replace").splitlines()
                data = "".join(f"slurmstepd-{host}: error: {line}\n" for line in lines).encode()
            frames.append((event.stream, event.task, data))
        elif event.kind == "exit":
            self._take_exit(event, frames)
        elif event.kind == "stop":
            self._take_stop(event.data.decode(), event.rank, frames)
        elif event.kind == "over":
            self._outcome.note_end(*event.times)
            self._open.discard(event.rank)
        elif event.kind == "lost":
            self._take_loss(event, frames)
        elif event.kind == "broken":
            pass
        else:
            raise WrongState("the output was released before it was read")

    def _take_exit(self, event: Event, frames: list[Frame]) -> None:
        status = wait_status(event.code)
        self._outcome.statuses[event.task] = status
        now = self._clock.monotonic()
        if self._plan.wait_s and not self._wait_until:
            self._wait_until = now + self._plan.wait_s
        if f"x{event.task}" in self._marks:
            return
        if not status:
            frames.append((EXITED, event.task, b"0"))
            return
        self._failed_at = self._failed_at if self._failed else now
        host = self._plan.hosts[event.task]
        self._failed.setdefault((host, status), []).append(event.task)
        if self._plan.kill_on_bad_exit and self._outcome.stopping is None and self._owner:
            self._report_failures(frames)
            self._say(f"srun: Terminating StepId={self._name}", TERMINATING, frames)
            self._stop()

    def _take_stop(self, why: str, rank: int, frames: list[Frame]) -> None:
        self._outcome.stop(why)
        if why not in ("cancelled", "timeout"):
            return
        host = self._plan.hosts[self._plan.tasks[rank][0]]
        about = " DUE TO TIME LIMIT" if why == "timeout" else ""
        text = "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
        self._say(text + report.describe_cancel(self._name, host, about), CANCELLED, frames)

    def _take_loss(self, event: Event, frames: list[Frame]) -> None:
        """A pod is gone, or the processes that watched its tasks."""
        self._open.discard(event.rank)
        if self._ways.is_ending():
            self._outcome.stop("cancelled")
            self._say(f"srun: Force Terminated StepId={self._name}", CANCELLED, frames)
            return
        host = self._plan.hosts[self._plan.tasks[event.rank][0]]
        why = event.data.decode()
        self._say(f"srun: error: Node failure on {host}: {why}", LOST, frames)
        self._lost = True
        if self._open:
            self._stop()

    # -- rules ------------------------------------------------------------------------------------

    def _timeout(self) -> float | None:
        moments = [self._wait_until] if self._wait_until else []
        if self._failed:
            moments.append(self._failed_at + MERGE_S)
        return max(0.0, min(moments) - self._clock.monotonic()) if moments else None

    def _act_on_time(self, frames: list[Frame]) -> None:
        now = self._clock.monotonic()
        if self._failed and now >= self._failed_at + MERGE_S:
            self._report_failures(frames)
        if self._wait_until and now >= self._wait_until:
            self._wait_until = 0.0
            live = [n for n in self._plan.hosts if n not in self._outcome.statuses]
            if live and self._outcome.stopping is None and self._owner:
                self._say(
                    f"srun: First task exited {self._plan.wait_s}s ago\n"
                    f"srun: StepId={self._name} {report.name_tasks(live)}: running\n"
                    f"srun: Terminating StepId={self._name}", WAITED, frames,
                )  # fmt: skip
                self._stop()

    def _stop(self) -> None:
        self._outcome.stop("task")
        self._wait_until = 0.0
        self._spawn(self._ways.stop())

    def _report_failures(self, frames: list[Frame]) -> None:
        """Together with the ends, so that both or none are repeated after a lost connection."""
        for (host, status), tasks in self._failed.items():
            for task in tasks:
                frames.append((EXITED, task, str(status).encode()))
            line = report.describe_failure(host, tasks, status)
            frames.append((MESSAGE, tasks[0], f"{line}\n".encode()))
        self._failed.clear()

    def _say(self, text: str, number: int, frames: list[Frame]) -> None:
        if f"m{number}" not in self._marks:
            frames.append((MESSAGE, number, f"{text}\n".encode()))
            self._marks = {**self._marks, f"m{number}": 1}
