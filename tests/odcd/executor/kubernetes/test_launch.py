"""How a container starts, with a real shell; and that no part of a job is interpreted as code."""

from __future__ import annotations

import base64
import gzip
import os
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odcd.executor.kubernetes.launch import (
    MAX_PLAIN_BYTES,
    command,
    literal,
    script_data,
    signal_command,
)
from tests.support.builders.dispatches import a_dispatch_of, a_member
from tests.support.harness.runner import PATIENCE_S

REFERENCE = re.compile(r"\$(\$|\([A-Za-z_][A-Za-z0-9_]*\))")


def expanded(text: str, environment: dict[str, str]) -> str:
    """As Kubernetes does: $$ is $, $(NAME) the variable's value if there is one."""
    return REFERENCE.sub(
        lambda found: "$" if found[1] == "$" else environment.get(found[1][1:-1], found[0]), text
    )


class Container:
    """A folder that represents the container's /odc."""

    def __init__(self, folder: Path, script: str, *, inline: bool = False) -> None:
        """inline: the script is part of the command, and not in a file."""
        self.folder = folder
        self.script = script
        self.inline = inline
        for name in ("job", "run", "work"):
            (folder / name).mkdir(mode=0o777)
        data = script_data(script)
        assert data is not None
        if inline:
            return
        if "data" in data:
            self._write("script", data["data"]["script"].encode())
        else:
            self._write("script.gz", base64.b64decode(data["binaryData"]["script.gz"]))

    def _write(self, name: str, content: bytes) -> None:
        path = self.folder / "job" / name
        path.write_bytes(content)
        path.chmod(0o555)

    def argv(self, **fields: Any) -> list[str]:
        dispatch, _ = a_dispatch_of(self.script, work_dir=str(self.folder / "work"), **fields)
        words = command(dispatch, a_member(), self.script if self.inline else None)
        arguments = [expanded(word, {"HOME": "/root"}) for word in words]
        return [*arguments[:2], arguments[2].replace("/odc/", f"{self.folder}/"), *arguments[3:]]

    def begin(self, **fields: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.argv(**fields), cwd=self.folder / "work", text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, **fields: Any) -> tuple[int, str, str]:
        process = self.begin(**fields)
        out, err = process.communicate(timeout=PATIENCE_S)
        return process.returncode, out, err

    def read(self, name: str) -> str:
        return (self.folder / "work" / name).read_text()


INLINE = pytest.mark.parametrize("inline", [False, True], ids=["file", "inline"])


@INLINE
def test_a_script_is_run_with_its_arguments_umask_and_exit_code(
    tmp_path: Path, inline: bool
) -> None:
    script = '#!/bin/sh\numask\nprintf "<%s>" "$@"\nexit 7\n'
    container = Container(tmp_path, script, inline=inline)
    arguments = ("a b", "$(HOME)", "$$", "`id`", '"; exit 1; "', "*", "")
    code, out, _ = container.run(args=arguments, umask=0o027)
    assert code == 7
    assert out == "0027\n" + "".join(f"<{word}>" for word in arguments)


def test_the_script_process_receives_the_signal(tmp_path: Path) -> None:
    container = Container(tmp_path, "#!/bin/sh\necho up\nexec sleep 60\n")
    process = container.begin()
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    assert int((tmp_path / "run" / "pid").read_text()) == process.pid
    process.terminate()
    assert process.wait(PATIENCE_S) == -signal.SIGTERM
    process.communicate()


@pytest.mark.parametrize(
    "text",
    ["$(HOME) $$ `id` \\n %s %%\n\n\n", "no line end", "'quotes' \"of\" both", "é漢\x01\x7f"],
    ids=["references", "no-line-end", "quotes", "bytes"],
)
def test_an_inline_script_is_not_changed(tmp_path: Path, text: str) -> None:
    script = f'#!/bin/sh\nexec cat "$0"\n{text}'
    assert Container(tmp_path, script, inline=True).run()[:2] == (0, script)
    assert (tmp_path / "run" / "script").stat().st_mode & 0o777 == 0o500


