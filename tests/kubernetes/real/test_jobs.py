"""Jobs on real nodes: how they run, what is kept of them, and how they end."""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial

import pytest

from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.controlplane.realnode.images import REGISTRY
from tests.support.harness.controlplane.realnode.node import RealNodes
from tests.support.harness.daemon import wait
from tests.support.harness.stacks import ENDED, Stack

pytestmark = pytest.mark.long


def test_a_jobs_output_exit_code_and_user_are_its_own(stack: Stack) -> None:
    script = 'id -u; echo "$ODC_NODE"; echo "gpus $NVIDIA_VISIBLE_DEVICES"; exit 7'
    job = stack.submit("--gpus", "2", script=script)
    ended = stack.end(job)
    assert (ended["state"], ended["exit_code"]) == ("FAILED", 7), stack.log()
    wait(lambda: "gpus" in stack("logs", str(job)), stack.log)
    user, node, gpus = stack("logs", str(job)).splitlines()
    assert (user, node) == ("5001", ended["node_names"][0])
    assert gpus.count("gpu-") == 2


def test_the_members_of_a_gang_on_two_nodes_reach_each_other_by_name(
    stack: Stack, real_nodes: RealNodes
) -> None:
    script = (
        "host=${ODC_PEERS%%,*}\n"
        'if [ "$SLURM_NODEID" = 0 ]; then nc -l -p 7777; else\n'
        '  until echo "hello from $SLURM_NODEID" | nc "$host" 7777; do sleep 0.2; done\nfi'
    )
    job = stack.submit("--launch=all", "-N", "2", "--gpus-per-node", "8", script=script)
    ended = stack.end(job)
    assert (ended["state"], ended["restarts"]) == ("COMPLETED", 0), stack.log()
    assert sorted(ended["node_names"]) == sorted(real_nodes.names)
    wait(lambda: "hello from 1" in stack("logs", str(job)), lambda: stack("logs", str(job)))


BURSTS = (1, 2)
"""Each is larger than a log may be, and kubelet rotates between them: it checks every 3 s."""
LINES = [f"{burst} {number:06} {0:040}" for burst in BURSTS for number in range(1, 4001)]
WRITES = (
    "for burst in 1 2; do\n"
    "  awk -v burst=$burst 'BEGIN { for (i = 1; i <= 4000; i++)"
    ' printf "%d %06d %040d\\n", burst, i, 0 }\'; sleep 5\n'
    "done"
)


def test_a_followed_log_has_every_line_when_kubelet_rotates_it(stack: Stack) -> None:
    script = f"trap go=1 USR1\necho up\nuntil [ $go ]; do sleep 0.1; done\n{WRITES}"
    job = stack.submit(script=script)
    with subprocess.Popen(
        [sys.executable, "-m", "odcctl", "logs", str(job), "-f"], env=stack.odc.environment,
        cwd=stack.odc.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
    ) as following:  # fmt: skip
        assert following.stdout is not None
        assert following.stdout.readline() == "up\n"
        stack("cancel", "--signal", "USR1", str(job))
        followed = following.stdout.read().splitlines()
    assert [line for line in followed if not line.startswith("User defined")] == LINES
    assert stack.end(job)["state"] == "COMPLETED"


def test_the_kept_output_has_every_line_although_kubelet_rotated_the_log(stack: Stack) -> None:
    job = stack.submit(script=WRITES)
    assert stack.end(job)["state"] == "COMPLETED"
    wait(lambda: stack("logs", str(job)).splitlines() == LINES, stack.log)


def test_a_cancelled_job_has_its_grace_to_save(stack: Stack) -> None:
    script = "trap 'echo saved; exit 0' TERM\necho up\nwhile :; do sleep 0.1; done"
    job = stack.submit(script=script)
    stack.wait_for_output(job, "up")
    stack("cancel", str(job))
    assert stack.end(job)["state"] == "CANCELLED"
    wait(lambda: stack("logs", str(job)) == "up\nsaved\n", lambda: stack("logs", str(job)))


