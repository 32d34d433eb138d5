"""odcd simulate on the command line."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from odcd.__main__ import main
from odcd.simulate.server import PREFIX

pytestmark = pytest.mark.long

SMALL = "lublin,jobs=40,load=0.9,users=3,seed=2"


def databases() -> set[Path]:
    return set(Path("/tmp").glob(f"{PREFIX}{os.getpid()}-*"))


def test_simulate_prints_figures_and_writes_the_requested_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, picture, trace = tmp_path / "jobs.csv", tmp_path / "a.svg", tmp_path / "a.swf"
    files = ["--out", str(out), "--picture", str(picture), "--save", str(trace)]
    assert main(["simulate", "--generate", SMALL, "--cluster", "4x8", "--json", *files]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["trace"] == SMALL
    assert found["cluster"] == "4x8"
    assert found["jobs"] == 40
    assert set(found["eta"]) == {
        "mae_s", "median_ae_s", "bias_s", "coverage_p10_p90", "mean_width_s"
    }  # fmt: skip
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [row["id"] for row in rows] == [str(n) for n in range(1, 41)]
    assert found["makespan_s"] == max(int(row["end"]) for row in rows)
    assert picture.read_text().startswith("<svg")
    assert databases() == set()

    # The saved trace is the same workload, and its header names the machine.
    again = tmp_path / "again.csv"
    assert main(["simulate", str(trace), "--policy", found["policy"], "--out", str(again)]) == 0
    assert again.read_text() == out.read_text()
    assert "mean bounded slowdown" in capsys.readouterr().out


def test_several_traces_have_a_result_each(capsys: pytest.CaptureFixture[str]) -> None:
    sample = ["philly-sample", "philly-sample"]
    options = ["--policy", "fifo", "--jobs", "30", "--cluster", "1x4", "--max-wait", "2h"]
    assert main(["simulate", *sample, *options, "--plan-depth", "all", "--json"]) == 0
    output = capsys.readouterr()
    one, two = json.loads(output.out)
    del one["pass_ms"], two["pass_ms"]
    assert one == two
    assert one["jobs"] == 30
    assert one["left_out"]["too_wide"] > 0
    assert f"wider than 1x4, left out: {one['left_out']['too_wide']}" in output.err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "give either traces"),
        (["t.swf", "--generate", SMALL], "or --generate"),
        (["none.swf"], "trace none.swf does not exist"),
        (["philly-sample", "--cluster", "27"], 'cluster "27" is not NODESxGPUS'),
        (["philly-sample", "--jobs", "0"], '--jobs takes a whole number of at least 1, not "0"'),
        (["philly-sample", "--plan-depth", "-1"], 'at least 0, or all, not "-1"'),
        (["philly-sample", "--max-wait", "2y"], '--max-wait cannot be "2y"'),
        (["philly-sample", "--picture", "a.png"], "as SVG, not PNG"),
        (["philly-sample", "--save", "a.swf"], "--save is for workloads made with --generate"),
        (["philly-sample", "--out", "/nowhere/a.csv"], "the folder does not exist"),
        (["philly-sample", "philly-sample", "--out", "a.csv"], "there are several"),
        (["--generate", "lublin,jobs=x"], 'jobs is not a number: "x"'),
        (["--generate", SMALL, "--save", "a.txt"], "a.txt has no known trace format"),
        (["--generate", SMALL, "--policy", "lifo"], 'policy "lifo" does not exist'),
        (["--generate", SMALL, "--policy", "odc,odc"], "names a policy twice"),
        (["--generate", SMALL, "--policy", "odc,fifo", "--out", "a.csv"], "is for one replay"),
        (["philly-sample", "--shake", "1"], '--shake takes a whole number from 2 to 1000, not "1"'),
        (["philly-sample", "--shake", "many"], 'from 2 to 1000, not "many"'),
        (["philly-sample", "--shake", "1001"], 'from 2 to 1000, not "1001"'),
        (["philly-sample", "--shake", "2", "--picture", "a.svg"], "is for one replay"),
        (["philly-sample", "--processes", "2"], "--processes needs --shake"),
        (["--generate", SMALL, "--policy", "lifo", "--shake", "2"], 'policy "lifo" does not exist'),
    ],
    ids=lambda value: None if isinstance(value, str) else "-".join(value)[:40],
)
def test_invalid_arguments_are_refused(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", *argv]) in (1, 2)
    output = capsys.readouterr()
    assert output.out == ""
    assert message in output.err


def test_an_unknown_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "philly-sample", "--fast"]) == 2
    assert 'no option "--fast"' in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
def test_an_interrupted_simulation_leaves_nothing_behind(number: signal.Signals) -> None:
    replay = subprocess.Popen(
        [sys.executable, "-m", "odcd", "simulate", "--generate", "lublin,jobs=100000"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    mine = f"{PREFIX}{replay.pid}-*"
    deadline = time.monotonic() + 60
    while not list(Path("/tmp").glob(f"{mine}/home/data/*/postmaster.pid")):
        assert replay.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(1.0)
    replay.send_signal(number)
    out, err = replay.communicate(timeout=60)
    assert (replay.returncode, out) == (130, ""), err
    assert "Traceback" not in err
    assert list(Path("/tmp").glob(mine)) == []
    left = [p for p in Path("/proc").glob("[0-9]*/cmdline") if mine[:-1].encode() in _read(p)]
    assert left == []


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
