"""The programs of steps in pods, run by the shells that images have."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odcd.executor.kubernetes.steps.files import TEXTS
from odcd.executor.kubernetes.steps.order import mark_of, quote, text_of
from tests.support.harness.daemon import gone
from tests.support.harness.signals import OF_THE_C_LIBRARY

pytestmark = pytest.mark.long
TIMEOUT_S = 60
_jobs = itertools.count(os.getpid() << 20)
"""Each step has a mark of its own. These steps share the processes of this machine, and a step ends
all processes with its mark, also those that another test run started at the same time."""


def _busybox(folder: Path) -> dict[str, str]:
    """Only busybox, also for all commands."""
    found = shutil.which("busybox")
    if found is None:
        pytest.skip("no busybox")
    listed = subprocess.run([found, "--list"], capture_output=True, text=True, check=True)
    folder.mkdir()
    for name in listed.stdout.split():
        (folder / name).symlink_to(found)
    return {"PATH": str(folder)}


class Pod:
    """A folder and a shell, as in a pod."""

    def __init__(self, shell: list[str], environment: dict[str, str], folder: Path) -> None:
        self.shell = shell
        self.environment = environment
        self.run_dir = folder / "run"
        self.run_dir.mkdir()
        self.key = (next(_jobs), 1, 0)
        self.step = self.run_dir / "step-0"
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, *tasks: dict[str, Any], **order: Any) -> None:
        encoded = {
            "work_dir": "/", "umask": 0o022, "grace_s": 30, "ends_at": None, "env": {"A": "it's"},
            "node_env": {"0": {}}, "files": [], "stdin": None,
            "programs": [task["words"] for task in tasks],
            "tasks": [
                {"rank": 0, "env": {"NUMBER": str(n)}, "in": None, "out": None, "err": None,
                 "program": n, **task}
                for n, task in enumerate(tasks)
            ], **order,
        }  # fmt: skip
        text = text_of(encoded, self.key, 0, other_dir="/", old=())
        process = self.open(f"{TEXTS['common']}{TEXTS['start']}{text}start_step; exit\n")
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"

    def open(self, text: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*self.shell, "-s"], env=self.environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._running.append(process)
        assert process.stdin is not None
        process.stdin.write(text.replace("/odc/run", str(self.run_dir)).encode())
        process.stdin.close()
        return process

    def call(self, *programs: str, text: str) -> bytes:
        own = f"step={quote(str(self.step))} mark={mark_of(self.key)}\n"
        process = self.open("".join(TEXTS[name] for name in programs) + own + text + "; exit\n")
        assert process.stdout is not None
        found = process.stdout.read()
        process.wait(TIMEOUT_S)
        return found

    def follow(self, tasks: int, known: str = "") -> tuple[dict[str, bytes], list[str]]:
        """The streams by kind and task, and the other records without their times."""
        numbers = " ".join(map(str, range(tasks)))
        text = f"tasks={quote(numbers)} owner=1 keep=4096 {known}\nfollow_step"
        data = self.call("common", "follow", text=text)
        streams: dict[str, bytes] = {}
        records: list[str] = []
        while data:
            line, _, data = data.partition(b"\n")
            words = line.decode().split()
            if words[0] in ("o", "e", "m"):
                size = int(words[2])
                streams[words[0] + words[1]] = streams.get(words[0] + words[1], b"") + data[:size]
                data = data[size:]
            elif words[0] != ".":
                records.append(" ".join(words[: 3 if words[0] == "x" else 2]))
        assert records.pop().startswith("z ")
        return streams, records

    def stop(self) -> None:
        if self.step.exists():
            self.call("common", text="stop_step cancelled KILL 0")
        for process in self._running:
            process.kill()
            process.wait()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


@pytest.fixture(params=["sh", "bash", "busybox"])
def pod(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pod]:
    name: str = request.param
    environment = {"PATH": os.environ["PATH"]}
    shell = [name, "--posix"] if name == "bash" else [name]
    if name == "busybox":
        environment = _busybox(tmp_path / "bin")
        shell = [str(tmp_path / "bin" / "sh")]
    made = Pod(shell, environment, tmp_path)
    yield made
    made.stop()


def sh(script: str) -> dict[str, Any]:
    return {"words": ["sh", "-c", script]}


def test_each_task_has_its_variables_streams_and_exit_code(pod: Pod) -> None:
    pod.start(*(sh('echo "$A $NUMBER"; echo err >&2; exit $NUMBER') for _ in range(3)))
    streams, records = pod.follow(3)
    assert streams == {
        **{f"o{n}": f"it's {n}\n".encode() for n in range(3)},
        **{f"e{n}": b"err\n" for n in range(3)},
    }  # fmt: skip
    assert sorted(records) == ["x 0 0", "x 1 1", "x 2 2"]


def test_a_step_is_started_once(pod: Pod) -> None:
    pod.start(sh("true"))
    text = f"{TEXTS['start']}\nold= \n"
    assert pod.call("common", text=f"{text}start_step") == b"known\n"


def test_no_signal_is_ignored_by_a_task(pod: Pod) -> None:
    """Shells start commands in the background with INT and QUIT ignored."""
    pod.start({"words": ["grep", "SigIgn", "/proc/self/status"]})
    streams, _ = pod.follow(1)
    assert int(streams["o0"].split()[1], 16) & ~OF_THE_C_LIBRARY == 0


def test_output_is_complete_and_continues_anywhere(pod: Pod) -> None:
    """More than fits into the files that are kept at the same time."""
    pod.start({"words": ["seq", "3000000"]}, {"words": ["seq", "10"]})
    deadline = time.monotonic() + TIMEOUT_S
    while not (pod.step / "exit.1").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert not (pod.step / "exit.0").exists(), "it waits until its output is read"
    streams, records = pod.follow(2, "at_o_1=5")
    assert streams["o0"] == b"".join(b"%d\n" % n for n in range(1, 3_000_001))
    assert streams["o1"] == b"".join(b"%d\n" % n for n in range(1, 11))[5:]
    assert sorted(records) == ["x 0 0", "x 1 0"]


def test_what_a_task_leaves_behind_is_ended(pod: Pod, tmp_path: Path) -> None:
    left = tmp_path / "left"
    pod.start(sh(
        f"setsid sh -c 'trap \"\" TERM; echo $$ >{left}; while :; do sleep 0.05; done' & "
        f"until [ -s {left} ]; do sleep 0.02; done"
    ))  # fmt: skip
    pod.follow(1)
    assert gone(int(left.read_text()))


LOOP = "echo up; while :; do sleep 0.05; done"


def _stop_when_up(pod: Pod, script: str, grace_s: int) -> None:
    pod.start(sh(script))
    out = pod.step / "o.0.0"
    deadline = time.monotonic() + TIMEOUT_S
    while not (out.exists() and out.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    pod.call("common", text=f"stop_step cancelled TERM {grace_s}")


def test_a_step_that_is_ended_has_its_grace_to_save(pod: Pod) -> None:
    _stop_when_up(pod, f"trap 'echo saved; exit 5' TERM; {LOOP}", 60)
    streams, records = pod.follow(1)
    assert streams["o0"] == b"up\nsaved\n"
    assert sorted(records) == ["s cancelled", "x 0 5"]


def test_a_step_that_ignores_term_is_killed_after_its_grace(pod: Pod) -> None:
    _stop_when_up(pod, f"trap '' TERM; {LOOP}", 1)
    streams, records = pod.follow(1)
    assert streams["o0"] == b"up\n"
    assert sorted(records) == ["s cancelled", "x 0 137"]


def test_input_arrives_once_and_ends(pod: Pod) -> None:
    pod.start({"words": ["wc", "-c"]}, {"words": ["head", "-c", "3"]}, stdin="all")
    pieces = b""
    for at in (0, 65536, 65536, 131072):
        pieces += b"%d 65536\n" % at + b"x" * 65536
    script = f"{TEXTS['common']}{TEXTS['give']}step={quote(str(pod.step))}\ngive_input; exit\n"
    process = subprocess.Popen(
        [*pod.shell, "-s"], env=pod.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(script.encode())
        process.stdin.flush()
        assert process.stdout.readline() == b"ready\n"
        for at, arrived in ((0, 65536), (65536, 131072), (65536, 131072), (131072, 196608)):
            process.stdin.write(b"%d 65536\n" % at + b"x" * 65536)
            process.stdin.flush()
            assert int(process.stdout.readline()) == arrived
        process.stdin.write(b"196608 0\n")
        process.stdin.flush()
        assert int(process.stdout.readline()) == 196608
    streams, _ = pod.follow(2)
    assert streams == {"o0": b"196608\n", "o1": b"xxx"}


def test_a_program_or_a_file_that_is_missing_is_reported(pod: Pod) -> None:
    pod.start({"words": ["no-such-program"]}, {"words": ["true"], "out": 0},
              files=[{"path": "/nowhere/x", "truncate": True}])  # fmt: skip
    streams, records = pod.follow(2)
    assert streams == {
        "m0": b"execve(): no-such-program: No such file or directory\n",
        "m1": b"Could not open stdout file /nowhere/x\n",
    }  # fmt: skip
    assert sorted(records) == ["x 0 2", "x 1 1"]


def test_a_call_in_a_pod_is_announced_and_answered_once(pod: Pod, tmp_path: Path) -> None:
    """Also when the daemon sends a piece again, because it does not know whether it arrived."""
    client = tmp_path / "srun"
    client.write_text(TEXTS["client"].replace("/odc/run", str(pod.run_dir)))
    made = subprocess.Popen(
        [*pod.shell, str(client), "-n1", "a  b"], env={**pod.environment, "GIVEN": "x\ny"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
    )  # fmt: skip
    common = TEXTS["common"] + TEXTS["listen"]
    listening = pod.open(f"{common}listen; exit\n")
    assert listening.stdout is not None
    head = listening.stdout.readline().split()
    assert head[:2] == [b"c", str(made.pid).encode()]
    about = listening.stdout.readline().split()
    assert about[:2] == [b"srun", b"2"]
    assert listening.stdout.readline() == f"{tmp_path}\n".encode()
    assert listening.stdout.read(int(head[2])) == b"-n1\0a  b\0"
    assert b"GIVEN=x\ny" in listening.stdout.read(int(head[3])).split(b"\0")
    pieces = [(0, b"out ", b"", "-"), (0, b"out ", b"", "-"), (1, b"put\n", b"err\n", "-"),
              (2, b"", b"", "7")]  # fmt: skip
    giving = subprocess.Popen(
        [*pod.shell, "-s"], env=pod.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with giving:
        assert giving.stdin is not None
        assert giving.stdout is not None
        text = f"{common}give_call {made.pid}; exit\n".replace("/odc/run", str(pod.run_dir))
        giving.stdin.write(text.encode())
        giving.stdin.flush()
        assert giving.stdout.readline() == b"ready\n"
        for number, out, err, code in pieces:
            position = b"%d token\n" % number
            line = f"{number} {len(out)} {len(err)} {len(position)} 0 {code} 0\n"
            giving.stdin.write(line.encode() + out + err + position)
            giving.stdin.flush()
            assert giving.stdout.readline() == b"ok\n"
    out, err = made.communicate(timeout=TIMEOUT_S)
    assert (made.returncode, out, err) == (7, b"out put\n", b"err\n")
    assert not list((pod.run_dir / "calls").glob("call.*"))
    listening.kill()
