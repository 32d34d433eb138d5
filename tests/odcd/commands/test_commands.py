"""odcd's commands on whole homes: what they start, stop, keep and refuse."""

from __future__ import annotations

import json
import os
import pwd
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from odcd.home.account import service_account
from odcd.home.lock import holder
from tests.support.harness.daemon import Odc, an_odc, wait
from tests.support.harness.database import Sql
from tests.support.harness.users import AS_ROOT


def user_of(pid: int) -> str:
    return pwd.getpwuid(Path(f"/proc/{pid}").stat().st_uid).pw_name


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture
def fresh(odc_home: Path) -> Iterator[Odc]:
    """An odc without a home yet."""
    with an_odc(odc_home / "home", odc_home / "work") as found:
        yield found


@pytest.mark.long
def test_up_reports_what_it_started_and_down_leaves_nothing_running(fresh: Odc) -> None:
    odc = fresh
    output = odc.up("--node", "n[1-2]=h100:8", "--node", "self")
    assert f"process {odc.pid}, PostgreSQL 18, home {odc.home}" in output
    assert "n1 (8 x h100, declared), n2 (8 x h100, declared), this machine" in output
    assert f"ODC_HOME={odc.home} odcctl submit script.sh" in output
    again = odc.odcd("up", check=False)
    assert again.returncode == 1
    assert f"odcd already runs in {odc.home}: process {odc.pid}" in again.stderr
    again = odc.odcd("up", "--detach", check=False)
    assert again.returncode == 1
    assert f"process {odc.pid}" in again.stderr
    daemon = odc.pid
    assert f"process {daemon} answers at {odc.home}/odcd.sock" in odc.odcd("doctor").stdout
    assert odc.odcd("down").stdout == f"stopped {odc.home}\n"
    assert gone(daemon)
    assert odc.processes() == []
    assert odc.odcd("down").returncode == 0


@pytest.mark.long
def test_declared_nodes_stay_after_a_restart_and_the_option_wins(odc: Odc) -> None:
    odc.up()
    odc.odcctl("node", "create", "m1", "--type", "h100", "--gpus", "8", "--features", "nvme")
    odc.odcd("down")
    odc.up()
    job = odc.submit("-w", "m1", "--gpus", "8", "--constraint", "nvme", "--wrap", "true")
    odc.wait_for(job, "COMPLETED")
    odc.odcd("down")
    odc.up("--node", "m1=h100:2")

    def gpus() -> int:
        nodes = odc.request("GET", "/v1/nodes")[1]["nodes"]
        return next(node["gpus"] for node in nodes if node["name"] == "m1")

    wait(lambda: gpus() == 2, odc.log)
    refused = odc.odcctl("node", "delete", "m1", check=False)
    assert refused.returncode == 1
    assert "node m1 is declared by --node or ODC_NODES" in refused.stderr


@pytest.mark.long
def test_only_the_parts_that_need_root_run_as_root(odc: Odc) -> None:
    odc.up()
    account = service_account().name
    assert user_of(odc.pid) == account
    status = Path(f"/proc/{odc.pid}/status").read_text()
    assert "CapEff:\t0000000000000000" in status or not AS_ROOT
    runner = int((odc.home / "runner" / "runner.lock").read_text())
    assert user_of(runner) == ("root" if AS_ROOT else account)
    mode = stat.S_IMODE((odc.home / "odcd.sock").stat().st_mode)
    assert mode == (0o666 if AS_ROOT else 0o600)
    assert stat.S_IMODE(odc.home.stat().st_mode) == (0o1775 if AS_ROOT else 0o700)


@pytest.mark.long
def test_term_ends_the_daemon_alone_while_jobs_run_and_the_next_adopts_them(odc: Odc) -> None:
    odc.up()
    flag = odc.work / "go"
    job = odc.submit("--wrap", f"until [ -e {flag} ]; do sleep 0.05; done; echo once >> count")
    odc.wait_for(job, "RUNNING")
    refused = odc.odcd("down", check=False)
    assert refused.returncode == 1
    assert "1 job is running" in refused.stderr
    first = odc.pid
    os.kill(first, signal.SIGTERM)
    wait(lambda: gone(first), lambda: "the daemon stays")
    assert any("postgres" in line for line in odc.processes())
    odc.up()
    assert odc.pid != first
    flag.touch()
    done = odc.wait_for(job, "COMPLETED")
    assert (done["attempt"], done["exit_code"]) == (1, 0)
    assert (odc.work / "count").read_text() == "once\n"
    second = odc.pid
    os.kill(second, signal.SIGTERM)
    wait(lambda: not odc.processes(), lambda: str(odc.processes()))


