"""A daemon as users see it: jobs that wait for others, several users, kill -9."""

from __future__ import annotations

import os
import pwd
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odcd.home.lock import holder
from tests.support.harness.daemon import Odc, gone, kill, new_odc, wait
from tests.support.harness.users import as_user, needs_root

NODES = ("--node", "n[1-2]=h100:8x64", "--node", "self")
ANN, BOB = "nobody", "daemon"


@pytest.fixture(scope="module")
def odc() -> Iterator[Odc]:
    with new_odc() as found:
        found.up(*NODES)
        yield found


def until(flag: Path) -> str:
    return f"until [ -e {shlex.quote(str(flag))} ]; do sleep 0.05; done"


def kill_daemon(odc: Odc) -> None:
    pid = odc.pid
    assert kill(pid)
    wait(lambda: gone(pid) and holder(odc.home / "odcd.lock") is None, lambda: "it lives on")


# -- jobs -----------------------------------------------------------------------------------


def test_a_chain_of_jobs_runs_in_order_and_a_broken_one_stops(odc: Odc) -> None:
    log = odc.work / "chain"
    prepare = odc.submit("--array", "0-3%2", "--wrap", f"echo prepare >> {log}")
    train = odc.submit("-d", f"afterok:{prepare}", "-N", "2", "--launch=all",
                       "--gpus-per-node", "h100:8",
                       "--wrap", f"echo train $ODC_RANK $MASTER_ADDR >> {log}")  # fmt: skip
    broken = odc.submit("-d", f"afterok:{train}", "--wrap", f"echo broken >> {log}; exit 3")
    never = odc.submit("-d", f"afterok:{broken}", "--wrap", f"echo never >> {log}")
    clean = odc.submit("-d", f"afterany:{broken}", "--wrap", f"echo clean >> {log}")
    waited = odc.odcctl("wait", str(prepare), str(train), str(broken), str(clean), check=False)
    assert waited.returncode == 3
    lines = log.read_text().splitlines()
    assert lines[:4] == ["prepare"] * 4
    assert sorted(line.split()[1] for line in lines[4:6]) == ["0", "1"]
    assert lines[6:] == ["broken", "clean"]
    job = odc.job(never)
    assert (job["state"], job["reason"]) == ("PENDING", "DependencyNeverSatisfied")
    odc.odcctl("cancel", str(never))
    assert odc.job(never)["state"] == "CANCELLED"


def test_a_killed_daemon_is_followed_by_one_that_knows_every_exit(odc: Odc) -> None:
    """Jobs that continue, jobs that ended in the meantime, jobs that waited."""
    flag = odc.work / "go"
    on = odc.submit("--wrap", f"{until(flag)}; exit 11")
    meanwhile = odc.submit("--wrap", f"echo up > {odc.work}/meanwhile; {until(flag)}; exit 12")
    waiting = odc.submit("-d", f"afternotok:{meanwhile}", "--wrap", "echo after $ODC_ATTEMPT")
    for job in (on, meanwhile):
        odc.wait_for(job, "RUNNING")
    shims = odc.shim_pids()
    kill_daemon(odc)
    assert odc.odcctl("queue", check=False).returncode == 3
    assert set(shims) <= set(odc.shim_pids())
    flag.touch()
    odc.up(*NODES)
    assert odc.odcctl("wait", str(on), str(meanwhile), str(waiting), check=False).returncode == 12
    assert [(odc.job(j)["exit_code"], odc.job(j)["attempt"]) for j in (on, meanwhile, waiting)] == [
        (11, 1), (12, 1), (0, 1),
    ]  # fmt: skip
    assert odc.odcctl("logs", str(waiting)).stdout == "after 1\n"


@pytest.mark.long
def test_a_killed_runner_and_daemon_lose_no_exit(odc: Odc) -> None:
    flag = odc.work / "go too"
    job = odc.submit("--no-requeue", "--wrap", f"echo run >> once; {until(flag)}; exit 21")
    odc.wait_for(job, "RUNNING")
    runner = odc.runner_pid
    assert kill(runner)
    kill_daemon(odc)
    flag.touch()
    odc.up(*NODES)
    assert odc.wait_for(job, "FAILED", "NODE_FAIL")["exit_code"] == 21
    assert (odc.work / "once").read_text() == "run\n"


