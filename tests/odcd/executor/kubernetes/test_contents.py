"""The contents of a disk are listed before its pod ends; if the listing fails, the pod still
ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, cast

import msgspec
import pytest

from odcd.clock import SystemClock
from odcd.errors import DatabaseDown, RunnerDown
from odcd.executor.kubernetes import contents
from odcd.executor.kubernetes.background import Background
from odcd.executor.kubernetes.cluster import ApiRefused, Status
from odcd.executor.kubernetes.contents import CUT, MAX_BYTES, Contents, read
from odcd.executor.kubernetes.dev_server_files import FILES
from odcd.executor.kubernetes.ends import Ends
from odcd.executor.kubernetes.fence import Fence
from odcd.executor.kubernetes.ledger import Ledger
from odcd.executor.kubernetes.members import Members
from odcd.executor.kubernetes.objects import Pod
from tests.support.fakes.followers import NotFollowed

KEY = (7, 1, 0)
LISTING = b"12\n/home/dev\n/home/dev/thesis.tex\n"


def a_pod(*, claim: str = "odc-volume-12", state: str = "running", **meta: Any) -> Pod:
    return msgspec.convert(
        {
            "metadata": {"name": "odc-7-1-0", "namespace": "gpu-dev", "uid": "u",
                         "labels": {"odc.dev/kind": "reservation"}, **meta},
            "spec": {
                "containers": [{"name": "gpu-dev"}],
                "volumes": [{"persistentVolumeClaim": {"claimName": claim}}],
            },
            "status": {"phase": "Running", "containerStatuses": [
                {"name": "gpu-dev", "state": {state: {}}}]},
        },
        Pod,
    )  # fmt: skip


class Cluster:
    """Writes its input, and then does what the test set."""

    def __init__(
        self, written: bytes = LISTING, then: Callable[[], Awaitable[str | None]] | None = None
    ) -> None:
        self.written = written
        self.then = then
        self.commands: list[list[str]] = []
        self.running = self.largest = 0

    async def execute(
        self, namespace: str, pod: str, container: str, command: list[str], timeout_s: float,
        *, into: bytearray, max_bytes: int,
    ) -> str | None:  # fmt: skip
        self.commands.append(command)
        self.running += 1
        self.largest = max(self.largest, self.running)
        try:
            into += self.written
            await asyncio.sleep(0)
            return await self.then() if self.then else None
        finally:
            self.running -= 1


def keep(cluster: Cluster, *pods: Pod, save: Any = None) -> list[tuple[Any, ...]]:
    saved: list[tuple[Any, ...]] = []

    async def note(*what: Any) -> None:
        saved.append(what)

    async def all_of_it() -> None:
        listed = Contents(cast("Any", cluster), save or note)
        await asyncio.gather(*(listed.keep(pod, KEY) for pod in pods))

    asyncio.run(all_of_it())
    return saved


def refuses() -> Callable[[], Awaitable[str | None]]:
    async def then() -> str | None:
        raise ApiRefused(403, Status(message="no"), None)

    return then


def is_silent() -> Callable[[], Awaitable[str | None]]:
    async def then() -> str | None:
        raise RunnerDown("no answer")

    return then


def fails() -> Callable[[], Awaitable[str | None]]:
    async def then() -> str | None:
        return "sh: contents: not found"

    return then


def hangs() -> Callable[[], Awaitable[str | None]]:
    async def then() -> str | None:
        await asyncio.sleep(60)
        return None

    return then


def test_a_disk_is_listed_by_one_fixed_program() -> None:
    """STO-17: how much there is, and the tree; no text of a user is part of the command."""
    cluster = Cluster()
    assert keep(cluster, a_pod()) == [(7, 1, "/home/dev\n/home/dev/thesis.tex", 12 * 1024)]
    assert cluster.commands == [["/bin/sh", "/odc/job/contents"]]
    assert "$home" in FILES["contents"]


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(claim="data"),
        a_pod(state="terminated"),
        a_pod(state="waiting"),
        a_pod(deletionTimestamp="2026-01-01T00:00:00Z"),
    ],
    ids=["no-disk", "over", "not-begun", "is-being-deleted"],
)
def test_a_pod_without_a_listable_disk_is_not_asked(pod: Pod) -> None:
    """A failed listing is not reported either: an earlier leader may have listed the disk."""
    cluster = Cluster()
    assert keep(cluster, pod) == []
    assert cluster.commands == []


@pytest.mark.parametrize("then", [refuses(), is_silent(), fails(), hangs()],
                         ids=["refused", "silent", "failed", "hanging"])  # fmt: skip
def test_a_failed_listing_is_recorded_as_failed(
    then: Callable[[], Awaitable[str | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """STO-18: a failure blocks nothing; what came before it is kept."""
    monkeypatch.setattr(contents, "LIST_S", 0.05)
    assert keep(Cluster(b"", then), a_pod()) == [(7, 1, None, None)]
    [(_, _, text, used)] = keep(Cluster(LISTING, then), a_pod())
    assert (text, used) == (f"/home/dev\n/home/dev/thesis.tex\n\n{CUT}", 12 * 1024)


@pytest.mark.parametrize("error", [DatabaseDown("gone"), None], ids=["down", "hanging"])
def test_a_failing_database_does_not_block_the_listing(
    error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """STO-18"""
    monkeypatch.setattr(contents, "STORE_S", 0.05)

    async def save(*_: object) -> None:
        if error is not None:
            raise error
        await asyncio.sleep(60)

    keep(Cluster(), a_pod(), save=save)
    assert contents.LIST_S + 5.0 <= 20


def test_many_that_end_together_are_listed_a_few_at_a_time() -> None:
    """Connections are needed for the ends themselves."""
    cluster = Cluster()
    assert len(keep(cluster, *[a_pod()] * 100)) == 100
    assert cluster.largest == contents.AT_ONCE


def test_a_listing_is_truncated_and_escaped() -> None:
    """STO-17: at most 256 KiB, in whole lines; names are their users' text."""
    lines = b"".join(b"/home/dev/%06d\xc3\xa4\n" % n for n in range(20_000))
    text, used = read(b"7\n" + lines)
    assert text is not None
    assert used == 7 * 1024
    assert MAX_BYTES - 100 < len(text.encode()) <= MAX_BYTES
    assert text.endswith(f"ä\n{CUT}")
    strange, used = read(b"?\n/home/dev\n/home/dev/\x1b[2J\x00\xff\n")
    assert (strange, used) == ("/home/dev\n/home/dev/?[2J?\ufffd", None)
    assert read(b"") == (None, None)
    assert read(b"12\n") == (None, 12 * 1024)