@pytest.mark.long
def test_killed_parts_are_found_or_started_again(odc: Odc) -> None:
    odc.up()
    job = odc.submit("--wrap", "sleep 0.5; echo $SLURM_JOB_ID")
    daemon = odc.pid
    os.kill(daemon, signal.SIGKILL)
    wait(lambda: holder(odc.home / "odcd.lock") is None, lambda: "the lock stays")
    odc.up()
    postmaster = int((odc.home / "data" / "18" / "postmaster.pid").read_text().split()[0])
    os.kill(postmaster, signal.SIGKILL)
    wait(
        lambda: odc.odcctl("queue", check=False).returncode == 0, lambda: "the database stays away"
    )
    assert odc.wait_for(job, "COMPLETED")["exit_code"] == 0


@pytest.mark.long
def test_serve_runs_jobs_out_of_an_external_database(fresh: Odc, database_url: str) -> None:
    odc = fresh
    with odc.serving("serve", "--dsn", database_url, "--node", "n1=l4:4") as daemon:
        job = odc.submit("--gres=gpu:l4:2", "--wrap", "echo $SLURM_JOB_NODELIST")
        assert odc.wait_for(job, "COMPLETED")["node_names"] == ["n1"]
    assert daemon.returncode == 0
    assert not (odc.home / "data").exists()
    assert odc.processes() == []


@pytest.mark.long
def test_down_sees_the_jobs_of_a_home_without_a_database(fresh: Odc, database_url: str) -> None:
    odc = fresh
    with odc.serving("serve", "--dsn", database_url, "--node", "n1=l4:4"):
        odc.wait_for(odc.submit("--wrap", "sleep 600"), "RUNNING")
    refused = odc.odcd("down", check=False)
    assert (refused.returncode, "1 job is running" in refused.stderr) == (1, True)
    odc.odcd("down", "--force")
    assert odc.processes() == []


@pytest.mark.skipif(not AS_ROOT, reason="only root's daemon is another account")
def test_a_home_that_is_refused_leaves_no_folder_behind(odc_home: Path) -> None:
    closed = odc_home / "closed"
    closed.mkdir(mode=0o700)
    refused = Odc(odc_home, odc_home).odcd("up", "--home", closed / "new" / "home", check=False)
    assert (refused.returncode, "cannot enter" in refused.stderr) == (1, True), refused.stderr
    assert list(closed.iterdir()) == []


@pytest.mark.long
def test_down_by_force_ends_jobs_with_the_reason(odc: Odc) -> None:
    """Jobs that may be requeued do so after the next up; the others are cancelled."""
    odc.up()
    again = odc.submit("--wrap", "sleep 600")
    once = odc.submit("--no-requeue", "--wrap", "sleep 600")
    for job in (again, once):
        odc.wait_for(job, "RUNNING")
    odc.odcd("down", "--force")
    assert odc.processes() == []
    odc.up()
    assert odc.wait_for(once, "CANCELLED")["attempt"] == 1
    assert odc.wait_for(again, "RUNNING")["attempt"] == 2


