"""The commands that users rely on, once on each executor, with the same answers."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.controlplane.processes import ProcessNodes
from tests.support.harness.daemon import wait
from tests.support.harness.database import TestServer
from tests.support.harness.stacks import ENDED, Stack, on_kubernetes, on_local

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", params=["local", "kubernetes"])
def stack(request: pytest.FixtureRequest, postgres_server: TestServer) -> Iterator[Stack]:
    with ExitStack() as undo:
        dsn = postgres_server.clone()
        undo.callback(postgres_server.drop, dsn)
        if request.param == "local":
            yield undo.enter_context(on_local(dsn))
            return
        nodes: ProcessNodes = request.getfixturevalue("real_nodes")
        plane: ControlPlane = request.getfixturevalue("shared_plane")
        request.getfixturevalue("installed")
        kubeconfig = plane.account_kubeconfig("gpu-controlplane", "odcd")
        yield undo.enter_context(on_kubernetes(dsn, kubeconfig, nodes.names))


@pytest.fixture(autouse=True)
def empty(stack: Stack) -> Iterator[None]:
    yield
    stack("cancel", "--all", check=False)
    wait(lambda: not stack.json("queue")["jobs"], stack.log)


def test_a_job_runs_and_its_output_is_kept(stack: Stack) -> None:
    job = stack.submit("--gpus", "1", script='echo "job $ODC_JOB_ID has $ODC_GPUS GPU"; exit 3')
    ended = stack.end(job)
    assert (ended["state"], ended["exit_code"], ended["signal"]) == ("FAILED", 3, None), stack(
        "show", str(job)
    )
    wait(lambda: stack("logs", str(job)) == f"job {job} has 1 GPU\n", stack.log)
    assert str(job) in stack("history")


def test_arguments_and_environment_arrive_as_they_are(stack: Stack) -> None:
    script = stack.odc.work / "say.sh"
    script.write_text('#!/bin/sh\nprintf "<%s>" "$@" "$PRICE"\n')
    arguments = ["a b", "$(HOME)", "`id`", "$$", '";exit 1;"']
    job = int(stack("submit", "--parsable", "--export", "PRICE=$(X)$5", str(script), *arguments))
    assert stack.end(job)["state"] == "COMPLETED"
    expected = "".join(f"<{word}>" for word in [*arguments, "$(X)$5"])
    wait(lambda: stack("logs", str(job)) == expected, stack.log)


def test_why_names_the_blocking_job_and_its_end(stack: Stack) -> None:
    first = stack.submit("-N", "2", "--gpus-per-node", "8", "-t", "10", script="sleep 60")
    stack.until(first, "RUNNING")
    second = stack.submit("--gpus", "8", "-t", "5", script="true")
    waiting = stack.until(second, "PENDING")
    explanation = stack.json("why", str(second))
    assert any(cause.get("job_id") == first and cause["until"] for cause in explanation["why"])
    assert explanation["eta"] is None or explanation["eta"]["p50"]
    planned = wait(lambda: stack.job(second)["planned_start_at"], stack.log)
    assert planned > waiting["submitted_at"]
    assert f"{second}" in stack("queue")
    stack("cancel", str(first))
    assert stack.end(second)["state"] == "COMPLETED"


def test_a_held_job_waits_for_its_release(stack: Stack) -> None:
    job = stack.submit("--hold", script="echo went")
    assert stack.until(job, "PENDING")["reason"] == "JobHeldUser"
    stack("release", str(job))
    assert stack.end(job)["state"] == "COMPLETED"


def test_output_that_a_cancelled_job_writes_during_its_grace_is_kept(stack: Stack) -> None:
    job = stack.submit(
        script="trap 'sleep 0.5; echo saved; exit 0' TERM\necho up\nwhile :; do sleep 0.1; done"
    )
    stack.wait_for_output(job, "up")
    stack("cancel", str(job))
    assert stack.end(job)["state"] == "CANCELLED"
    wait(lambda: "saved\n" in stack("logs", str(job)), stack.log)


def test_a_requeued_job_runs_again_under_its_number(stack: Stack) -> None:
    job = stack.submit(script='echo "attempt $ODC_ATTEMPT"; [ "$ODC_ATTEMPT" = 2 ] || sleep 60')
    stack.wait_for_output(job, "attempt 1")
    stack("requeue", str(job))
    ended = stack.end(job)
    assert (ended["state"], ended["restarts"]) == ("COMPLETED", 1)
    wait(lambda: "attempt 2" in stack("logs", str(job)), stack.log)


def test_prometheus_finds_the_members_of_a_job(stack: Stack) -> None:
    job = stack.submit("-N", "2", "--gpus-per-node", "4", script="sleep 60")
    stack.until(job, "RUNNING")

    def members() -> list[str]:
        with stack.odc.asking("GET", "/metrics") as connection:
            text = connection.getresponse().read().decode()
        found = re.findall(rf'^odcd_job_info.*job_id="{job}".*$', text, re.M)
        return found if len(found) == 2 else []

    for rank, line in enumerate(wait(members, stack.log)):
        assert f'rank="{rank}"' in line
        assert f'node="{stack.nodes[rank]}"' in line
        pod, namespace = (
            (f"odc-{job}-1-{rank}", "gpu-batch")
            if "ODC_IMAGE" in stack.odc.environment
            else ("", "")
        )
        assert f'pod="{pod}"' in line
        assert f'namespace="{namespace}"' in line


def test_a_gang_starts_together_and_its_members_reach_each_other(stack: Stack) -> None:
    script = 'echo "rank $ODC_RANK of $ODC_NODE_COUNT, master $MASTER_ADDR:$MASTER_PORT"'
    job = stack.submit("-N", "2", "--launch=all", "--gpus-per-node", "4", script=script)
    ended = stack.end(job)
    assert (ended["state"], sorted(ended["node_names"])) == ("COMPLETED", sorted(stack.nodes[:2]))
    lines = wait(
        lambda: (
            (found := stack("logs", str(job), "--rank", "all").splitlines())
            and len(found) == 2
            and found
        ),
        lambda: stack("logs", str(job)) + stack.log(),
    )
    reports = {re.sub(r"^\d+: ", "", line) for line in lines}
    master = {line.partition("master ")[2] for line in reports}
    assert {line.partition(",")[0] for line in reports} == {"rank 0 of 2", "rank 1 of 2"}
    assert len(master) == 1


def test_a_failed_member_ends_its_gang(stack: Stack) -> None:
    job = stack.submit(
        "-N", "2", "--launch=all", "--gpus-per-node", "8",
        script='[ "$ODC_RANK" = 1 ] && { sleep 1; exit 4; }; sleep 60',
    )  # fmt: skip
    ended = stack.end(job)
    assert (ended["state"], ended["exit_code"]) == ("FAILED", 4)


def test_a_time_limit_ends_a_job(stack: Stack) -> None:
    job = stack.submit("-t", "0:02", script="sleep 60")
    assert stack.end(job)["state"] == "TIMEOUT"
    assert 2 <= stack.job(job)["elapsed_s"] <= 5 if "elapsed_s" in stack.job(job) else True


def test_an_array_runs_each_task_and_a_dependent_job_after_all(stack: Stack) -> None:
    array = stack.submit("--array", "0-3%2", script='echo "task $SLURM_ARRAY_TASK_ID"')
    after = stack.submit("--dependency", f"afterok:{array}", script="echo all")
    assert stack.end(after)["state"] == "COMPLETED"
    wait(lambda: stack("logs", f"{array}_3") == "task 3\n", stack.log)
    broken = stack.submit(script="exit 1")
    never = stack.submit("--dependency", f"afterok:{broken}", script="true")
    stack.end(broken)
    assert stack.until(never, "PENDING")["reason"] == "DependencyNeverSatisfied"


def test_a_killed_daemon_is_followed_by_one_that_knows_every_exit(stack: Stack) -> None:
    going = stack.submit(script="sleep 6; exit 7")
    ends = stack.submit(script="sleep 1; echo last words; exit 5")
    # By the time the test looks, a short one may have ended.
    stack.until(going, "RUNNING", *ENDED)
    stack.until(ends, "RUNNING", *ENDED)
    stack.kill(signal.SIGKILL)
    stack.start()
    assert (stack.end(ends)["exit_code"], stack.end(going)["exit_code"]) == (5, 7)
    wait(lambda: stack("logs", str(ends)) == "last words\n", stack.log)
    assert stack.job(going)["restarts"] == 0


def test_a_job_is_signalled_before_its_time_limit(stack: Stack) -> None:
    script = "trap 'echo told; exit 0' USR1\necho up\nwhile :; do sleep .1; done"
    job = stack.submit("--signal", "B:USR1@50", "-t", "1", script=script)
    assert stack.end(job)["state"] == "COMPLETED"
    wait(lambda: "told" in stack("logs", str(job)), stack.log)


def test_a_job_is_signalled_by_hand(stack: Stack) -> None:
    job = stack.submit(script="echo up\nexec sleep 60")
    stack.wait_for_output(job, "up")
    stack("cancel", "--signal", "USR1", str(job))
    ended = stack.end(job)
    assert (ended["state"], ended["signal"]) == ("FAILED", 10)


def test_output_goes_to_the_requested_files(stack: Stack) -> None:
    output = stack.odc.work / "said"
    script = f"echo one; echo two >&2; cat {output}-%j 2>/dev/null; exit 0"
    job = stack.submit("-o", "/tmp/said-%j", script=script)
    assert stack.end(job)["state"] == "COMPLETED"
    wait(lambda: stack("logs", str(job)) == "one\ntwo\n", lambda: stack("logs", str(job)))


def test_output_is_followed_to_its_end(stack: Stack) -> None:
    job = stack.submit(script="for i in 1 2 3; do echo line $i; sleep 0.5; done")
    assert stack("logs", str(job), "-f") == "line 1\nline 2\nline 3\n"


def test_a_drained_node_takes_no_jobs(stack: Stack, as_operator: Callable[..., str]) -> None:
    as_operator("node", "drain", stack.nodes[0], "--reason", "tests")
    try:
        job = stack.submit("--gpus", "8", script="true")
        assert stack.end(job)["node_names"] == [stack.nodes[1]]
    finally:
        as_operator("node", "resume", stack.nodes[0])


@pytest.fixture
def as_operator(stack: Stack) -> Callable[..., str]:
    """odcctl over the daemon's socket, as the user who runs it."""

    def run(*argv: str) -> str:
        kept = {name: stack.odc.environment.pop(name, None) for name in ("ODC_SERVER", "ODC_TOKEN")}
        try:
            return stack(*argv)
        finally:
            stack.odc.environment |= {name: value for name, value in kept.items() if value}

    return run


def test_a_limit_keeps_a_job_pending_with_the_reason(
    stack: Stack, as_operator: Callable[..., str]
) -> None:
    as_operator("qos", "create", "narrow", "--limit", "user.jobs=1")
    try:
        first = stack.submit("--qos", "narrow", script="sleep 60")
        stack.until(first, "RUNNING")
        second = stack.submit("--qos", "narrow", script="true")
        wait(lambda: stack.job(second)["reason"] == "QOSMaxJobsPerUserLimit", stack.log)
        assert "narrow" in stack("why", str(second))
        stack("cancel", str(first))
        assert stack.end(second)["state"] == "COMPLETED"
    finally:
        as_operator("qos", "delete", "narrow")