class Ending:
    """The events of a pod, in order."""

    def __init__(self) -> None:
        self.done: list[str] = []

    async def keep(self, *_: object, **__: object) -> None:
        self.done.append("kept")

    async def remove(self, *_: object, **__: object) -> None:
        self.done.append("removed")


@pytest.mark.parametrize("how", ["stop", "condemn", "clean", "node-away"])
def test_a_disk_is_listed_however_its_job_ends(how: str) -> None:
    """STO-17: listed when the job ends or is cancelled, never became ready, or has no row; but a
    node that does not answer is not waited for."""

    async def work() -> list[str]:
        ledger, clock, ending = Ledger(), SystemClock(), Ending()
        members, background = Members(clock, ledger), Background(ledger.wake, clock)
        ends = Ends(
            members, {}, cast("Any", ending), cast("Any", ending), background, clock, 1.0,
            cast("Any", ending), Fence({}, clock, None, timedelta()), NotFollowed(),
        )  # fmt: skip
        pod = a_pod()
        if how == "node-away":
            pod.spec.node_name = "gone"
        members.pods[KEY[:2]] = {0: pod}
        if how in ("stop", "node-away"):
            ends.stop(KEY[:2], 1.0, again=True)
        elif how == "condemn":
            ends.condemn(pod, KEY, cast("Any", _Fact()))
        else:
            ends.clean(pod, KEY)
        async with asyncio.timeout(60):
            while "removed" not in ending.done:
                await asyncio.sleep(0.01)
        await background.close()
        return ending.done

    expected = ["removed"] if how == "node-away" else ["kept", "removed"]
    assert asyncio.run(work())[:2] == expected


class _Fact:
    detail = "late"