def test_a_long_script_is_compressed(tmp_path: Path) -> None:
    filler = "".join(f"# {'x' * 100}\n" for _ in range(MAX_PLAIN_BYTES // 90))
    script = f'#!/bin/sh\n{filler}echo "$1" done\n'
    data = script_data(script)
    assert data is not None
    assert gzip.decompress(base64.b64decode(data["binaryData"]["script.gz"])).decode() == script
    assert Container(tmp_path, script).run(args=("all",))[:2] == (0, "all done\n")


def test_a_script_too_large_for_a_config_map_is_detected() -> None:
    noise = random.Random(1).randbytes(2_000_000).hex()
    assert script_data(f"#!/bin/sh\n# {noise}\n") is None


@INLINE
def test_output_goes_to_files_and_to_the_log(tmp_path: Path, inline: bool) -> None:
    script = "#!/bin/sh\necho out\necho err >&2\ncat\nexit 3\n"
    container = Container(tmp_path, script, inline=inline)
    (tmp_path / "work" / "in").write_text("typed\n")
    code, out, err = container.run(stdout="o-%j", stderr="e-%j", stdin="in")
    assert (code, out, err) == (3, "out\ntyped\n", "err\n")
    assert (container.read("o-1"), container.read("e-1")) == ("out\ntyped\n", "err\n")


@pytest.mark.parametrize(("mode", "expected"), [("truncate", "new\n"), ("append", "old\nnew\n")])
def test_files_are_emptied_or_added_to(tmp_path: Path, mode: str, expected: str) -> None:
    container = Container(tmp_path, "#!/bin/sh\necho new\n")
    (tmp_path / "work" / "o").write_text("old\n")
    assert container.run(stdout="o", open_mode=mode)[0] == 0
    assert container.read("o") == expected


def test_both_streams_share_a_file_unless_each_has_one(tmp_path: Path) -> None:
    container = Container(tmp_path, "#!/bin/sh\necho out\necho err >&2\n")
    assert container.run(stdout="both")[:2] == (0, "out\nerr\n")
    assert container.read("both") == "out\nerr\n"


def test_a_job_with_output_files_is_signalled_and_has_its_grace(tmp_path: Path) -> None:
    script = (
        "#!/bin/sh\ntrap 'echo saving; sleep 0.3; echo saved; exit 4' TERM\necho up\n"
        "while :; do sleep 0.1; done\n"
    )
    container = Container(tmp_path, script)
    process = container.begin(stdout="o")
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.terminate()
    assert process.wait(PATIENCE_S) == 4
    assert process.stdout.read() == "saving\nsaved\n"
    assert container.read("o") == "up\nsaving\nsaved\n"
    process.communicate()


def test_a_job_with_output_files_that_is_signalled_before_its_start_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    mkfifo = tmp_path / "bin" / "mkfifo"
    mkfifo.write_text(f'#!/bin/sh\nkill -TERM "$PPID"\nexec {shutil.which("mkfifo")} "$@"\n')
    mkfifo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    container = Container(tmp_path, "#!/bin/sh\necho ran\n")
    assert container.run(stdout="o")[:2] == (128 + signal.SIGTERM, "")


def test_an_unwritable_output_file_is_reported_and_the_job_continues(tmp_path: Path) -> None:
    container = Container(tmp_path, "#!/bin/sh\necho out\nexit 5\n")
    code, out, err = container.run(stdout="no/such/folder/o")
    assert (code, out) == (5, "out\n")
    assert "no/such/folder/o" in err


@pytest.mark.parametrize("batch_only", [True, False], ids=["batch", "all"])
@pytest.mark.parametrize("files", [{}, {"stdout": "o"}], ids=["plain", "with files"])
def test_a_signal_reaches_the_script(
    tmp_path: Path, files: dict[str, str], batch_only: bool
) -> None:
    script = "#!/bin/sh\ntrap 'echo told; exit 9' USR1\necho up\nwhile :; do sleep 0.1; done\n"
    container = Container(tmp_path, script)
    process = container.begin(**files)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    command = list(signal_command("USR1", batch_only=batch_only))
    command[2] = command[2].replace("/odc/", f"{tmp_path}/")
    assert subprocess.run(command, check=False).returncode == 0
    assert process.wait(PATIENCE_S) == 9
    assert "told" in process.stdout.read()
    process.communicate()


@pytest.mark.parametrize("batch_only", [True, False], ids=["batch", "all"])
def test_a_signal_for_a_script_that_has_just_ended_is_no_failure(
    tmp_path: Path, batch_only: bool
) -> None:
    """Seen on real nodes: the event `not_signalled` for a member that ended by its signal."""
    container = Container(tmp_path, "#!/bin/sh\nexit 0\n")
    assert container.run()[0] == 0
    command = list(signal_command("USR1", batch_only=batch_only))
    command[2] = command[2].replace("/odc/", f"{tmp_path}/")
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    "shell", ["sh", *(pytest.param(shell, marks=pytest.mark.long) for shell in ("bash", "busybox"))]
)
def test_the_signal_before_the_time_limit_is_sent_once(tmp_path: Path, shell: str) -> None:
    """Before: a member whose acknowledgement was lost received it twice. It still does if the
    command was killed before it could note that it has sent the signal."""
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}")
    loop = "while :; do sleep 0.02; done"
    script = f"#!/bin/sh\ntrap 'echo told' USR1\ntrap 'echo end; exit 0' USR2\necho up\n{loop}\n"
    container = Container(tmp_path, script)
    process = container.begin()
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"

    def send(name: str, *, once: bool) -> int:
        command = list(signal_command(name, batch_only=True, once=once))
        command[2] = command[2].replace("/odc/", f"{tmp_path}/")
        run = subprocess.run(
            ["busybox", "sh", *command[1:]] if shell == "busybox" else [shell, *command[1:]],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert run.stderr == ("an earlier command is still sending it\n" if run.returncode else "")
        return run.returncode

    assert send("USR1", once=True) == 0
    assert process.stdout.readline() == "told\n"
    assert send("USR1", once=True) == 0
    (tmp_path / "run" / "limit-signal.done").unlink()
    assert send("USR1", once=True) == 0
    assert process.stdout.readline() == "told\n"
    # Another command is sending it.
    (tmp_path / "run" / "limit-signal.done").unlink()
    begin = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    (tmp_path / "run" / "limit-signal").write_text(f"{os.getpid()} {begin}\n")
    assert send("USR1", once=True) == 1
    assert send("USR2", once=False) == 0
    assert process.communicate(timeout=PATIENCE_S)[0] == "end\n"


def test_a_packed_script_that_is_broken_does_not_run(tmp_path: Path) -> None:
    container = Container(tmp_path, "#!/bin/sh\necho ran\n")
    (tmp_path / "job" / "script").unlink()
    (tmp_path / "job" / "script.gz").write_bytes(b"nonsense")
    code, out, _ = container.run()
    assert (code, out) == (126, "")


@settings(deadline=None)
@given(st.text(alphabet="$()aA_x \n'\"`\\", max_size=40))
def test_literal_text_is_not_expanded_by_kubernetes(text: str) -> None:
    assert expanded(literal(text), {"a": "WRONG", "A_x": "WRONG", "x": "WRONG"}) == text


@pytest.mark.parametrize("files", [{"stdout": "o"}, {"stdout": "o", "stderr": "e"}], ids=str)
def test_a_background_process_does_not_keep_a_job_that_has_ended(
    tmp_path: Path, files: dict[str, str]
) -> None:
    """Before: the container ran, and kept its GPUs, until the last process closed its output."""
    script = "#!/bin/sh\nsleep 600 &\necho $! >&2\n(sleep 600; echo late) &\necho out\nexit 3\n"
    code, out, err = Container(tmp_path, script).run(**files)
    assert code == 3
    pid = int((out + err).replace("out\n", ""))
    assert "out\n" in out
    stat = Path(f"/proc/{pid}/stat")
    assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


def test_no_process_is_left_behind(tmp_path: Path) -> None:
    """The copies end with the job, so the container ends."""
    container = Container(tmp_path, "#!/bin/sh\necho out\n")
    process = container.begin(stdout="o")
    process.communicate(timeout=PATIENCE_S)
    time.sleep(0.1)
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
