"""A child that works for root without root's rights returns only data to root, and nothing that
root would execute."""

from __future__ import annotations

import fcntl
import os
import pickle
import signal
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from odcd.database.backup import Summary
from odcd.errors import OdcError, WrongState
from odcd.home.database_access import as_account
from odcd.home.postgres import EmbeddedPostgres
from tests.support.harness.daemon import Odc, wait
from tests.support.harness.users import needs_root

pytestmark = needs_root


def pipes() -> dict[int, str]:
    found: dict[int, str] = {}
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if (name := entry.readlink().name).startswith("pipe:"):
                found[int(entry.name)] = name
    return found


def answering(data: bytes) -> Any:
    """The work of an attacker who controls the child and can send any answer."""
    others = pipes().items()

    def work() -> None:
        for fd in dict(pipes().items() - others):
            # Descriptors that libraries open after a fork are there, too.
            if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY:
                os.write(fd, data)
        os._exit(0)

    return work


class Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("done", [True, False])
def test_an_answer_of_the_child_process_cannot_run_code_as_root(
    odc_home: Path, tmp_path: Path, done: bool
) -> None:
    """Before: the answer was unpickled by root."""
    taken = tmp_path / "root-was-here"
    answer = pickle.dumps((done, Evil(taken)))
    with pytest.raises(OdcError, match="returned an invalid answer"):
        as_account(EmbeddedPostgres(odc_home), answering(answer), of=Summary)
    assert not taken.exists()


@pytest.mark.parametrize(
    "answer",
    [
        b"{}", b"[]", b"null", b'{"value": {"jobs": "many"}}', b'{"value": 1, "more": 2}',
        b'{"refused": ["OD012"]}', b"\xff",
    ],
)  # fmt: skip
def test_an_answer_of_another_form_is_refused(odc_home: Path, answer: bytes) -> None:
    with pytest.raises(OdcError, match="returned an invalid answer"):
        as_account(EmbeddedPostgres(odc_home), answering(answer), of=Summary)


def test_results_and_refusals_of_the_child_process_arrive(odc_home: Path) -> None:
    postgres = EmbeddedPostgres(odc_home)
    made = Summary(made_at=datetime(2026, 1, 1, tzinfo=UTC), jobs=3, pending=2, running=1)
    assert as_account(postgres, lambda: made, of=Summary) == made
    assert as_account(postgres, os.geteuid, of=int) == postgres.account.uid

    def refuse() -> None:
        raise WrongState("it is so", "Do that.")

    with pytest.raises(WrongState) as raised:
        as_account(postgres, refuse)
    assert (raised.value.message, raised.value.hint) == ("it is so", "Do that.")
    with pytest.raises(OdcError, match="interrupted"):
        as_account(postgres, lambda: os._exit(0))


@pytest.mark.long
def test_a_detached_daemon_survives_the_death_of_its_launcher(odc: Odc) -> None:
    """Before: BrokenPipe ended the daemon that was just ready."""
    command = [sys.executable, "-m", "odcd", "up", "--detach", "--node", "n1=h100:8"]
    starting = subprocess.Popen(command, env=odc.environment, stderr=subprocess.DEVNULL)
    log = odc.home / "odcd.log"
    # The child exists, and PostgreSQL is starting, which takes seconds.
    wait(lambda: log.exists() and "postgres.starting" in log.read_text(), odc.log)
    starting.send_signal(signal.SIGKILL)
    starting.wait()
    job = wait(lambda: _submitted(odc), odc.log)
    assert odc.wait_for(job, "COMPLETED")["exit_code"] == 0
    assert "BrokenPipe" not in odc.log()


def _submitted(odc: Odc) -> int | None:
    result = odc.odcctl("submit", "--parsable", "--wrap", "true", check=False)
    return int(result.stdout) if result.returncode == 0 else None
