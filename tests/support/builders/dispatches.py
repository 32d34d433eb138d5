"""Builders of what an executor is given; a test states only what matters to it."""

from __future__ import annotations

import os
import pwd
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from odcd.executor.base import Expected
from odcd.records.dispatch import Dispatch, Member
from tests.support.harness.runner import digest_of


def a_member(rank: int = 0, **changes: Any) -> Member:
    member = Member(
        rank=rank, node=f"gpu-{rank + 1:02}", gpu_type="h100", gpu_indexes=(), cpus=4, mem_mib=1024,
        node_gpus=8, node_cpus=192, node_mem_mib=2097152, virtual=True,
    )  # fmt: skip
    return replace(member, **changes)


def expecting(*keys: tuple[int, int, int]) -> Callable[[], Awaitable[list[Expected]]]:
    """The dispatch that the database would give an executor: these members, none of them
    started."""

    async def read() -> list[Expected]:
        return [(*key, False) for key in keys]

    return read


def a_dispatch_of(
    script: str = "#!/bin/sh\n", environment: str = "{}", **changes: Any
) -> tuple[Dispatch, dict[str, str]]:
    """The dispatch, and the texts it names. Of the user who runs the test."""
    # Not before its runner: one that is new calls what was ordered earlier lost.
    soon = datetime.now(UTC) + timedelta(seconds=60)
    dispatch = Dispatch(
        term=1, job_id=1, attempt=1, array_job_id=None, array_task_id=None, array_min=None,
        array_max=None, array_count=None, array_step=None, name="train",
        user=pwd.getpwuid(os.geteuid()).pw_name, uid=os.geteuid(), gid=os.getegid(),
        account="default", partition="main", qos="normal", work_dir="/tmp", umask=0o022,
        stdin=None, stdout=None, stderr=None, open_mode="truncate",
        script_digest=digest_of(script), environment_digest=digest_of(environment), args=(),
        options={}, submit_host="login", restarts=0, started_at=soon, ends_at=None,
        signal_number=None, signal_before_s=None, signal_batch=False, members=(a_member(),),
    )  # fmt: skip
    texts = {digest_of(script): script, digest_of(environment): environment}
    return replace(dispatch, **changes), texts
