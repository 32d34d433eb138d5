"""Figures, tables and pictures of replays small enough to calculate by hand."""

from __future__ import annotations

import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

from odcd.errors import BadRequest
from odcd.simulate.cluster import parse_cluster
from odcd.simulate.figures import bounded_slowdown, figures, percentile
from odcd.simulate.outcomes import Outcome, Replayed
from odcd.simulate.output import table, write_jobs
from odcd.simulate.picture import COLUMNS, LEFT, ROWS, charts, check_picture, picture
from odcd.simulate.trace import Workload

CLUSTER = parse_cluster("2x4")
JOBS = (
    Outcome(job_id=1, submit_s=0, start_s=0, end_s=100, gpus=8, nodes=("n1", "n2")),
    Outcome(
        job_id=2, submit_s=10, start_s=100, end_s=110, gpus=4, nodes=("n1",),
        predicted=(50.0, 90.0, 100.0),
    ),
    Outcome(
        job_id=3, submit_s=20, start_s=100, end_s=200, gpus=1, nodes=("n2",),
        predicted=(110.0, 130.0, 140.0),
    ),
)  # fmt: skip
DONE = Replayed(policy="fifo", jobs=JOBS, pass_ms=(1.0, 3.0, 2.0, 40.0))
WORKLOAD = Workload(name="three", jobs=(), too_wide=2)


def test_figures_match_a_hand_calculation() -> None:
    found = figures(DONE, WORKLOAD, CLUSTER)
    assert found["trace"] == "three"
    assert found["left_out"] == {"too_wide": 2, "empty": 0}
    assert found["policy"] == "fifo"
    assert found["jobs"] == 3
    assert found["mean_wait_s"] == pytest.approx(170 / 3, abs=0.001)
    assert found["median_wait_s"] == 80
    assert found["p95_wait_s"] == 90
    assert found["max_wait_s"] == 90
    assert found["mean_bounded_slowdown"] == pytest.approx((1 + 10 + 1.8) / 3, abs=0.0001)
    assert found["utilization"] == pytest.approx((800 + 40 + 100) / (8 * 200))
    assert found["makespan_s"] == 200
    assert found["eta"] == {
        "mae_s": 20.0,
        "median_ae_s": 20.0,
        "bias_s": 10.0,
        "coverage_p10_p90": 0.5,
        "mean_width_s": 40.0,
    }
    assert found["passes"] == 4
    assert found["pass_ms"] == {"p50": 2.0, "p99": 40.0, "max": 40.0}


def test_no_jobs_have_no_figures() -> None:
    found = figures(Replayed(policy="fifo", jobs=(), pass_ms=()), WORKLOAD, CLUSTER)
    assert found["jobs"] == 0
    assert found["mean_wait_s"] is None
    assert found["utilization"] is None
    assert set(found["eta"].values()) == {None}
    assert found["pass_ms"] == {"p50": None, "p99": None, "max": None}
    assert "mean wait" in table([found])


@pytest.mark.parametrize(
    ("wait_s", "run_s", "slowdown"),
    [(0, 5, 1.0), (5, 5, 1.0), (15, 5, 2.0), (90, 10, 10.0), (10, 100, 1.1)],
)
def test_bounded_slowdown(wait_s: int, run_s: int, slowdown: float) -> None:
    assert bounded_slowdown(wait_s, run_s) == pytest.approx(slowdown)


def test_a_percentile_is_one_of_the_values() -> None:
    assert percentile([3.0, 1.0, 2.0, 4.0], 0.5) == 2.0
    assert percentile([3.0, 1.0, 2.0, 4.0], 0.95) == 4.0
    assert percentile([7.0], 0.01) == 7.0


def test_the_table_has_a_column_per_trace() -> None:
    found = figures(DONE, WORKLOAD, CLUSTER)
    lines = table([found, {**found, "trace": "another"}]).splitlines()
    assert lines[0].split("  ")[-2:] == ["three, fifo", "another, fifo"]
    [row] = [line for line in lines if line.startswith("mean bounded slowdown")]
    assert row.split()[3:] == ["4.27", "4.27"]
    assert len(row) == len(lines[0])


def test_the_csv_has_a_line_per_job(tmp_path: Path) -> None:
    write_jobs(tmp_path / "jobs.csv", JOBS)
    assert (tmp_path / "jobs.csv").read_text() == (
        "id,submit,start,end,nodes\n1,0,0,100,n1 n2\n2,10,100,110,n1\n3,20,100,200,n2\n"
    )


def test_the_picture_shows_allocated_gpus_and_waits() -> None:
    root = xml.fromstring(picture("<three> on 2x4", JOBS, CLUSTER))
    texts = [text.text or "" for text in root.iter("{http://www.w3.org/2000/svg}text")]
    shown = "\n".join(texts).replace("\u00a0", " ")
    assert "<three> on 2x4" in shown.splitlines()
    assert "GPUs in use, % of the machine" in shown
    assert "minutes since the first submission" in shown
    assert "http" not in "".join(root.itertext())
    lines = [line.plain[LEFT:].ljust(COLUMNS) for line in charts(JOBS, CLUSTER)]
    used, waiting = lines[1 : 1 + ROWS], lines[3 + ROWS : 3 + 2 * ROWS]
    # In the first half the whole machine is allocated, and in the end one GPU of eight.
    half = COLUMNS // 2
    assert {row[:half] for row in used} == {"█" * half}
    assert [row[-1] for row in used] == [" "] * 8 + ["▂", "█"]
    # Two wait until the middle, none from then on.
    assert {row[COLUMNS // 10 : half] for row in waiting} == {"█" * (half - COLUMNS // 10)}
    assert {row[half:].strip() for row in waiting} == {""}


@pytest.mark.parametrize(("name", "wrong"), [("a.png", "SVG, not PNG"), ("a.txt", "not the name")])
def test_only_svg_is_drawn(name: str, wrong: str) -> None:
    with pytest.raises(BadRequest, match=wrong):
        check_picture(Path(name))
