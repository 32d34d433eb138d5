"""The script of run --sync, and the options that cannot be used with it."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from typing import Any

import pytest

from odcd.errors import BadRequest
from odcd.slurm.parse import parse_submit
from odcd.slurm.request import SubmitArgv
from odcd.slurm.sync_script import Sync

NOW = datetime(2026, 7, 1, tzinfo=UTC)
TOKEN = "0123456789abcdef" * 2


def parse(*argv: str, command: Any = "run", folder: str = "/tmp") -> Any:
    sync = Sync(token=TOKEN, folder=folder)
    request = SubmitArgv(command=command, argv=list(argv), work_dir="/", sync=sync)
    return parse_submit(request, NOW).spec


@pytest.mark.parametrize("folder", ["/tmp/", '/it\'s $(touch /tmp/x) {y} "z"', "/ü \\ `b`"])
def test_the_script_is_valid_and_quotes_the_folder(folder: str) -> None:
    spec = parse("-c1", "python", "train.py", folder=folder)
    assert spec.args == ["python", "train.py"]
    subprocess.run(["sh", "-n"], input=spec.script, text=True, check=True)
    line = next(line for line in spec.script.splitlines() if line.startswith("all="))
    done = subprocess.run(
        ["sh", "-c", f'{line}\nprintf %s "$all"'], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{folder.rstrip('/')}/odc-sync-{TOKEN}"


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (("--chdir=/x", "true"), "--chdir and --sync"),
        (("--launch=first", "-N2", "true"), "--launch=first and --sync"),
        (("--signal=B:USR1", "true"), "--signal=B: and --sync"),
        (("--output=x", "true"), '--output: with --sync, the path "x" must be absolute'),
        (("--input=x", "true"), "--input: with --sync"),
    ],
)
def test_options_that_contradict_it_are_refused(argv: tuple[str, ...], text: str) -> None:
    with pytest.raises(BadRequest, match=text):
        parse(*argv)
    with pytest.raises(BadRequest, match="is not absolute"):
        parse("true", folder="tmp")


def test_only_run_has_a_copy() -> None:
    with pytest.raises(BadRequest, match="submit does not accept --sync"):
        parse("--wrap=true", command="submit")
