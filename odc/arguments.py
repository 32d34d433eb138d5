"""Check the arguments of calls, so that an error names the argument."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TypeVar, cast

from odc.errors import WrongArgument

T = TypeVar("T")
_SELECTOR = re.compile(r"[0-9]+(?:_(?:\*|[0-9]+|\[[0-9,:%*-]+\]))?")
_COMPONENT = re.compile(r"([0-9]+)\+[0-9]+")
A_COMMAND = 'A command is the path of a script, or a list of words such as ["python", "train.py"].'
A_JOB = 'A job is its id, such as 7, or "7_3" for the task of an array.'
PREVIEW = "preview() returns when and where the job would start, and submits nothing."


def check_submit(
    command: object, args: Iterable[object], options: Mapping[str, object], work_dir: object,
    environment: object,
) -> None:  # fmt: skip
    """Raises WrongArgument."""
    if isinstance(command, Sequence) and not isinstance(command, str | bytes):
        if not command:
            raise WrongArgument("command is an empty list", A_COMMAND)
        _check_words("command", cast("Sequence[object]", command))
    elif not isinstance(command, str | os.PathLike):
        raise WrongArgument(f"command cannot be {_kind(command)}", A_COMMAND)
    _check_words("args", args)
    if work_dir is not None and not isinstance(work_dir, str | os.PathLike):
        raise WrongArgument(f"work_dir must be a path, not {_kind(work_dir)}")
    _check_environment(environment)
    for name, value in options.items():
        _check_option(name, value)


def check_executor(python: object, max_running: object) -> None:
    """Raises WrongArgument."""
    if not isinstance(python, str | os.PathLike):
        raise WrongArgument(f"python must be a path, not {_kind(python)}")
    if max_running is None:
        return
    if isinstance(max_running, bool) or not isinstance(max_running, int) or max_running < 1:
        raise WrongArgument(f"max_running must be a number above 0, not {max_running!r}")


def check_timeout(timeout_s: object) -> None:
    """Raises WrongArgument."""
    if timeout_s is not None and not isinstance(timeout_s, int | float):
        raise WrongArgument(f"timeout_s must be a number of seconds, not {_kind(timeout_s)}")


def check_calls(fn: object, calls: Iterable[object]) -> None:
    """Raises WrongArgument."""
    if not callable(fn):
        raise WrongArgument(f"the function cannot be {_kind(fn)}")
    for one in calls:
        if not isinstance(one, Iterable):
            hint = "For functions of one argument: map(function, values)."
            raise WrongArgument(f"each call must be a tuple of arguments, not {_kind(one)}", hint)


def read_script(path: str) -> str:
    """Raises WrongArgument."""
    try:
        return Path(path).read_text("utf-8")
    except OSError as error:
        raise WrongArgument(
            f'the script "{path}" cannot be read: {error.strerror or error}', A_COMMAND
        ) from error
    except ValueError as error:
        raise WrongArgument(f'the script "{path}" is not UTF-8 text: {error}', A_COMMAND) from error


def check_job(job: T) -> T:
    """Raises WrongArgument unless it is the id of a job."""
    if isinstance(job, bool) or not isinstance(job, int | str):
        raise WrongArgument(f"a job cannot be {_kind(job)}", A_JOB)
    if isinstance(job, int):
        if job < 1:
            raise WrongArgument(f"a job cannot be {job}", A_JOB)
    elif component := _COMPONENT.fullmatch(job.strip()):
        raise WrongArgument(
            f'"{job}" is a component of a heterogeneous job', f"Name the whole job: {component[1]}."
        )
    elif not _SELECTOR.fullmatch(job.strip()):
        raise WrongArgument(f'"{job[:60]}" is not a job', A_JOB)
    return job


def check_jobs(jobs: object) -> list[str]:
    """The ids as text. Raises WrongArgument."""
    if isinstance(jobs, int | str) or not isinstance(jobs, Iterable):
        return [str(check_job(jobs))]
    return [str(check_job(one)) for one in cast("Iterable[object]", jobs)]


def _check_words(name: str, words: Iterable[object]) -> None:
    for word in words:
        if not isinstance(word, str | os.PathLike):
            raise WrongArgument(f"{name} must be strings, not {_kind(word)}: {word!r}")


def _check_environment(environment: object) -> None:
    if environment is None:
        return
    if not isinstance(environment, Mapping):
        raise WrongArgument(f"environment must be a mapping, not {_kind(environment)}")
    for name, value in cast("Mapping[object, object]", environment).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise WrongArgument(f"environment must have strings, not {name!r}: {value!r}")


def _check_option(name: str, value: object) -> None:
    if name == "test_only" and value:
        raise WrongArgument("submit() has no option test_only", PREVIEW)
    if value is None or isinstance(value, str | int | float | timedelta | os.PathLike):
        return
    if not isinstance(value, Iterable) or isinstance(value, bytes | Mapping):
        raise WrongArgument(f"the option {name} cannot be {_kind(value)}: {value!r}")
    for one in cast("Iterable[object]", value):
        if not isinstance(one, str | int):
            raise WrongArgument(f"the option {name} cannot contain {_kind(one)}: {one!r}")


def _kind(value: object) -> str:
    """None, or the name of its type."""
    return "None" if value is None else type(value).__name__
