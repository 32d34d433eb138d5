"""Shaken replays: moved submissions, several processes, and the summary of their figures."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from odcd.__main__ import main
from odcd.errors import BadRequest, OdcError
from odcd.simulate.apart import run_apart
from odcd.simulate.output import shaken_table
from odcd.simulate.shake import MOVE_S, shaken, summaries
from odcd.simulate.trace import TraceJob, Workload

SMALL = "lublin,jobs=40,load=0.9,users=3,seed=2"


def a_workload(count: int = 50) -> Workload:
    jobs = (TraceJob(submit_s=100 * n, run_s=n + 1, gpus=1, limit_s=900) for n in range(count))
    return Workload(name="even", jobs=tuple(jobs))


def test_each_submission_moves_by_at_most_ten_minutes_and_the_first_is_at_zero() -> None:
    workload = a_workload()
    moved = shaken(workload, 1)
    assert moved.jobs[0].submit_s == 0
    assert [job.submit_s for job in moved.jobs] == sorted(job.submit_s for job in moved.jobs)
    # Every job is still there, known here by its run time.
    offsets = [job.submit_s - 100 * (job.run_s - 1) for job in moved.jobs]
    assert Counter(job.run_s for job in moved.jobs) == Counter(job.run_s for job in workload.jobs)
    assert max(offsets) - min(offsets) <= MOVE_S
    assert len(set(offsets)) > 10


def test_a_seed_always_moves_the_jobs_in_the_same_way() -> None:
    assert shaken(a_workload(), 3) == shaken(a_workload(), 3)
    assert shaken(a_workload(), 3) != shaken(a_workload(), 4)


def figures(policy: str, wait: float, eta: float | None = None) -> dict[str, Any]:
    zero = {"p50": 1.0, "p99": 1.0, "max": 1.0}
    names = ("mae_s", "median_ae_s", "bias_s", "coverage_p10_p90", "mean_width_s")
    return {
        "trace": "t", "cluster": "2x4", "left_out": {"too_wide": 0, "empty": 0}, "policy": policy,
        "jobs": 3, "mean_wait_s": wait, "median_wait_s": 0, "p95_wait_s": wait, "max_wait_s": wait,
        "mean_bounded_slowdown": wait, "utilization": 0.5, "makespan_s": 10,
        "eta": dict.fromkeys(names, eta), "passes": 4, "pass_ms": zero,
    }  # fmt: skip


def test_means_errors_and_ratios_match_a_hand_calculation() -> None:
    results = [figures("a", 10.0), figures("a", 20.0), figures("b", 5.0), figures("b", 30.0, 7.0)]
    first, second = summaries(results, 2, 2)
    assert first["mean"]["mean_wait_s"] == 15
    assert first["standard_error"]["mean_wait_s"] == 5
    assert first["mean"]["eta"]["mae_s"] is None
    assert (second["policy"], second["compared_with"], second["shake"]) == ("b", "a", 2)
    assert second["ratio"]["mean"]["mean_wait_s"] == 1.0
    assert second["ratio"]["standard_error"]["mean_wait_s"] == 0.5
    # A figure that one run lacks has a mean, but no error; 0 / 0 is no ratio.
    assert second["mean"]["eta"]["mae_s"] == 7
    assert second["standard_error"]["eta"]["mae_s"] is None
    assert second["ratio"]["mean"]["median_wait_s"] is None
    lines = shaken_table([first, second]).splitlines()
    assert lines[0].split() == ["t,", "a", "t,", "b", "b", "/", "a"]
    [row] = [line for line in lines if line.startswith("mean wait")]
    assert row.split("  ")[-1] == "1.000 ± 0.500"
    assert "15 ± 5 s" in row


def test_results_come_in_the_order_of_the_works() -> None:
    shown: list[tuple[int, int]] = []

    def work(number: int) -> dict[str, int]:
        time.sleep(0.05 * (3 - number))
        return {"number": number, "pid": os.getpid()}

    works = [lambda n=n: work(n) for n in range(4)]
    found = run_apart(works, 2, lambda done, total: shown.append((done, total)))
    assert [one["number"] for one in found] == [0, 1, 2, 3]
    assert len({os.getpid(), *(one["pid"] for one in found)}) == 5
    assert shown == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_an_error_in_one_process_ends_the_others(tmp_path: Path) -> None:
    def refuse() -> None:
        raise BadRequest("it is wrong", "Correct it.")

    def wait() -> None:
        (tmp_path / "pid").write_text(str(os.getpid()))
        time.sleep(60)
        (tmp_path / "late").touch()

    def refuse_later() -> None:
        while not (tmp_path / "pid").exists():
            time.sleep(0.01)
        refuse()

    with pytest.raises(BadRequest, match="it is wrong") as refused:
        run_apart([wait, refuse_later], 2, lambda done, total: None)
    assert refused.value.hint == "Correct it."
    with pytest.raises(OdcError, match="ZeroDivisionError"):
        run_apart([lambda: 1 // 0], 2, lambda done, total: None)
    with pytest.raises(OdcError, match="interrupted"):
        run_apart([lambda: os._exit(1)], 1, lambda done, total: None)
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()
    assert not (tmp_path / "late").exists()


@pytest.mark.long
def test_policies_are_compared_on_the_same_runs(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["simulate", "--generate", SMALL, "--cluster", "2x8", "--no-eta", "--shake", "2"]
    assert main([*argv, "--policy", "odc,fifo", "--json"]) == 0
    odc, fifo = json.loads(capsys.readouterr().out)
    assert (odc["policy"], fifo["policy"], fifo["compared_with"]) == ("odc", "fifo", "odc")
    assert main([*argv, "--processes", "1", "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert without_times(alone["runs"]) == without_times(odc["runs"])
    assert [run["jobs"] for run in fifo["runs"]] == [40, 40]
    waits = [run["mean_wait_s"] for run in fifo["runs"]]
    assert fifo["mean"]["mean_wait_s"] == pytest.approx(sum(waits) / 2)


def without_times(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: run[key] for key in run if key != "pass_ms"} for run in runs]
