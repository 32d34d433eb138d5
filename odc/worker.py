"""Runs one call of a JobExecutor on a node: python worker.py FOLDER TASK [TASK…].

FOLDER has `call.json` (sys.path), `function` and, for each task, TASK.args. The result is written
to TASK.result: ("value", value) or ("error", exception or None, type, text, traceback), pickled.
Only the standard library may be used before sys.path is set.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import traceback
from typing import Any

FAILED = 1


def main(folder: str, tasks: list[str]) -> int:
    with open(f"{folder}/call.json", encoding="utf-8") as file:
        sys.path[:] = json.load(file)["path"]
    codes = [run(folder, task) for task in tasks if not os.path.exists(f"{folder}/{task}.result")]
    return max(codes, default=0)


def run(folder: str, task: str) -> int:
    """Run one task and write its result; the exit code."""
    result: tuple[Any, ...]
    try:
        with open(f"{folder}/function", "rb") as file:
            function = pickle.load(file)
        with open(f"{folder}/{task}.args", "rb") as file:
            args, kwargs = pickle.load(file)
        result = ("value", function(*args, **kwargs))
    except BaseException as error:  # SystemExit, too
        result = _error(error)
    try:
        data = dumps(result)
    except Exception as error:
        what = f"its result of type {type(result[1]).__name__}"
        result = ("error", None, "NotPicklable", f"{what} cannot be pickled: {error}", "")
        data = pickle.dumps(result)
    scratch = f"{folder}/{task}.{os.uname().nodename}.{os.getpid()}"
    with open(scratch, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(scratch, f"{folder}/{task}.result")
    return 0 if result[0] == "value" else FAILED


def dumps(value: object) -> bytes:
    """Pickle with cloudpickle if it is installed: it also pickles what __main__ defines."""
    try:
        import cloudpickle  # pyright: ignore[reportMissingImports]
    except ImportError:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return cloudpickle.dumps(value)


def _error(error: BaseException) -> tuple[Any, ...]:
    text = "".join(traceback.format_exception(error))
    sys.stderr.write(text)
    name, message = type(error).__name__, str(error)
    try:
        pickle.loads(dumps(error))
    except Exception:
        return ("error", None, name, message, text)
    return ("error", error, name, message, text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
