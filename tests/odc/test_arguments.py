"""A wrong argument is named, and nothing is sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odc import Client, JobExecutor, OdcError, WrongArgument

Call = Callable[[Any], object]
"""Of a client; its arguments have wrong types."""


def submit(*args: Any, **options: Any) -> Call:
    return lambda client: client.submit(*args, **options)


def executor(**arguments: Any) -> Call:
    return lambda client: JobExecutor(client, **arguments)


def status(job: Any) -> Call:
    return lambda client: client.job(job).status()


def handle(job: Any) -> Call:
    return lambda client: client.job(job)


def cancel(job: Any) -> Call:
    return lambda client: client.cancel(job)


def wait(timeout_s: Any, job: Any = 7) -> Call:
    return lambda client: client.wait(job, timeout_s)


def functions(fn: Any, calls: Any) -> Call:
    return lambda client: JobExecutor(client).submit_array(fn, calls)


def cancel_handle() -> Call:
    return lambda client: client.cancel(client.job(7))


@pytest.fixture
def nowhere(tmp_path: Path) -> Any:
    """A client without a daemon: a request would raise Unreachable."""
    return Client(str(tmp_path / "none.sock"))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (submit("train.sh"), r'the script "train.sh" cannot be read: No such file'),
        (submit(5), "command cannot be int\n.*list of words"),
        (submit([]), "command is an empty list"),
        (submit(["echo", 5]), "command must be strings, not int: 5"),
        (submit(["echo"], None), "args must be strings, not None"),
        (submit(["true"], gpus=object()), "the option gpus cannot be object"),
        (submit(["true"], array=[1.5]), "the option array cannot contain float: 1.5"),
        (submit(["true"], environment={"N": 1}), "environment must .*'N': 1"),
        (submit(["true"], environment=["N"]), "environment must be a mapping, not list"),
        (submit(["true"], work_dir=7), "work_dir must be a path, not int"),
        (submit(["true"], test_only=True), r"no option test_only\npreview\(\) returns"),
        (status(None), 'a job cannot be None\n.* "7_3"'),
        (cancel_handle(), "a job cannot be Job"),
        (handle("abc"), '"abc" is not a job\n.* "7_3"'),
        (handle(""), '"" is not a job'),
        (handle("7;8"), '"7;8" is not a job'),
        (handle("-7"), '"-7" is not a job'),
        (handle(0), "a job cannot be 0"),
        (handle("7+0"), '"7\\+0" is a component of a heterogeneous job\n.*job: 7'),
        (cancel("abc"), '"abc" is not a job'),
        (wait(5, "abc"), '"abc" is not a job'),
        (wait("5"), "timeout_s must be a number of seconds, not str"),
        (functions("add", [(1, 2)]), "the function cannot be str"),
        (functions(max, [1, 2]), r"each call must be a tuple of arguments, not int\n.*map"),
        (executor(max_running=0), "max_running must be a number above 0, not 0"),
        (executor(python=3), "python must be a path, not int"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named(nowhere: Client, call: Call, text: str) -> None:
    with pytest.raises(WrongArgument, match=text) as wrong:
        call(nowhere)
    assert isinstance(wrong.value, OdcError)
    assert isinstance(wrong.value, ValueError)


@pytest.mark.parametrize("job", [7, "7", "7_3", "7_[1-4,9]", "7_*", "7_[0-9:2]"])
def test_every_form_of_a_job_is_accepted(nowhere: Client, job: Any) -> None:
    assert nowhere.job(job).id == job
