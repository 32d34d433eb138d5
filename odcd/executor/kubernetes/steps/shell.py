"""Run the programs of steps in the containers of pods."""

from __future__ import annotations

import asyncio

from odcd.errors import RunnerDown, WrongState
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.exec_stream import ExecStream
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.pod_texts import plain
from odcd.executor.kubernetes.steps.files import TEXTS

OPEN_S = 20.0
ASK_S = 60.0
MAX_ANSWER_BYTES = 8 * 1024 * 1024
LINE_COST = 50
"""The memory of a short line."""
MAX_LINE_BYTES = 65536
NOT_FOUND = 404


class Lines:
    """The output of a program: lines, and data of known length between them."""

    def __init__(self, stream: ExecStream) -> None:
        self.stream = stream
        self._received = bytearray()

    async def line(self) -> str | None:
        """The next line; None: the output has ended."""
        while (at := self._received.find(b"\n")) < 0:
            data = await self.stream.read()
            if not data or len(self._received) > MAX_LINE_BYTES:
                return None
            self._received += data
        text = self._received[:at].decode(errors="replace")
        del self._received[: at + 1]
        return text

    async def data(self, size: int) -> bytes | None:
        """None: the output has ended before."""
        while len(self._received) < size:
            data = await self.stream.read()
            if not data:
                return None
            self._received += data
        found = bytes(self._received[:size])
        del self._received[:size]
        return found

    @property
    def trouble(self) -> str:
        """The text that it printed as its error."""
        text = " ".join(self.stream.errors.decode(errors="replace").split())[:300]
        return plain(text or "the connection broke")


class PodShell:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def open(self, pod: Pod, programs: tuple[str, ...], call: str) -> Lines:
        """Run a shell with the functions of these programs. call: what it does with them. Raises
        WrongState if the pod or its shell is gone, RunnerDown if this may succeed later."""
        meta, container = pod.metadata, pod.spec.containers[0].name
        try:
            stream = await self._cluster.open_exec(
                meta.namespace, meta.name, container, ["/bin/sh", "-s"], OPEN_S
            )
        except ApiRefused as error:
            if error.passing and error.status != NOT_FOUND:
                raise RunnerDown(f"{meta.name} cannot be reached: {error.message}") from error
            raise WrongState(
                f"{meta.name} cannot be entered: {error.message}", "Its container needs /bin/sh."
            ) from error
        text = "".join(TEXTS[name] for name in programs)
        # On one line with the call, as some shells read on only after it.
        await stream.write(f"{text}\n{call}; exit\n".encode())
        return Lines(stream)

    async def ask(
        self, pod: Pod, programs: tuple[str, ...], call: str, within_s: float = ASK_S
    ) -> list[str]:
        """Run it to its end, and return its lines. Raises as open(), and RunnerDown if it takes
        longer: the shell is that of the user's image."""
        lines = await self.open(pod, programs, call)
        found: list[str] = []
        room = MAX_ANSWER_BYTES
        try:
            async with asyncio.timeout(within_s):
                while (line := await lines.line()) is not None:
                    found.append(line)
                    room -= len(line) + LINE_COST
                    if room < 0:
                        raise WrongState(f"{pod.metadata.name}: its shell does not stop printing")
        except TimeoutError:
            raise RunnerDown(f"{pod.metadata.name} did not answer in {within_s:.0f} s") from None
        finally:
            await lines.stream.close()
        if lines.stream.errors:
            raise WrongState(f"{pod.metadata.name}: {lines.trouble}")
        return found
