"""No key, ticket, cookie or secret of a job stands in a log, a command line, an environment of
odc's own processes, or an address that was asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.attack.strangers import ALICE, BOB, ask, enter, free_port, over_socket, ticket_of
from tests.support.harness.daemon import Odc, wait
from tests.support.harness.users import account, folder_of, needs_root

SECRET = "hunter2-of-the-job"
USER = "games"


class Watch(threading.Thread):
    """Reads command lines and environments of all processes, again and again."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.lines: set[bytes] = set()
        self.environments: set[tuple[bytes, bytes]] = set()
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.01):
            self.look()

    def look(self) -> None:
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    line = (entry / "cmdline").read_bytes()
                    self.lines.add(line)
                    self.environments.add((line, (entry / "environ").read_bytes()))

    def stop(self) -> None:
        self.look()
        self._over.set()
        self.join()


@contextmanager
def watching() -> Iterator[Watch]:
    watch = Watch()
    watch.start()
    try:
        yield watch
    finally:
        watch.stop()


@pytest.mark.long
@needs_root
def test_no_secret_of_a_run_is_left_in_a_place_that_others_can_read(odc: Odc) -> None:
    folder = odc.work.with_name("audit")
    folder.mkdir()
    folder.chmod(0o777)
    work, port = folder_of(account(USER), odc.work / "of-user"), free_port()
    browser = odc.work / "browser"
    browser.write_text("#!/bin/sh\nsleep 0.3\n")
    browser.chmod(0o755)
    odc.environment |= {
        "ODC_LISTEN": f"127.0.0.1:{port}", "ODC_AUDIT_LOG": str(folder / "audit.log"),
        "BROWSER": str(browser), "TMPDIR": str(odc.work),
    }  # fmt: skip
    secrets = {"of the job": SECRET}
    with watching() as watch, odc.serving("up", "--node", "n1=h100:8"):
        secrets["key"] = key = odc.odcd("token", USER).stdout.strip()
        odc.environment |= {"ODC_TOKEN": key, "WORDS_OF_JOB": SECRET}
        submit = ("submit", "--parsable", "-D", str(work), "--wrap", "sleep 1; env | wc -l")
        submitted = odc.odcctl("--server", f"http://127.0.0.1:{port}", *submit)
        del odc.environment["ODC_TOKEN"], odc.environment["WORDS_OF_JOB"]
        job = int(submitted.stdout)
        opened = odc.odcctl("page", "--open").stdout
        secrets["ticket of --open"] = opened.strip().partition("ticket=")[2]
        secrets["ticket"] = ticket = ticket_of(odc, ALICE)["ticket"]
        enter(BOB, port, ticket)
        secrets["cookie"] = enter(ALICE, port, ticket).cookie.partition("=")[2]
        ask(BOB, port, "GET", "/page/queue", Cookie=f"odc-page-{port}={secrets['cookie']}")
        ask(ALICE, port, "GET", f"/page/enter?ticket={ticket}")
        ask(ALICE, port, "GET", f"/v1/jobs?token={key}", Accept="*/*")
        ask(ALICE, port, "GET", "/v1/nodes", Authorization=f"Bearer {key}x", Accept="*/*")
        over_socket(odc.home / "odcd.sock", BOB, "GET", f"/v1/jobs/{job}/logs")
        # Rotation and logout handle keys too.
        ask(ALICE, port, "POST", "/v1/keys/rotate", Authorization=f"Bearer {key}", Accept="*/*")
        odc.odcctl("logout", "--user", USER)
        odc.wait_for(job, "COMPLETED")
        wait(lambda: (folder / "audit.log").read_text().count("\n") > 5, lambda: "no audit")
    assert all(len(secret) > 10 for secret in secrets.values()), secrets
    found = [
        *_in_logs(odc, folder, secrets), *_in_processes(watch, secrets),
    ]  # fmt: skip
    assert found == []


def _in_logs(odc: Odc, folder: Path, secrets: dict[str, str]) -> list[str]:
    """The database's own data contains environments, so only its log is searched."""
    data = odc.home / "data"
    kept = [
        path for path in odc.home.rglob("*")
        if path.is_file() and (data not in path.parents or "log" in path.suffix)
        and "runner" not in path.relative_to(odc.home).parts[:1]
    ]  # fmt: skip
    logs = [*kept, folder / "audit.log", odc.home.with_name(f"{odc.home.name}.log")]
    assert logs[-1].stat().st_size > 0
    return [
        f"{path} has the {name}"
        for path in logs
        for name, secret in secrets.items()
        if secret.encode() in path.read_bytes()
    ]


def _in_processes(watch: Watch, secrets: dict[str, str]) -> list[str]:
    found = [
        f"the command line {line!r} has the {name}"
        for line in watch.lines
        for name, secret in secrets.items()
        if secret.encode() in line
    ]
    for line, environment in watch.environments:
        # The user's own command has the key and the words that it was given; and the job has them.
        own = b"odcctl" in line or (b"odcd" not in line and b"postgres" not in line)
        found += [
            f"the environment of {line!r} has the {name}"
            for name, secret in secrets.items()
            if not own and secret.encode() in environment
        ]
    return found
