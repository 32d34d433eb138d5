"""Steps on Kubernetes: in each pod, a shell that pods/exec starts supervises the tasks."""

from __future__ import annotations

import asyncio
import logging
import signal as signals
from collections.abc import Mapping, Sequence
from typing import Any

from odcd.clock import Clock
from odcd.errors import OdcError, RunnerDown, WrongState
from odcd.executor.environment import job_variables, member_variables
from odcd.executor.kubernetes import naming
from odcd.executor.kubernetes.cluster import Cluster
from odcd.executor.kubernetes.inventory import is_over
from odcd.executor.kubernetes.members import Members
from odcd.executor.kubernetes.naming import Key, pod_name
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.pod_finder import PodFinder
from odcd.executor.kubernetes.pod_settings import PodSettings
from odcd.executor.kubernetes.steps import order as orders
from odcd.executor.kubernetes.steps.calls import Listeners, OnCall
from odcd.executor.kubernetes.steps.input import InputLink, PodChannel
from odcd.executor.kubernetes.steps.looks import Looks
from odcd.executor.kubernetes.steps.reach import StepPods
from odcd.executor.kubernetes.steps.shell import PodShell
from odcd.executor.kubernetes.steps.stream import Plan, PodStepStream, Ways
from odcd.executor.step_tasks import StepOrder
from odcd.records.dispatch import Dispatch
from odcd.records.step import StepKey

log = logging.getLogger(__name__)

START_S = 60.0
RETRY_S = 0.5
FORGET_S = 120.0
"""How long the files of a step stay in the pods after its end was recorded, at least."""
MAX_KNOWN = 2000
RELEASE = """\
printf '%s\\n' "$code" >/odc/run/release.new && mv /odc/run/release.new /odc/run/release
read -r pid </odc/run/pid && kill -s USR1 "$pid"
"""


