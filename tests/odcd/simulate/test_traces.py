"""Traces: lines are read, left out, or refused with their number."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from odcd.errors import BadRequest
from odcd.simulate.cluster import parse_cluster
from odcd.simulate.generator import generate, parse_recipe
from odcd.simulate.saving import save_trace
from odcd.simulate.trace import TraceJob, replayable
from odcd.simulate.workloads import SAMPLE, read_trace

SWF = """\
; Version: 2.2
; MaxProcs: 100
   15  600  192180  3477  4  -1 -1  5  53940 -1 1 12 12 3 -1 -1 -1 -1

16 622 -1 10 25 -1 -1 -1 -1 -1 0 -1 -1 -1 -1 -1 -1 -1
"""
REST = " -1 10 25 -1 -1 -1 -1 -1 0 -1 -1 -1 -1 -1 -1 -1\n"
CSV = """\
# simulated machine: nodes=27 gpus_per_node=8
submit_s,duration_s,gpus,user,vc,status,est_menu_s
1453,725,1,,ed69ec,,900
1489,184.7,16,ann,103959,,
"""


def a_job(**fields: int) -> TraceJob:
    return TraceJob(**{"submit_s": 0, "run_s": 10, "gpus": 1, "limit_s": 20, **fields})


def a_file(folder: Path, text: str, name: str = "trace") -> str:
    path = folder / name
    data = text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return str(path)


@pytest.mark.parametrize("name", ["t.swf", "t.swf.gz"])
def test_swf_has_processors_of_field_8_else_5_and_estimates_of_field_9_else_the_run_time(
    tmp_path: Path, name: str
) -> None:
    trace = read_trace(a_file(tmp_path, SWF, name))
    assert trace.name == name
    assert str(trace.machine) == "100x1"
    assert list(trace.jobs) == [
        TraceJob(submit_s=600, run_s=3477, gpus=5, limit_s=53940, user="u12", name="app3"),
        TraceJob(submit_s=622, run_s=10, gpus=25, limit_s=10, user="nobody", name="job"),
    ]


def test_gpu_csv_is_recognized_by_content_and_its_virtual_cluster_is_the_user(
    tmp_path: Path,
) -> None:
    trace = read_trace(a_file(tmp_path, CSV))
    assert str(trace.machine) == "27x8"
    assert list(trace.jobs) == [
        TraceJob(submit_s=1453, run_s=725, gpus=1, limit_s=900, user="ed69ec"),
        TraceJob(submit_s=1489, run_s=184, gpus=16, limit_s=184, user="ann"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "wrong"),
    [
        ("1 2 3\n", 1, "3 fields instead of 18"),
        (SWF + f"17 x{REST}", 6, 'submit time (field 2) is not a number: "x"'),
        (SWF + f"17 -5{REST}", 6, "submit time (field 2) is negative: -5"),
        (SWF + f"17 1e99{REST}", 6, 'submit time (field 2) is out of range: "1e99"'),
        (SWF + f"17 nan{REST}", 6, 'submit time (field 2) is out of range: "nan"'),
        (CSV + "5,6\n", 5, "2 fields instead of 7"),
        (CSV + "5,,1,,,,\n", 5, 'duration_s is not a number: ""'),
        (CSV + "-5,1,1,,,,\n", 5, "submit_s is negative: -5"),
        ("submit_s,gpus\n1,1\n", 1, "the header has no column duration_s"),
    ],
    ids=["short", "text", "negative", "huge", "nan", "short-csv", "empty", "minus-csv", "header"],
)
def test_a_malformed_line_is_named_with_its_file_and_number(
    tmp_path: Path, text: str, line: int, wrong: str
) -> None:
    path = a_file(tmp_path, text)
    with pytest.raises(BadRequest) as refused:
        read_trace(path)
    assert refused.value.message == f"{path}, line {line}: {wrong}"


def test_an_invalid_trace_is_refused(tmp_path: Path) -> None:
    for path, wrong in (
        (str(tmp_path / "none"), "does not exist"),
        (str(tmp_path), "is not a file"),
        (a_file(tmp_path, "; nothing but words\n"), "has no jobs"),
    ):
        with pytest.raises(BadRequest, match=wrong):
            read_trace(path)
    torn = tmp_path / "torn.swf.gz"
    torn.write_bytes(gzip.compress(SWF.encode() * 100)[:-20])
    with pytest.raises(BadRequest, match="not a complete gzip file"):
        read_trace(str(torn))


def test_the_sample_trace_can_be_read() -> None:
    trace = read_trace(SAMPLE)
    assert len(trace.jobs) == 2270
    assert str(trace.machine) == "27x8"


def test_replay_rules() -> None:
    cluster = parse_cluster("2x8")
    workload = replayable(
        "t",
        [
            a_job(submit_s=50, run_s=0),
            a_job(submit_s=60, run_s=-1),
            a_job(submit_s=70, gpus=0),
            a_job(submit_s=110, run_s=30, gpus=3),
            a_job(submit_s=100, gpus=16),
            a_job(submit_s=110, gpus=17),
            a_job(submit_s=110, gpus=2),
        ],
        cluster,
    )
    assert (workload.empty, workload.too_wide, workload.cut) == (3, 1, 1)
    # The first kept job comes at 0; jobs of the same second stay in the order of the file.
    assert [(j.submit_s, j.gpus, j.run_s) for j in workload.jobs] == [
        (0, 16, 10), (10, 3, 20), (10, 2, 10)
    ]  # fmt: skip
    assert [j.gpus for j in workload.first(1).jobs] == [16]


def test_a_job_is_in_one_node_or_a_gang_of_whole_nodes() -> None:
    cluster = parse_cluster("27x8")
    assert [cluster.place(gpus) for gpus in (1, 7, 8, 9, 12, 24, 216)] == [
        (1, 1), (1, 7), (1, 8), (2, 8), (2, 8), (3, 8), (27, 8)
    ]  # fmt: skip
    assert cluster.fits(216)
    assert not cluster.fits(217)
    assert parse_cluster("100x1").place(100) == (100, 1)


@pytest.mark.parametrize("text", ["27", "0x8", "27x", "27x63", "x8", "27X8", "99999999x1", "2x8 "])
def test_an_impossible_cluster_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match=r"cluster .* is (not NODESxGPUS|too large)"):
        parse_cluster(text)


@pytest.mark.parametrize("name", ["t.swf", "t.csv", "t.swf.gz", "t.csv.gz"])
@pytest.mark.parametrize("cluster", ["16x8", "128x1"])
def test_a_generated_workload_is_read_back_as_it_was_written(
    tmp_path: Path, name: str, cluster: str
) -> None:
    machine = parse_cluster(cluster)
    jobs = generate(parse_recipe("lublin,jobs=300,load=0.9,users=7,seed=5"), machine)
    save_trace(tmp_path / name, jobs, machine, "for a test")
    trace = read_trace(str(tmp_path / name))
    assert list(trace.jobs) == jobs
    assert trace.machine == machine


def test_a_recipe_generates_the_same_jobs_every_time_with_the_requested_load() -> None:
    machine = parse_cluster("27x8")
    recipe = parse_recipe("lublin,jobs=2000,load=0.7,users=20,seed=3")
    jobs = generate(recipe, machine)
    assert jobs == generate(recipe, machine)
    assert jobs != generate(parse_recipe("lublin,jobs=2000,load=0.7,users=20,seed=4"), machine)
    assert len({job.user for job in jobs}) == 20
    offered = sum(job.gpus * job.run_s for job in jobs) / (216 * jobs[-1].submit_s)
    assert offered == pytest.approx(0.7, rel=0.001)
    assert all(0 < job.run_s <= job.limit_s for job in jobs)
    assert {job.gpus for job in jobs if job.gpus <= 8} <= {1, 2, 4, 8}
    assert all(job.gpus % 8 == 0 for job in jobs if job.gpus > 8)
    assert [job.submit_s for job in jobs] == sorted(job.submit_s for job in jobs)


def test_generated_jobs_come_when_people_work() -> None:
    jobs = generate(parse_recipe("lublin,jobs=5000,load=0.5"), parse_cluster("128x1"))
    hours = [job.submit_s // 3600 % 24 for job in jobs]
    by_day = sum(10 <= hour < 20 for hour in hours)
    by_night = sum(hour < 8 or hour >= 22 for hour in hours)
    assert by_day > 2 * by_night > 0


@pytest.mark.parametrize(
    "text",
    [
        "poisson",
        "lublin,jobs",
        "lublin,jobs=x",
        "lublin,jobs=0",
        "lublin,load=nan",
        "lublin,jobs=5,jobs=6",
        "lublin,color=3",
    ],
)
def test_an_invalid_recipe_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        parse_recipe(text)