def test_a_held_or_deferred_job_waits_for_its_release(odc: Odc) -> None:
    held = odc.submit("--hold", "--wrap", "true")
    later = odc.submit("--begin", "now+1hour", "--wrap", "true")
    after = odc.submit("--wrap", "true")
    odc.wait_for(after, "COMPLETED")
    assert [odc.job(job)["reason"] for job in (held, later)] == ["JobHeldUser", "BeginTime"]
    odc.odcctl("release", str(held))
    odc.odcctl("update", str(later), "--begin", "now")
    for job in (held, later):
        odc.wait_for(job, "COMPLETED")


# -- users ----------------------------------------------------------------------------------


def post(odc: Odc, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    return odc.request("POST", path, body)


def a_folder(odc: Odc, user: str) -> Path:
    folder = odc.work / user
    folder.mkdir(exist_ok=True)
    os.chown(folder, pwd.getpwnam(user).pw_uid, 0)
    folder.chmod(0o700)
    return folder


def submit_as(odc: Odc, user: str, wrap: str, **fields: Any) -> int:
    body = {"script": f"#!/bin/sh\n{wrap}\n", "work_dir": str(a_folder(odc, user)), **fields}
    status, answer = as_user(user, lambda: post(odc, "/v1/jobs", body))
    assert status == 201, answer
    return answer["id"]


@needs_root
def test_a_job_runs_as_the_user_who_submitted_it(odc: Odc) -> None:
    job = submit_as(odc, ANN, "id -un; id -G; umask; echo $HOME", umask=0o077, stdout="out")
    done = odc.wait_for(job, "COMPLETED")
    assert done["user"] == ANN
    output = a_folder(odc, ANN) / "out"
    name, groups, umask, _ = output.read_text().splitlines()
    assert (name, umask) == (ANN, "0077")
    assert "0" not in groups.split()
    assert output.stat().st_uid == pwd.getpwnam(ANN).pw_uid
    assert stat.S_IMODE(output.stat().st_mode) == 0o600


@needs_root
def test_odc_does_not_let_users_write_read_or_run_files_of_others(odc: Odc) -> None:
    secret = odc.work / "secret"
    secret.write_text("root's own\n")
    secret.chmod(0o600)
    into = submit_as(odc, ANN, "echo mine now", stdout=str(secret))
    out_of = submit_as(odc, ANN, "cat", stdin=str(secret))
    elsewhere = submit_as(odc, ANN, "true", stdout=str(a_folder(odc, BOB) / "x"))
    for job in (into, out_of, elsewhere):
        failed = odc.wait_for(job, "FAILED")
        assert "Permission denied" in failed["end_detail"]
        assert odc.odcctl("wait", str(job), check=False).returncode != 0
    assert secret.read_text() == "root's own\n"
    assert list(a_folder(odc, BOB).iterdir()) == []


@needs_root
def test_users_change_their_own_jobs_only(odc: Odc) -> None:
    job = submit_as(odc, ANN, "true", hold=True)
    for verb in ("cancel", "release", "hold", "requeue"):
        _, refused = as_user(BOB, lambda v=verb: post(odc, f"/v1/jobs/{job}/{v}", {}))
        [answer] = refused["jobs"]
        assert (answer["outcome"], answer["code"]) == ("refused", "OD013"), verb
    assert odc.job(job)["reason"] == "JobHeldUser"
    for path in (f"/v1/jobs/{job}/script", f"/v1/jobs/{job}/logs"):
        status, problem = as_user(BOB, lambda p=path: odc.request("GET", p))
        assert (status, problem["code"]) == (403, "OD013"), path
    drain = {"state": "DRAIN", "reason": "mine"}
    status, problem = as_user(BOB, lambda: odc.request("PATCH", "/v1/nodes/n1", drain))
    assert (status, problem["code"]) == (403, "OD013")
    [answer] = as_user(ANN, lambda: post(odc, f"/v1/jobs/{job}/cancel", {}))[1]["jobs"]
    assert answer["outcome"] == "cancelled"


@needs_root
def test_users_see_the_state_of_other_users_jobs_but_not_their_secrets(odc: Odc) -> None:
    job = submit_as(odc, ANN, "true", hold=True, environment={"TOKEN": "hunter2"})
    status, answer = as_user(BOB, lambda: odc.request("GET", f"/v1/jobs/{job}"))
    assert status == 200
    assert answer["jobs"][0]["user"] == ANN
    assert "hunter2" not in str(answer)
    odc.odcctl("cancel", str(job))


@needs_root
def test_the_runner_and_the_database_take_no_orders_from_users(odc: Odc) -> None:
    for part in (odc.home / "runner" / "runner.sock", odc.home / "s"):
        assert not as_user(BOB, lambda p=part: os.access(p, os.R_OK | os.W_OK))