class KubernetesSteps:
    """Implements odcd.executor.base.Steps. The state is in files of the pods; this is a copy."""

    shares_files = False
    has_terminals = False

    def __init__(
        self, cluster: Cluster, members: Members, finder: PodFinder, settings: PodSettings,
        clock: Clock,
    ) -> None:  # fmt: skip
        shell = self._shell = PodShell(cluster)
        self._members = members
        self._finder = finder
        self._settings = settings
        self._clock = clock
        self._term: int | None = None
        """None: this daemon does not lead."""
        self._pods = StepPods(shell, finder)
        self._plans: dict[StepKey, Plan] = {}
        self._inputs: dict[StepKey, InputLink] = {}
        self._followed: dict[StepKey, int] = {}
        """Steps with a client here, and how many."""
        self._recorded: dict[tuple[int, int], dict[int, float]] = {}
        """By attempt: the steps whose end is recorded, and since when."""
        self._streams: set[PodStepStream] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._listeners = Listeners(shell, clock)
        self._looks = Looks(shell, finder, clock)

    @property
    def term(self) -> int:
        if self._term is None:
            raise RunnerDown(
                "this daemon does not lead, so it starts no steps", "Try again in a moment."
            )
        return self._term

    def set_term(self, term: int) -> None:
        self._term = term

    def answer_calls(self, on_call: OnCall) -> None:
        """on_call: answers the calls of Slurm's commands in pods."""
        self._listeners.on_call = on_call

    def see(self, pod: Pod, key: Key) -> None:
        """A pod has changed."""
        if key in self._members.over:
            self._listeners.end(key)
        elif key in self._members.begun and naming.CALLS in pod.metadata.annotations:
            self._listeners.begin(key, pod)

    def forget(self, key: Key) -> None:
        """A pod is gone."""
        self._listeners.end(key)

    async def close(self) -> None:
        await self._listeners.close()
        for stream in list(self._streams):
            stream.break_off()

    def variables(self, dispatch: Dispatch, environment: Mapping[str, str]) -> dict[str, str]:
        """Not those of a login: the shell is not in the job's image."""
        first = dispatch.members[0]
        found = {
            **job_variables(dispatch, environment, cluster=self._settings.cluster_name,
                            master_addr=pod_name(*dispatch.key, 0)),
            **member_variables(dispatch, first),
        }  # fmt: skip
        return {name: value for name, value in found.items() if name.startswith(("SLURM", "ODC_"))}

    def nodes_of(self, dispatch: Dispatch, hosts: Sequence[str]) -> list[str]:
        nodes = {pod_name(*dispatch.key, m.rank): m.node for m in dispatch.members}
        return [nodes.get(host, host) for host in hosts]

    # -- starts and ends --------------------------------------------------------------------------

    async def start(self, order: StepOrder) -> None:
        key, dispatch = order.placement.key, order.dispatch
        pods = {rank: await self._pods.find(key, rank) for rank in _ranks(order)}
        found = {rank: pod for rank, pod in pods.items() if pod is not None}
        if len(found) < len(pods):
            gone = min(pods.keys() - found.keys())
            raise WrongState(f"the step cannot start: the pod of rank {gone} has ended")
        encoded = await asyncio.to_thread(
            orders.encode, order, cluster=self._settings.cluster_name,
            namespace=next(iter(found.values())).metadata.namespace,
            cluster_domain=self._settings.cluster_domain,
        )  # fmt: skip
        while len(self._plans) >= MAX_KNOWN:
            self._plans.pop(next(iter(self._plans)))
        self._plans[key] = Plan.of(encoded)
        old = self._forgettable(key)
        first, *others = sorted(found)
        # It empties the files that all tasks write to.
        await self._start_in(found[first], encoded, key, first, dispatch.work_dir, old)
        try:
            await asyncio.gather(*(
                self._start_in(found[rank], encoded, key, rank, dispatch.work_dir, old)
                for rank in others
            ))  # fmt: skip
        except WrongState:
            await self.stop(key, signals.SIGKILL, 0.0)
            raise

    async def _start_in(
        self, pod: Pod, encoded: Mapping[str, Any], key: StepKey, rank: int, other_dir: str,
        old: Sequence[int],
    ) -> None:  # fmt: skip
        text = orders.text_of(encoded, key, rank, other_dir=other_dir, old=old)
        deadline = self._clock.monotonic() + START_S
        while True:
            try:
                async with self._pods.turns:
                    lines = await self._shell.open(pod, ("common", "start"), f"{text}\nstart_step")
                    try:
                        answer = await lines.line()
                    finally:
                        await lines.stream.close()
            except RunnerDown:
                if self._clock.monotonic() > deadline:
                    raise
                await self._clock.sleep(RETRY_S)
                continue
            if answer in ("started", "known"):
                return
            raise WrongState(
                f"the step cannot start in pod {pod.metadata.name}: {lines.trouble}",
                "Its image needs the commands of busybox or coreutils.",
            )

    def _forgettable(self, key: StepKey) -> list[int]:
        """Earlier steps of the same attempt whose files are not needed any longer."""
        recorded = self._recorded.get(key[:2], {})
        late = self._clock.monotonic() - FORGET_S
        old = [step for step, at in recorded.items() if at < late]
        for step in old:
            del recorded[step]
        return old

    async def stop(self, key: StepKey, signal: int, grace_s: float) -> None:
        await self._stop(key, "cancelled", signal, grace_s)

    async def _stop(self, key: StepKey, why: str, signal: int, grace_s: float) -> None:
        await self._tell(key, f"stop_step {why} {_name(signal)} {int(grace_s)}")

    async def signal(self, key: StepKey, signal: int) -> None:
        await self._tell(key, f"signal_step {_name(signal)}")

    async def signal_all(self, attempt: tuple[int, int], signal: int) -> bool:
        """Signal the steps of a job that have a client; False: there are none."""
        keys = [key for key in self._followed if key[:2] == attempt]
        await asyncio.gather(*(self.signal(key, signal) for key in keys))
        return bool(keys)

    async def _tell(self, key: StepKey, call: str) -> None:
        plan = self._plans.get(key)
        await self._pods.tell(key, call, None if plan is None else plan.tasks.keys())

    # -- what is known ----------------------------------------------------------------------------

    async def find(self, key: StepKey) -> tuple[bool, dict[str, Any] | None]:
        return await self._looks.look(key)

    async def list(self, keys: Sequence[StepKey]) -> dict[StepKey, dict[str, Any] | None]:
        """Steps with a client here are recorded by the request that follows them."""
        found: dict[StepKey, dict[str, Any] | None] = {
            key: None for key in keys if key in self._followed
        }
        others = [key for key in keys if key not in found]
        for key, (known, end) in (await self._looks.look_at(others)).items():
            if known:
                found[key] = end
        return found

    async def acknowledge(self, key: StepKey, *, forget: bool) -> None:
        live = self._members.pods.keys()
        for attempt in [one for one in self._recorded if one not in live and one != key[:2]]:
            del self._recorded[attempt]
        self._recorded.setdefault(key[:2], {})[key[2]] = self._clock.monotonic()

    async def release(self, job_id: int, attempt: int, exit_code: int) -> None:
        for pod in await self._finder.find(job_id, attempt, only_first=True):
            if not is_over(pod):
                await self._shell.ask(pod, ("common",), f"code={exit_code}\n{RELEASE}")

    # -- clients ----------------------------------------------------------------------------------

    async def open(self, key: StepKey, uid: int, *, owner: bool) -> PodStepStream:
        plan = self._plans.get(key) or await self._looks.find_plan(key)
        if plan is None:
            raise WrongState(f"the output of step {key[0]}.{key[2]} is gone")
        if owner:
            self._followed[key] = self._followed.get(key, 0) + 1

        def closed(end: dict[str, Any] | None) -> None:
            self._streams.discard(stream)
            if owner:
                self._followed[key] -= 1
                if not self._followed[key]:
                    del self._followed[key]
                    self._looks.note(key, end)
            link = self._inputs.pop(key, None) if owner and end is not None else None
            if link is not None:
                self._spawn_close(link)

        ways = Ways(
            find_pod=lambda rank: self._pods.find(key, rank),
            stop=lambda: self._stop_after_failure(key),
            is_ending=lambda: key[:2] in self._members.stops or self._is_over(key),
            on_close=closed,
        )
        stream = PodStepStream(self._shell, key, plan, ways, self._clock, owner=owner)
        self._streams.add(stream)
        return stream

    def _spawn_close(self, link: InputLink) -> None:
        task = asyncio.create_task(link.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _stop_after_failure(self, key: StepKey) -> None:
        try:
            await self._stop(key, "task", signals.SIGTERM, 30.0)
        except OdcError as error:
            log.warning("step.not_ended", extra={"step": key, "why": error.message})

    def _is_over(self, key: StepKey) -> bool:
        """Whether the script of the job has ended."""
        return (key[0], key[1], 0) in self._members.over

    async def connect(self, key: StepKey, uid: int) -> PodChannel | None:
        link = self._inputs.get(key)
        if link is None:
            plan = self._plans.get(key)
            ranks = None if plan is None else plan.tasks.keys()
            link = InputLink(self._shell, key, lambda: self._pods.all(key, ranks))
            self._inputs[key] = link
        return PodChannel(link, self._clock)


def _ranks(order: StepOrder) -> list[int]:
    return [node.rank for node in order.placement.nodes]


def _name(number: int) -> str:
    """The shells of some images know names only."""
    try:
        return signals.Signals(number).name.removeprefix("SIG")
    except ValueError:
        return str(number)
