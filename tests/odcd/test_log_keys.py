"""Log lines about a job name it with the same field everywhere, and with its node and user."""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

import odcd
from odcd.executor.kubernetes.naming import MANAGED_BY, USER, log_facts
from odcd.executor.kubernetes.objects import Meta, Pod, PodSpec
from odcd.executor.starts import Sent

FOLDER = Path(odcd.__file__).parent
LEVELS = frozenset({"debug", "info", "warning", "error", "exception", "log"})
OTHERS = {
    "executor/kubernetes/builds.py": "a Job of Kubernetes, which builds an image",
    "executor/kubernetes/canaries.py": "a canary has no job",
    "executor/kubernetes/forward.py": "only the pod's name is known",
}
"""Modules whose pods and Jobs belong to no job of odc."""


def keys_of_calls(path: Path) -> Iterator[tuple[int, str]]:
    for call in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            continue
        if call.func.attr not in LEVELS or ast.unparse(call.func.value) != "log":
            continue
        for word in call.keywords:
            if word.arg == "extra" and isinstance(word.value, ast.Dict):
                for key in word.value.keys:
                    if isinstance(key, ast.Constant):
                        yield call.lineno, str(key.value)


def test_no_line_names_a_job_or_its_pod_in_another_way() -> None:
    wrong = [
        f"{name}:{line}: {key}"
        for path in FOLDER.rglob("*.py")
        if (name := str(path.relative_to(FOLDER))) not in OTHERS
        for line, key in keys_of_calls(path)
        if key in ("job", "jobid", "pod", "username", "node_name")
    ]
    assert wrong == [], "use job_id, node and user; for a pod log_facts(pod)"
    assert any(key == "job_id" for path in FOLDER.rglob("*.py") for _, key in keys_of_calls(path))


def test_a_pod_is_logged_with_its_job_node_and_user() -> None:
    pod = Pod(
        metadata=Meta(
            name="odc-7-1-0", namespace="gpu-batch", labels={MANAGED_BY: "odcd"},
            annotations={USER: "alice"},
        ),
        spec=PodSpec(node_name="gpu1"),
    )  # fmt: skip
    assert log_facts(pod) == {
        "pod": "gpu-batch/odc-7-1-0", "job_id": 7, "node": "gpu1", "user": "alice",
    }  # fmt: skip
    other = Pod(metadata=Meta(name="x", namespace="default"))
    assert log_facts(other) == {"pod": "default/x"}


def test_a_refused_start_is_logged_with_job_user_and_nodes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sent = Sent(
        {
            "job": 7, "attempt": 1, "uid": 1001, "gid": 100, "umask": 18, "started_at": 0.0,
            "script": "s", "environment": "e", "members": [{"rank": 0}],
            "env": {"SLURM_JOB_USER": "alice", "SLURM_JOB_NODELIST": "gpu[1-2]"},
        },
        {"s": "#!/bin/sh\n", "e": "{}"},
    )  # fmt: skip
    with caplog.at_level(logging.WARNING):
        sent.refuse("too long")
    (record,) = caplog.records
    assert record.getMessage() == "start.refused"
    logged = {name: vars(record)[name] for name in ("job_id", "user", "node", "why")}
    assert logged == {"job_id": 7, "user": "alice", "node": "gpu[1-2]", "why": "too long"}