def test_a_job_that_ignores_term_is_killed_after_its_grace(
    stack: Stack, plane: ControlPlane
) -> None:
    # A busy machine needs some of its time limit to start the pod.
    job = stack.submit(
        "-t", "0:15", script="trap 'echo term' TERM\nwhile :; do echo on; sleep 0.2; done"
    )
    ended = stack.end(job)
    assert ended["state"] == "TIMEOUT"
    assert stack.odc.environment["ODC_GRACE_S"] == "5"
    wait(lambda: not plane.api.items(PODS), stack.log)
    assert stack("logs", str(job)).partition("term\n")[2].count("on\n") > 5


PODS = "/api/v1/namespaces/gpu-batch/pods"


def test_a_job_beyond_its_memory_is_reported_as_out_of_memory(stack: Stack) -> None:
    job = stack.submit("--mem", "64M", script="echo up; tail /dev/zero")
    assert stack.end(job)["state"] == "OUT_OF_MEMORY", stack.log()
    wait(lambda: stack("logs", str(job)).startswith("up\n"), stack.log)


def test_a_job_beyond_its_disk_space_fails_with_the_text_of_kubelet(
    stack: Stack, plane: ControlPlane
) -> None:
    """A node with room for all its jobs does not help a job beyond its own limit."""
    job = stack.submit("--tmp", "100M", script="echo up; fallocate -l 3G /tmp/x; sleep 600")
    path = f"{PODS}/odc-{job}-1-0"
    [container] = plane.api.until(path, lambda pod: pod["spec"].get("nodeName"))["spec"][
        "containers"
    ]
    assert _mib(container["resources"]["limits"]["ephemeral-storage"]) < 3000
    ended = stack.end(job)
    assert ended["state"] == "FAILED", stack.log()
    assert "usage exceeds the total limit" in stack("show", str(job))


def _mib(amount: str) -> int:
    return int(amount.removesuffix("Mi"))


def test_every_member_is_signalled_once_before_the_time_limit(stack: Stack) -> None:
    script = "trap 'echo told $SLURM_NODEID; exit 0' USR1\nwhile :; do sleep 0.1 & wait $!; done"
    job = stack.submit(
        "--launch=all",
        "-N",
        "2",
        "--gpus-per-node",
        "1",
        "--signal",
        "USR1@55",
        "-t",
        "1",
        script=script,
    )
    assert stack.end(job)["state"] == "COMPLETED", stack.log()
    for rank in ("0", "1"):
        look = partial(_has_logged, stack, job, rank, [f"told {rank}"])
        wait(look, partial(stack, "logs", str(job), "--rank", rank))


def _has_logged(stack: Stack, job: int, rank: str, lines: list[str]) -> bool:
    """The shell also reports that its `sleep` was signalled: first or last, because its
    error output is copied by itself."""
    logged = stack("logs", str(job), "--rank", rank).splitlines()
    return [line for line in logged if not line.startswith("User defined signal")] == lines


@pytest.mark.parametrize(
    ("repository", "says"), [("missing", "not found"), ("private", "403 Forbidden")], ids=str
)
def test_an_unavailable_image_fails_with_the_message_of_containerd(
    stack: Stack, repository: str, says: str
) -> None:
    image = f"{REGISTRY}/{repository}/x:1"
    job = stack.submit("--container-image", image, "--gpus", "1", script="true")
    assert stack.end(job)["state"] == "FAILED"
    assert says in stack("show", str(job))
    assert stack.job(job)["reason"] == "JobLaunchFailure"


def test_a_job_waits_while_the_registry_is_down(stack: Stack) -> None:
    job = stack.submit("--container-image", f"{REGISTRY}/down/x:1", script="true")
    wait(lambda: "503" in stack("why", str(job)), lambda: stack("why", str(job)))
    time.sleep(3)
    assert stack.job(job)["state"] not in ENDED
    stack("cancel", str(job))
    assert stack.end(job)["state"] == "CANCELLED"
