"""Clients of a terminal that never read cost its shim, which may be root's, little memory."""

from __future__ import annotations

import os
import time
from pathlib import Path

from odcd.runner import processes
from tests.attack.test_runner_stalls import ANN, attach
from tests.attack.test_runner_stalls import folder as folder
from tests.attack.test_runner_stalls import home as home
from tests.attack.test_runner_stalls import work_dir as work_dir
from tests.support.harness.runner import RunnerHome, a_dispatch, until
from tests.support.harness.users import needs_root

pytestmark = needs_root

CLIENTS = 30
WRITTEN = 16 * 1024 * 1024
MOST_MIB = 100


def test_clients_that_never_read_share_one_buffer(home: RunnerHome, work_dir: Path) -> None:
    """Before: 8 MiB for each of them. A user with 100 connections to a terminal made its shim take
    600 MiB of root's memory within 14 s, and may have 200 of them."""
    script = (
        "#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.02; done\n"
        f"head -c {WRITTEN} /dev/zero\ntouch over\nexec sleep 600\n"
    )
    client = home.client()
    client.start(a_dispatch(1, script, work_dir, pty=True, **ANN))
    attached = [until(lambda: attach(client)) for _ in range(CLIENTS)]
    (work_dir / "go").touch()
    most = 0
    deadline = time.monotonic() + 60
    while not (work_dir / "over").exists() and time.monotonic() < deadline:
        most = max([most, *map(mib_of, processes.children(home.pid))])
        time.sleep(0.05)
    assert (work_dir / "over").exists()
    assert most < MOST_MIB
    # One that reads is still served.
    fd = until(lambda: attach(client))
    assert os.read(fd, 1)
    for one in [*attached, fd]:
        os.close(one)


def mib_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) // 256
    except OSError:
        return 0
