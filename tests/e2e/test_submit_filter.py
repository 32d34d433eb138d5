"""The submit filter of a real daemon, as users of its commands see it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.harness.daemon import Odc, kill, new_odc, wait
from tests.support.harness.slurm import NODES, slurm_of

FILTER = """
def submit(job, request):
    if job["gpus"] or job["gpus_per_node"]:
        request.reject("GPUs are sold out.\\nAsk again tomorrow.")
    if job["comment"] == "fail":
        raise RuntimeError("details for the log")
    job["comment"] = request.kind
    request.warn("hello")
"""


@pytest.fixture
def odc() -> Iterator[Odc]:
    with new_odc() as found:
        # Where the account of a daemon that root starts can read it.
        path = found.work / "filter.py"
        path.write_text(FILTER)
        path.chmod(0o644)
        found.environment["ODC_SUBMIT_FILTER"] = str(path)
        yield found


@pytest.mark.long
def test_every_command_that_submits_shows_what_the_filter_says(odc: Odc, tmp_path: Path) -> None:
    odc.up(*NODES)
    # odc's own commands.
    for argv in (
        ("submit", "--gpus=1", "--wrap", "true"),
        ("run", "--gpus=1", "true"),
        ("reserve", "--gpus", "1"),
    ):
        refused = odc.odcctl(*argv, check=False)
        assert refused.returncode == 1
        assert "rejected by the site's submit filter: GPUs are sold out." in refused.stderr
        assert "(OD048)" in refused.stderr
    done = odc.odcctl("submit", "--parsable", "-o", "/dev/null", "--wrap", "true")
    assert "hello" in done.stderr
    assert odc.job(int(done.stdout))["comment"] == "batch"
    failed = odc.odcctl("submit", "--comment=fail", "--wrap", "true", check=False)
    assert "the site's submit filter ended with RuntimeError (OD049)" in failed.stderr
    assert "details for the log" not in failed.stderr
    assert "details for the log" in odc.log()
    # Slurm's.
    with slurm_of(odc, tmp_path / "bin") as slurm:
        for command, ending in (
            (("sbatch", "--gpus=1", "--wrap", "true"), "Batch job submission failed"),
            (("salloc", "--gpus=1", "true"), "Job submit/allocate failed"),
            (("srun", "--gpus=1", "true"), "Unable to allocate resources"),
        ):
            refused = slurm.run(*command)
            name = command[0]
            assert refused.returncode == 1
            assert refused.stderr.splitlines()[-3:] == [
                f"{name}: error: GPUs are sold out.",
                f"{name}: error: Ask again tomorrow.",
                f"{name}: error: {ending}: Unspecified error",
            ]
        batch = slurm.run("sbatch", "-o", "/dev/null", "--parsable", "--wrap", "true")
        assert (batch.stderr, odc.job(int(batch.stdout))["comment"]) == ("sbatch: hello\n", "batch")
        for argv in (("srun", "true"), ("salloc", "true")):
            done = slurm.run(*argv)
            assert done.returncode == 0, done.stderr
            assert f"{argv[0]}: hello\n" in done.stderr
    comments = {row["comment"] for row in odc.rows("select comment from odc.job")}
    assert comments == {"batch", "allocation"}
    status, answer = odc.request("POST", "/v1/jobs", {
        "script": "#!/bin/sh\n", "work_dir": "/tmp", "gpus": 1,
    })  # fmt: skip
    assert (status, answer["code"]) == (403, "OD048")


def test_a_daemon_does_not_start_with_a_filter_that_cannot_be_loaded(odc: Odc) -> None:
    Path(odc.environment["ODC_SUBMIT_FILTER"]).write_text("import no_such_module\n")
    failed = odc.odcd("up", "--detach", *NODES, check=False)
    assert failed.returncode == 1
    assert "ODC_SUBMIT_FILTER: the site's submit filter ended with ModuleNotFoundError" in (
        failed.stderr + odc.log()
    )


@pytest.mark.long
def test_the_filter_is_configured_in_the_settings_file(odc: Odc, tmp_path: Path) -> None:
    path = odc.environment.pop("ODC_SUBMIT_FILTER")
    config = tmp_path / "odcd.toml"
    config.write_text(f"submit_filter = {json.dumps(path)}\nsubmit_filter_timeout_s = 20\n")
    odc.up("--config", str(config), *NODES)
    refused = odc.odcctl("submit", "--gpus=1", "--wrap", "true", check=False)
    assert "GPUs are sold out." in refused.stderr


HANGING = """
import os, time

def submit(job, request):
    parent = os.getppid()
    with open("PIDS.new", "w") as file:
        file.write(f"{os.getpid()} {parent} {open(f'/proc/{parent}/stat').read().split()[3]}")
    os.rename("PIDS.new", "PIDS")
    time.sleep(1000)
"""


@pytest.mark.long
def test_a_killed_daemon_leaves_no_process_of_a_filter_that_hangs(odc: Odc) -> None:
    folder = odc.work / "written"
    folder.mkdir()
    folder.chmod(0o777)
    pids = folder / "pids"
    odc.environment["ODC_SUBMIT_FILTER_TIMEOUT_S"] = "60"
    odc.up(*NODES)
    path = Path(odc.environment["ODC_SUBMIT_FILTER"])
    path.write_text(HANGING.replace("PIDS", str(pids)))
    body = {"script": "#!/bin/sh\n", "work_dir": "/tmp"}
    with odc.asking("POST", "/v1/jobs", body):
        wait(lambda: pids.exists() or None, odc.log)
        # Other requests are served meanwhile.
        assert odc.request("GET", "/v1/jobs")[0] == 200
        kill(odc.pid)
        found = [int(pid) for pid in pids.read_text().split()]
        assert len(found) == 3
        wait(lambda: not any(psutil.pid_exists(pid) for pid in found) or None, odc.log)
