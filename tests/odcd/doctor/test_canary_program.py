"""The program with which `odcd doctor --canaries` tests the network, on real sockets."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from odcd.doctor.canary import LISTENS, NO_PROGRAM, PORT, PROBED, SCRIPT

LANGUAGES = ("python3", "perl")
TOOLS = ("sh", "cat", "tee")


@pytest.fixture(params=LANGUAGES)
def only(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """An environment whose PATH has one of the languages."""
    return environment(tmp_path, request.param)


def environment(tmp_path: Path, *languages: str) -> dict[str, str]:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in (*TOOLS, *languages):
        # Not a launcher that needs other programs.
        own = name == "python3"
        found = str(Path(sys.executable).resolve()) if own else shutil.which(name)
        if found is None:
            pytest.skip(f"needs {name}")
        (programs / name).symlink_to(found)
    return {
        "PATH": str(programs), "ODC_CANARY_MESSAGE": str(tmp_path / "message"),
        "ODC_CANARY_RANK": "0",
    }  # fmt: skip


def command(*args: str) -> list[str]:
    shell = shutil.which("sh")
    assert shell is not None
    return [shell, "-c", SCRIPT, "canary", *args]


@contextlib.contextmanager
def a_listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    server.accept()[0].close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_it_reports_what_it_reached(only: dict[str, str]) -> None:
    with a_listener() as port:
        targets = [
            f"instance metadata=127.0.0.1={closed_port()}=closed",
            f"a pod of another user=127.0.0.1={port}=closed",
            f"its own gang=localhost={port}=open",
        ]
        subprocess.run(command("probe", "0", "60", *targets), env=only, check=True, timeout=120)
    lines = Path(only["ODC_CANARY_MESSAGE"]).read_text().splitlines()
    assert lines == [PROBED, "a pod of another user", "its own gang"]


def test_a_target_that_is_never_open_is_not_waited_for_forever(only: dict[str, str]) -> None:
    targets = [f"its own gang=127.0.0.1={closed_port()}=open"]
    subprocess.run(command("probe", "0", "0", *targets), env=only, check=True, timeout=120)
    assert Path(only["ODC_CANARY_MESSAGE"]).read_text().splitlines() == [PROBED]


@pytest.mark.parametrize("rank", ["0", "1"])
def test_it_listens_until_it_is_ended(only: dict[str, str], rank: str) -> None:
    """Rank 1 of a gang listens, whatever its arguments are."""
    port = closed_port()
    own = only | {"ODC_CANARY_PORT": str(port), "ODC_CANARY_RANK": rank}
    args = ["listen"] if rank == "0" else ["probe", "0", "0"]
    with subprocess.Popen(
        command(*args), env=own, stdout=subprocess.PIPE, text=True, process_group=0
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == LISTENS
            socket.create_connection(("127.0.0.1", port), 10).close()
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_an_image_without_the_languages_is_reported(tmp_path: Path) -> None:
    own = environment(tmp_path)
    done = subprocess.run(
        command("listen"), env=own, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 3
    assert NO_PROGRAM in done.stdout


def test_the_port_is_the_one_that_the_doctor_probes() -> None:
    assert f'"{PORT}"' in SCRIPT
    assert f"|| {PORT}" in SCRIPT
