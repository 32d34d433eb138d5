"""sbatch's file patterns, as Slurm expands them."""

from __future__ import annotations

from typing import Any

import pytest

from odcd.errors import BadRequest
from odcd.executor.output import PathTooLong, check_patterns, expand, streams
from odcd.records.job import Identity, JobSpec
from tests.support.builders.dispatches import a_dispatch_of, a_member

JOB: dict[str, Any] = {"job_id": 123, "work_dir": "/home/al", "user": "al", "name": "my job"}
ELEMENT: dict[str, Any] = JOB | {"job_id": 128, "array_job_id": 123, "array_task_id": 47}


@pytest.mark.parametrize(
    ("job", "pattern", "path"),
    [
        (JOB, "slurm-%j.out", "/home/al/slurm-123.out"),
        (JOB, "/data/%x.%u.log", "/data/my job.al.log"),
        (JOB, "%J-%A", "/home/al/123-123"),
        (JOB, "%8j/%4t_%2n", "/home/al/00000123/0002_02"),
        (JOB, "%N.%s", "/home/al/gpu-03.batch"),
        (JOB, "100%%_%%j", "/home/al/100%_%j"),
        (JOB, "%a", "/home/al/4294967294"),
        (JOB, "%q%", "/home/al/%q%"),
        (JOB, "%5x", "/home/al/my job"),
        (JOB, "%99j", "/home/al/0000000123"),
        (JOB, "../up/./%j", "/home/up/123"),
        (JOB, "\\%j.out", "/home/al/%j.out"),
        (JOB, "/dev/null", "/dev/null"),
        (ELEMENT, "%A_%a.out", "/home/al/123_47.out"),
        (ELEMENT, "%j %J %b %3b", "/home/al/128 128 7 007"),
    ],
)
def test_a_pattern_is_expanded(job: dict[str, Any], pattern: str, path: str) -> None:
    member = a_member(2, node="gpu-03.cluster.local")
    dispatch, _ = a_dispatch_of(**job, members=(a_member(0), a_member(1), member))
    assert expand(pattern, dispatch, member) == path


def test_without_options_output_goes_where_sbatch_puts_it() -> None:
    job, _ = a_dispatch_of(**JOB)
    element, _ = a_dispatch_of(**ELEMENT)
    assert streams(job, job.members[0]).stdout.path == "/home/al/slurm-123.out"
    assert streams(element, element.members[0]).stdout.path == "/home/al/slurm-123_47.out"
    assert streams(job, job.members[0]).stderr is None
    assert streams(job, job.members[0]).stdin is None


def test_stdout_and_stderr_can_share_a_file() -> None:
    job, _ = a_dispatch_of(**JOB, stdout="%j.log", stderr="/home/al/123.log")
    assert streams(job, job.members[0]).stderr is None


def test_ranks_of_one_file_append_and_only_the_first_empties_it() -> None:
    job, _ = a_dispatch_of(**JOB, stdout="all.log", members=(a_member(0), a_member(1)))
    first, second = (streams(job, member).stdout for member in job.members)
    assert (first.truncate, first.append, first.shared) == (True, True, True)
    assert (second.truncate, second.append, second.shared) == (False, True, True)


def test_ranks_with_files_of_their_own_empty_them() -> None:
    job, _ = a_dispatch_of(**JOB, stdout="%t.log", members=(a_member(0), a_member(1)))
    for member in job.members:
        output = streams(job, member).stdout
        assert (output.truncate, output.append, output.shared) == (True, False, False)


def test_open_mode_append_empties_nothing() -> None:
    job, _ = a_dispatch_of(**JOB, open_mode="append")
    output = streams(job, job.members[0]).stdout
    assert (output.truncate, output.append) == (False, True)


A_PATH = "/" + "/".join(["d" * 100] * 40) + "/" + "f" * 54  # 4095 bytes


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        (A_PATH, "x", True), (A_PATH + "f", "x", False), ("%x" * 2048, "n" * 200, False),
        ("%x" * 2048, "/", True), ("%x/" * 1000, "é" * 10, False), ("%x", "n" * 255, True),
        ("%x", "n" * 256, False), ("%x", "é" * 128, False), ("\\" + "%x" * 128, "n", False),
        ("x/" + "%j" * 85, "n", True), ("%10j" * 26, "n", False),
    ],
)  # fmt: skip
def test_an_invalid_path_is_refused(pattern: str, name: str, *, fits: bool) -> None:
    assert len(A_PATH) == 4095
    dispatch, _ = a_dispatch_of(**JOB | {"name": name})
    if fits:
        assert len(expand(pattern, dispatch, dispatch.members[0])) <= 4095
        return
    with pytest.raises(PathTooLong, match=r"more than (4095|255)") as refused:
        expand(pattern, dispatch, dispatch.members[0])
    assert len(refused.value.message) < 200


@pytest.mark.parametrize(
    ("spec", "refused"),
    [
        ({"stdout": "%x" * 2048}, "stdout"), ({"stderr": "%x" * 2048}, "stderr"),
        ({"stdin": "%u" * 2000}, "stdin"), ({"stdout": "%x" * 2048, "spool_output": True}, None),
        # Their length is not known before they start.
        ({"stdout": "%N" * 2048}, None), ({"stdout": "%j" * 200}, None), ({}, None),
    ],
)  # fmt: skip
def test_submit_refuses_a_path_that_is_too_long_for_sure(
    spec: dict[str, Any], refused: str | None
) -> None:
    who = Identity(user="alice", uid=64001, gid=64001, operator=False)
    job = JobSpec(script="#!/bin/sh\n", work_dir="/tmp", name="n" * 200, **spec)
    if refused is None:
        check_patterns(who, job)
        return
    with pytest.raises(BadRequest, match=f"^{refused}: ") as error:
        check_patterns(who, job)
    assert error.value.hint


def test_patterns_are_ignored_for_output_that_odc_keeps() -> None:
    dispatch, _ = a_dispatch_of(**JOB, stdout="%x" * 2048, options={"spool_output": True})
    assert streams(dispatch, dispatch.members[0]).stdout.path == "/dev/null"
