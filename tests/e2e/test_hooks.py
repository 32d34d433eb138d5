"""Hooks of a real daemon: settings, drained nodes, requeued jobs, tasks of steps."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness.daemon import Odc, kill, new_odc, wait
from tests.support.harness.slurm import NODES, slurm_of


def hook(folder: Path, name: str, body: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def odc() -> Iterator[Odc]:
    with new_odc() as found:
        yield found


def node_reasons(odc: Odc) -> dict[str, tuple[str, str | None]]:
    rows = odc.rows("select name, state::text as state, reason from odc.node order by name")
    return {row["name"]: (row["state"], row["reason"]) for row in rows}


@pytest.mark.long
def test_a_failed_prolog_drains_its_node_and_the_job_runs_elsewhere(
    odc: Odc, tmp_path: Path
) -> None:
    tries = tmp_path / "tries"
    odc.environment["ODC_PROLOG"] = hook(
        tmp_path, "prolog", f'echo "$SLURMD_NODENAME" >> {tries}\ntest "$SLURMD_NODENAME" != gpu1'
    )
    odc.up(*NODES)
    job_id = odc.submit("--output=/dev/null", "--gpus=1", "--nodelist=gpu1", "--wrap", "true")
    wait(lambda: node_reasons(odc)["gpu1"][0] == "DRAIN" or None, odc.log)
    assert node_reasons(odc) == {"gpu1": ("DRAIN", "Prolog error"), "gpu2": ("UP", None)}
    assert odc.job(job_id)["state"] == "PENDING"
    [attempt] = odc.rows(f"select reason from odc.attempt where job_id = {job_id}")
    assert attempt["reason"] == "the prolog failed: exit code 1"
    other = odc.submit("--output=/dev/null", "--gpus=1", "--wrap", "true")
    odc.wait_for(other, "COMPLETED")
    assert tries.read_text().split() == ["gpu1", "gpu2"]


@pytest.mark.long
def test_a_daemon_killed_between_prolog_and_start_starts_the_job_once(
    odc: Odc, tmp_path: Path
) -> None:
    order, go = tmp_path / "order", tmp_path / "go"
    odc.environment["ODC_PROLOG"] = hook(
        tmp_path, "prolog", f"echo prolog >> {order}; while [ ! -e {go} ]; do sleep 0.05; done"
    )
    odc.environment["ODC_EPILOG"] = hook(tmp_path, "epilog", f"echo epilog >> {order}")
    odc.up(*NODES)
    job_id = odc.submit("--output=/dev/null", "--gpus=1", "--wrap", f"echo job >> {order}")
    wait(lambda: order.exists() or None, odc.log)
    kill(odc.pid)
    go.touch()
    odc.up(*NODES)
    odc.wait_for(job_id, "COMPLETED")
    assert order.read_text().split() == ["prolog", "job", "epilog"]


@pytest.mark.long
def test_task_hooks_surround_each_task_of_a_step(odc: Odc, tmp_path: Path) -> None:
    odc.environment["ODC_TASK_PROLOG"] = hook(
        tmp_path,
        "task_prolog",
        "echo export ADDED=$SLURM_PROCID\necho print hello $SLURM_PROCID\n"
        'test "$FAIL" = "$SLURM_PROCID" && exit 3\nexit 0',
    )
    ended = tmp_path / "ended"
    odc.environment["ODC_TASK_EPILOG"] = hook(
        tmp_path,
        "task_epilog",
        'test -n "$SLURM_STEP_ID" || exit 0\n'
        f'echo "$SLURM_PROCID $SLURM_SCRIPT_CONTEXT" >> {ended}',
    )
    odc.up(*NODES)
    with slurm_of(odc, tmp_path / "bin") as slurm:
        slurm.hold("-N2", "--ntasks-per-node=1", "-c4", "--mem=1G")
        done = slurm.run("srun", "-n2", "sh", "-c", "echo task $ADDED; exit $((SLURM_PROCID * 4))")
        assert done.returncode == 4
        lines = sorted(done.stdout.splitlines())
        assert lines == ["hello 0", "hello 1", "task 0", "task 1"]
        assert sorted(ended.read_text().splitlines()) == ["0 epilog_task", "1 epilog_task"]
        failed = slurm.run("srun", "-n2", "sh", "-c", "echo ran $SLURM_PROCID", FAIL="1")
        assert failed.returncode == 1
        assert "ran 0" in failed.stdout
        assert "ran 1" not in failed.stdout
        assert "the task prolog failed: exit code 3" in failed.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="root may write any file")
def test_a_daemon_refuses_to_start_with_a_hook_that_others_can_change(
    odc: Odc, tmp_path: Path
) -> None:
    odc.environment["ODC_EPILOG"] = path = hook(tmp_path, "epilog", "true")
    Path(path).chmod(0o777)
    done = odc.odcd("up", *NODES, check=False)
    assert done.returncode != 0
    assert f"ODC_EPILOG: the program cannot be used: {path} is writable" in done.stderr
