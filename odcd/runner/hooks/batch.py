"""The task epilog of a batch script, as its shim runs it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from odcd.runner.hooks.task import WHY_BYTES, become_task_epilog
from odcd.runner.waiting import Children


def run_batch_epilog(
    order: dict[str, Any], children: Children, serve: dict[int, Callable[[], None]]
) -> str | None:
    """Run the task epilog, if there is one, after the script has ended. Returns a line about its
    failure. serve: see Children.wait_for."""
    if not (order["hooks"] and order["hooks"]["task_epilog"]):
        return None
    group_fd = None
    try:
        reading, writing = os.pipe2(os.O_CLOEXEC)
        if order["cgroup"]:
            group_fd = os.open(f"{order['cgroup']}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
        child = os.fork()
        if child == 0:
            become_task_epilog(order, order["env"], group_fd, writing)
    except OSError as error:
        return f"slurmstepd: error: the task epilog failed: {error.strerror}"
    os.close(writing)
    children.wait_for(child, serve)
    os.set_blocking(reading, False)
    try:
        why = os.read(reading, WHY_BYTES).decode(errors="replace")
    except BlockingIOError:
        why = ""
    finally:
        os.close(reading)
        if group_fd is not None:
            os.close(group_fd)
    return f"slurmstepd: error: {why}" if why else None
