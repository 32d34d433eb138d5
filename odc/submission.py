"""The body of a submit: a command and options as the command line of sbatch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from odc.arguments import check_submit, read_script
from odc.calls import Value, Words


def submit_body(
    command: str | os.PathLike[str] | Words, args: Words, options: Mapping[str, Value],
    work_dir: str | os.PathLike[str] | None, environment: Mapping[str, str] | None, *,
    test_only: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """The body of POST /v1/submit-argv. command: the path of a script; the text of a script, which
    starts with "#!"; or the words of a command."""
    check_submit(command, args, options, work_dir, environment)
    body: dict[str, Any] = {
        "command": "submit",
        "work_dir": os.fspath(work_dir) if work_dir is not None else str(Path.cwd()),
        "environment": _utf8(os.environ) if environment is None else dict(environment),
        "umask": _umask(),
        "submit_host": os.uname().nodename,
    }
    words = _words({**options, "test_only": True} if test_only else options)
    if isinstance(command, str | os.PathLike):
        name = os.fspath(command)
        is_text = isinstance(command, str) and command.startswith("#!")
        body["script"] = name if is_text else read_script(name)
        # "-" is a script without a name.
        body["script_path"] = "-" if is_text else name
        body["argv"] = [*words, body["script_path"], *map(os.fspath, args)]
    else:
        body["argv"] = [*words, "--", *map(os.fspath, command), *map(os.fspath, args)]
    return body


def _words(options: Mapping[str, Value]) -> list[str]:
    """Keyword arguments as options of sbatch: gpus="h100:2" is --gpus=h100:2, J="x" is -J x. name
    is --job-name, as the field of a job is called."""
    words: list[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        long = "--job-name" if name == "name" else f"--{name.strip('_').replace('_', '-')}"
        if value is True:
            words += [f"-{name}" if len(name) == 1 else long]
        elif len(name) == 1:
            words += [f"-{name}", _word(value)]
        else:
            words += [f"{long}={_word(value)}"]
    return words


def _word(value: Value) -> str:
    if isinstance(value, timedelta):
        seconds = int(value.total_seconds())
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, str | int | float):
        return str(value)
    return ",".join(map(str, value or ()))


def _utf8(environment: Mapping[str, str]) -> dict[str, str]:
    """Without variables that JSON cannot carry."""
    return {k: v for k, v in environment.items() if _is_utf8(k) and _is_utf8(v)}


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeError:
        return False
    return True


def _umask() -> int:
    """Without setting it, which would disturb other threads."""
    with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    return 0o022
