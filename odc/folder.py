"""The folder of one submit of a JobExecutor: the function, its arguments, and the results."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from odc import worker
from odc.errors import CallFailed, NotPicklable, OdcError

NOT_SHARED, NO_PYTHON = 96, 97
"""Exit codes of the job when its node does not see the folder, or the interpreter."""
APPEARS_S = 10.0
"""How long a result may take to appear here, on a network file system."""
SCRIPT = """\
#!/bin/sh
folder=$1 token=$2 python=$3 worker=$4 first=$5 step=$6 count=$7
if ! [ -e "$folder/$token" ]; then
    echo "odc: $(uname -n) does not see the folder $folder" >&2
    exit 96
fi
if ! command -v "$python" >/dev/null; then
    echo "odc: $(uname -n) has no $python" >&2
    exit 97
fi
task=$((first + ${SLURM_ARRAY_TASK_ID:-0} * step))
end=$((task + step))
[ "$end" -gt "$count" ] && end=$count
tasks=
while [ "$task" -lt "$end" ]; do
    tasks="$tasks $task"
    task=$((task + 1))
done
exec "$python" -P "$worker" "$folder" $tasks
"""

Arguments = tuple[Sequence[Any], dict[str, Any]]


class RemoteTraceback(Exception):
    """The traceback on the node, shown as the cause of the exception."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


class CallFolder:
    """token: a file that only this folder has: a node that sees it shares the folder."""

    def __init__(self, path: Path, token: str) -> None:
        self.path = path
        self.token = token

    @classmethod
    def make(
        cls, above: Path, function: Callable[..., Any], calls: Sequence[Arguments]
    ) -> CallFolder:
        """Write the function and the arguments of each task. Raises NotPicklable, OdcError."""
        pickled = _pickled(function)
        arguments = [_dumps(one, "an argument") for one in calls]
        try:
            above.mkdir(mode=0o700, parents=True, exist_ok=True)
            # The owner of a link could point it elsewhere before a result is read.
            above = above.resolve()
            _check_owner(above)
            path = Path(tempfile.mkdtemp(prefix="call-", dir=above))
            token = f"token-{os.urandom(8).hex()}"
            (path / token).touch()
            (path / "function").write_bytes(pickled)
            (path / "call.json").write_text(json.dumps({"path": _path()}), "utf-8")
            for task, data in enumerate(arguments):
                (path / f"{task}.args").write_bytes(data)
        except OSError as error:
            raise OdcError(f"the folder {above} cannot be used: {error}") from error
        return cls(path, token)

    def words(self, python: str, step: int, count: int) -> list[str]:
        """The arguments of SCRIPT. step: tasks of each job of the array."""
        worker_file = os.path.abspath(worker.__file__)
        return [str(self.path), self.token, python, worker_file, "0", str(step), str(count)]

    def result(self, task: int, *, expected: bool) -> Any:
        """The value that the task returned. Raises its exception; FileNotFoundError: it wrote no
        result. expected: the job was successful, so a result appears soon."""
        file = self.path / f"{task}.result"
        until = time.monotonic() + (APPEARS_S if expected else 0)
        while True:
            try:
                data = file.read_bytes()
                break
            except FileNotFoundError:
                if time.monotonic() > until:
                    raise
                os.listdir(self.path)  # makes NFS look again
                time.sleep(0.1)
        kind, value, *error = pickle.loads(data)
        if kind == "value":
            return value
        name, message, text = error
        if name == "NotPicklable" and value is None:
            raise NotPicklable(message, "Return something else, or write it to a file.")
        raised = CallFailed(name, message) if value is None else value
        raise raised from RemoteTraceback(text)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def _check_owner(above: Path) -> None:
    """Raises OdcError if others could replace what is read from there: unpickling runs code."""
    found = above.stat()
    if found.st_uid not in (0, os.geteuid()):
        raise OdcError(
            f"the folder {above} belongs to another user",
            "Results are read from there, so choose a folder of your own.",
        )
    if found.st_mode & (stat.S_IWOTH | stat.S_IWGRP) and not found.st_mode & stat.S_ISVTX:
        raise OdcError(
            f"other users can replace files in the folder {above}",
            f"Results are read from there, so choose a folder of your own, or: chmod +t {above}",
        )
    for folder in above.parents:
        mode = folder.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise OdcError(
                f"other users can replace the folder {above}: everyone can write in {folder}",
                f"Results are read from there, so choose another folder, or: chmod +t {folder}",
            )


def _pickled(function: Callable[..., Any]) -> bytes:
    """Raises NotPicklable."""
    name = getattr(function, "__qualname__", repr(function))
    module = getattr(function, "__module__", None)
    if not _has_cloudpickle() and (module == "__main__" or "<" in name):
        raise NotPicklable(
            f"the function {name} of {module} cannot be pickled: a node could not import it",
            "Install cloudpickle, or move the function to the top level of a module.",
        )
    return _dumps(function, f"the function {name}")


def _dumps(value: object, what: str) -> bytes:
    try:
        return worker.dumps(value)
    except Exception as error:
        hint = None if _has_cloudpickle() else "With cloudpickle installed, more can be pickled."
        raise NotPicklable(f"{what} cannot be pickled: {error}", hint) from error


def _has_cloudpickle() -> bool:
    return importlib.util.find_spec("cloudpickle") is not None


def _path() -> list[str]:
    """sys.path as the node uses it: "" is the folder of this process."""
    return [os.path.abspath(entry) for entry in sys.path]