@pytest.mark.long
def test_a_running_job_of_a_restored_queue_is_requeued_or_ends_node_fail(odc: Odc) -> None:
    odc.up()
    again = odc.submit("--wrap", "sleep 600")
    once = odc.submit("--no-requeue", "--wrap", "echo run >> runs; sleep 600")
    for job in (again, once):
        odc.wait_for(job, "RUNNING")
    output = odc.odcd("backup", odc.work / "queue.odc").stdout
    assert "2 jobs, 0 pending, 2 running" in output
    assert stat.S_IMODE((odc.work / "queue.odc").stat().st_mode) == 0o600
    busy = odc.odcd("restore", odc.work / "queue.odc", "--replace", check=False)
    assert busy.returncode == 1
    assert f"odcd already runs in {odc.home}" in busy.stderr
    odc.odcd("down", "--force")
    with an_odc(odc.home.parent / "other", odc.work) as other:
        assert "2 running" in other.odcd("restore", odc.work / "queue.odc").stdout
        refused = other.odcd("restore", odc.work / "queue.odc", check=False)
        assert "not empty: 2 jobs" in refused.stderr
        other.up()
        assert other.wait_for(once, "NODE_FAIL")["attempt"] == 1
        assert other.wait_for(again, "RUNNING")["attempt"] == 2
        assert (odc.work / "runs").read_text() == "run\n"
        assert other.submit("--wrap", "true") > max(again, once)


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (["up", "--home", "/" + "x" * 100], 2, "too long"),
        (["up", "--node", "n1"], 2, "NAME=TYPE:GPUS"),
        (["up", "--listen", "nowhere"], 2, "HOST:PORT"),
        (["up", "--home", "/proc/x"], 1, "/proc/x cannot be created"),
        (["serve"], 2, "serve needs a database"),
        (
            ["serve", "--dsn", "postgresql:///x", "--executor", "kubernetes", "--node", "n=h100:8"],
            2,
            "--node is only for the local executor",
        ),
        (["migrate", "--dsn", "postgresql://nobody@/x?host=/nowhere"], 1, "cannot be reached"),
        (["backup", "q.odc"], 1, "has no queue"),
        (["restore", "no-such-file"], 1, "cannot be read"),
        (["token", "no-such-user"], 2, "does not exist on this machine"),
        (["down"], 0, ""),
        (["fly"], 2, 'no command "fly"'),
        ([], 2, "COMMAND"),
    ],
)
def test_invalid_commands_are_refused_with_a_reason(
    odc_home: Path, argv: list[str], code: int, says: str
) -> None:
    done = Odc(odc_home, odc_home).odcd(*argv, check=False)
    assert (done.returncode, says in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_migrate_and_token_work_on_any_database(odc_home: Path, empty_database_url: str) -> None:
    odc = Odc(odc_home, odc_home)
    output = odc.odcd("migrate", "--dsn", empty_database_url).stdout
    assert "applied 0001_queue.sql" in output
    assert odc.odcd("migrate", "--dsn", empty_database_url).stdout.count("\n") == 1
    user = pwd.getpwuid(os.getuid()).pw_name
    token = odc.odcd("token", user, "--dsn", empty_database_url).stdout.strip()
    with Sql(empty_database_url) as sql:
        kept = sql.row(
            "select digest, user_name, uid, expires_at - made_at as life from odc.api_key"
        )
    assert token not in kept["digest"]
    assert (kept["user_name"], kept["uid"]) == (user, os.getuid())
    assert kept["life"].total_seconds() == 2 * 3600


@pytest.mark.long
def test_up_takes_its_settings_from_the_file_and_refuses_an_invalid_one(fresh: Odc) -> None:
    odc = fresh
    file = odc.home.parent / "odcd.toml"
    file.write_text('nodes = ["n[1-2]=h100:8"]\nlistn = "127.0.0.1:1"\n')
    file.chmod(0o644)
    done = odc.odcd("up", "--config", str(file), "--detach", check=False)
    assert done.returncode == 2
    assert 'there is no setting "listn"; did you mean listen?' in done.stderr
    file.write_text('nodes = ["n[1-2]=h100:8"]\nlisten = "none"\n')
    output = odc.up("--config", str(file))
    assert "nodes   n1 (8 x h100, declared), n2 (8 x h100, declared)" in output
    assert "page" not in output


@pytest.mark.long
def test_a_backup_that_cannot_be_written_leaves_no_file(odc_home: Path, database_url: str) -> None:
    odc = Odc(odc_home, odc_home)
    done = odc.odcd("backup", "/no/such/folder/q.odc", "--dsn", database_url, check=False)
    assert done.returncode == 1
    assert "/no/such/folder/q.odc cannot be written" in done.stderr
    odc.odcd("backup", "q.odc", "--dsn", database_url)
    assert [path.name for path in odc_home.iterdir()] == ["q.odc"]


def test_doctor_reports_the_state_of_the_machine_and_what_is_missing(odc_home: Path) -> None:
    odc = Odc(odc_home, odc_home)
    checks = json.loads(odc.odcd("doctor", "--json").stdout)["checks"]
    names = {check["about"] for check in checks}
    assert names == {
        "python", "postgresql", "account", "home", "disk", "daemon", "cgroup", "gpus", "clock",
    }  # fmt: skip
    (odc_home / "thesis.tex").touch()
    bad = odc.odcd("doctor", check=False)
    assert bad.returncode == 1
    assert "already contains other files" in bad.stdout
