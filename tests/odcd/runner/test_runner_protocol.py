"""Old or new, well-formed or not: the runner answers, and continues."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from odcd.runner import launch, protocol
from tests.support.harness.runner import PATIENCE_S, RequestRefused, RunnerHome, a_dispatch


def test_a_newer_daemon_and_this_runner_agree_on_the_highest_common_version(
    home: RunnerHome, work_dir: Path
) -> None:
    newer = home.client(versions=(1, 2, 9))
    assert newer.hello["version"] == max(protocol.VERSIONS)
    # Within a version, additions of a newer one are ignored.
    dispatch = a_dispatch(1, "#!/bin/sh\nexit 2\n", work_dir, color="green")
    dispatch["members"][0]["shape"] = "round"
    newer.start(dispatch)
    assert newer.wait_end(1)["exit_code"] == 2


def test_a_daemon_without_a_common_version_is_refused(home: RunnerHome) -> None:
    with pytest.raises(RequestRefused) as refused:
        home.client(versions=(2, 3))
    assert refused.value.code == "no_common_version"


def _lines(home: RunnerHome, *lines: bytes) -> list[dict[str, object]]:
    """Send raw lines over one connection; an answer to each."""
    with launch.connect(home.run_dir) as sock:
        sock.settimeout(PATIENCE_S)
        answers = sock.makefile("rb")
        messages: list[dict[str, object]] = []
        for line in lines:
            sock.sendall(line + b"\n")
            messages.append(json.loads(answers.readline()))
        answers.close()
    return messages


HELLO = json.dumps({"id": 1, "op": "hello", "versions": [1], "term": 1}).encode()


@pytest.mark.parametrize(
    "line",
    [
        b"", b"nonsense", b"[1]", b"\xff\xfe", b'{"op": "no such"}', b'{"op": "_hello"}',
        b'{"op": "start"}', b'{"op": "start", "dispatches": 7}',
        b'{"op": "start", "dispatches": [{}]}', b'{"op": "stop", "job": 1}',
        b'{"op": "adopt", "expected": [[1]]}', b'{"op": "acknowledge", "facts": [1]}',
        b'{"op": "hello", "versions": "1"}', b'{"op": "state", "job": "x"}',
    ],
)  # fmt: skip
def test_malformed_requests_are_answered_and_change_nothing(home: RunnerHome, line: bytes) -> None:
    first, refused = _lines(home, HELLO, line)
    assert "ok" in first
    assert "error" in refused
    client = home.client()
    assert client.ask("list")["members"] == []


def test_a_malformed_dispatch_starts_no_job_of_its_batch(home: RunnerHome, work_dir: Path) -> None:
    good = a_dispatch(1, "#!/bin/sh\n", work_dir)
    bad = a_dispatch(2, "#!/bin/sh\n", work_dir)
    del bad["members"][0]["limits"]
    client = home.client()
    with pytest.raises(RequestRefused) as refused:
        client.start(good, bad)
    assert refused.value.code == "bad_request"
    assert client.ask("list")["members"] == []


def test_nothing_is_done_before_hello(home: RunnerHome) -> None:
    (answer,) = _lines(home, b'{"id": 4, "op": "list"}')
    assert answer == {"id": 4, "error": {"code": "bad_request", "message": "say hello first"}}


def test_a_peer_that_disconnects_in_the_middle_of_a_line_does_no_harm(home: RunnerHome) -> None:
    with launch.connect(home.run_dir) as sock:
        sock.sendall(b'{"id": 1, "op": "hel')
    assert home.client().ask("list") == {"members": []}


def test_an_observer_that_does_not_read_does_no_harm(home: RunnerHome, work_dir: Path) -> None:
    deaf = home.client()
    dispatches = [a_dispatch(job, "#!/nowhere\n" + "x" * 200, work_dir) for job in range(1, 300)]
    deaf.start(*dispatches)
    other = home.client()
    other.wait(lambda facts: len({f["job"] for f in facts}) == 299)


def test_the_socket_is_its_owners_alone(home: RunnerHome) -> None:
    socket = home.run_dir / "runner.sock"
    assert socket.stat().st_mode & 0o777 == 0o600
    assert socket.stat().st_uid == os.geteuid()


def test_a_folder_with_a_long_path_serves(tmp_path: Path, work_dir: Path) -> None:
    home = RunnerHome(tmp_path / ("x" * 120) / "runner")
    home.launch()
    client = home.client()
    client.start(a_dispatch(1, "#!/bin/sh\nexit 3\n", work_dir))
    assert client.wait_end(1)["exit_code"] == 3
    home.end()


def test_an_unwritable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises((launch.LaunchFailed, OSError), match="Not a directory"):
        launch.launch_runner(tmp_path / "file" / "runner", os.geteuid(), os.getegid())
