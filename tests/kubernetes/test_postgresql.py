"""The plain PostgreSQL of k8s/: its scripts, run as the pods run them, on real servers."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from odcd.home import account
from odcd.home.postgres_files import usable_install
from tests.support.builders.manifests import FOLDER
from tests.support.harness.controlplane.children import free_port
from tests.support.harness.database import make_home, remove_home

pytestmark = pytest.mark.long

SCRIPTS = FOLDER / "components" / "postgresql"
PATIENCE_S = 120


class Pod:
    """One pod of the StatefulSet: its data, its port, its scripts."""

    def __init__(self, folder: Path, name: str, owner: account.Account, programs: Path) -> None:
        self.name = name
        self.port = free_port()
        self._folder = folder / name
        self._folder.mkdir()
        self._folder.chmod(0o700)
        if os.geteuid() == 0:
            os.chown(self._folder, owner.uid, owner.gid)
        self.data = self._folder / "docker"
        self._owner = owner
        self._environment = {
            "PATH": f"{programs}:/usr/bin:/bin",
            "HOSTNAME": name,
            "PGDATA": str(self.data),
            "PGHOST": str(self._folder),
            "PGPORT": str(self.port),
            "ODC_DB_PASSWORD": "it's",
            "REPLICATION_PASSWORD": "streams",
            "SYNCHRONOUS_STANDBY_NAMES": "*",
        }

    def run(self, *command: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        with self.popen(*command, **more) as child:
            out, err = child.communicate(timeout=PATIENCE_S)
        return subprocess.CompletedProcess(command, child.returncode, out, err)

    def popen(self, *command: str | Path, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            env=self._environment | more,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **self._owner.child(),
        )

    def do(self, *command: str | Path, **more: str) -> str:
        done = self.run(*command, **more)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def sql(self, text: str) -> str:
        return self.do("psql", "-XAtq", "-U", "postgres", "-d", "odc", "-c", text)

    def first_start(self) -> None:
        """As the image's entrypoint: create the database and run the script on a separate
        server."""
        self.do("initdb", "-U", "postgres", "--auth-local=trust", "--auth-host=scram-sha-256")
        self.start()
        self.do("bash", SCRIPTS / "init.sh")
        self.stop("fast")

    def join(self, primary: Pod, names: Path) -> subprocess.CompletedProcess[str]:
        return self.run(
            "bash",
            SCRIPTS / "join.sh",
            PRIMARY_NAME_FILE=str(names),
            PRIMARY_HOST="127.0.0.1",
            PGPORT=str(primary.port),
            PGPASSWORD="streams",
        )

    def start(self) -> None:
        options = f"-p {self.port} -k {self._folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        log = self._folder / "log"
        self.do("pg_ctl", "-w", "-s", "-l", log, "-o", options, "start")

    def stop(self, mode: str) -> None:
        self.do("pg_ctl", "-w", "-s", "-m", mode, "stop")

    def end(self) -> None:
        with suppress(AssertionError):
            self.stop("immediate")


@pytest.fixture
def home() -> Iterator[Path]:
    folder = make_home()
    yield folder
    remove_home(folder)


@pytest.fixture
def pods(home: Path) -> Iterator[tuple[Pod, Pod]]:
    owner = account.service_account()
    programs = usable_install(home, 18, owner) / "bin"
    made = (Pod(home, "odc-db-0", owner, programs), Pod(home, "odc-db-1", owner, programs))
    yield made
    for pod in made:
        pod.end()


@pytest.fixture
def names(home: Path) -> Path:
    """The content of the ConfigMap odc-db-primary."""
    file = home / "name"
    file.write_text("odc-db-0")
    file.chmod(0o644)
    return file


def until(pod: Pod, query: str, answer: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (found := pod.sql(query)) != answer:
        assert time.monotonic() < deadline, f"{query}: {found}"
        time.sleep(0.1)


def test_a_manual_failover_loses_nothing(pods: tuple[Pod, Pod], names: Path) -> None:
    first, second = pods
    assert first.join(first, names).stdout == "odc-db-0 is the primary\n"
    first.first_start()
    first.start()
    # A commit waits for the standby, which copies the primary meanwhile.
    table = "create table accepted as select 1 as id"
    with first.popen("psql", "-XAtq", "-U", "postgres", "-d", "odc", "-c", table) as writing:
        with pytest.raises(subprocess.TimeoutExpired):
            writing.wait(timeout=1)
        joined = second.join(first, names)
        assert joined.returncode == 0, joined.stderr
        second.start()
        _, err = writing.communicate(timeout=PATIENCE_S)
    assert (writing.returncode, err) == (0, "")
    until(second, "select to_regclass('accepted') is not null", "t")
    until(first, "select sync_state from pg_stat_replication", "sync")
    assert second.join(first, names).stdout == "odc-db-1 follows odc-db-0\n"

    # The primary is lost; follow the instructions of docs/operating/kubernetes.md.
    first.stop("immediate")
    names.write_text("odc-db-1")
    second.sql("select pg_promote()")
    second.sql("alter system set synchronous_standby_names = ''")
    second.sql("select pg_reload_conf()")
    until(second, "show synchronous_standby_names", "")
    assert second.sql("insert into accepted values (2) returning id") == "2"

    # If it returns unchanged, the old primary stays down; without its data it copies the new one.
    refused = first.join(second, names)
    assert refused.returncode == 1
    assert "was the primary" in refused.stderr
    assert "data-odc-db-0" in refused.stderr
    first.do("rm", "-rf", first.data)
    joined = first.join(second, names)
    assert joined.returncode == 0, joined.stderr
    first.start()
    until(first, "select count(*) from accepted", "2")


def test_odcd_logs_in_with_its_password_and_owns_its_database(
    pods: tuple[Pod, Pod], names: Path
) -> None:
    first, _ = pods
    first.first_start()
    first.start()
    login = ["psql", "-XAtq", "-h", "127.0.0.1", "-U", "odc", "-d", "odc"]
    first.sql("alter system set synchronous_standby_names = ''")
    first.sql("select pg_reload_conf()")
    assert first.do(*login, "-c", "create schema odc", PGPASSWORD="it's") == ""
    assert first.run(*login, "-c", "select 1", PGPASSWORD="wrong").returncode != 0
    superuser = "select rolsuper or rolreplication from pg_roles where rolname = 'odc'"
    assert first.sql(superuser) == "f"


def test_an_interrupted_copy_starts_again(pods: tuple[Pod, Pod], names: Path) -> None:
    first, second = pods
    first.first_start()
    first.start()
    part = Path(f"{second.data}.part")
    second.do("mkdir", part)
    second.do("touch", part / "PG_VERSION")
    joined = second.join(first, names)
    assert joined.returncode == 0, joined.stderr
    second.start()
    assert second.sql("select pg_is_in_recovery()") == "t"
    assert not os.path.lexists(part)
