"""Old and new daemons on one database, as docs/operating/upgrade.md says to upgrade them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from odcd.database import schema
from tests.support.harness.daemon import Odc, new_odc, wait
from tests.support.harness.database import Sql
from tests.support.harness.releases import ROOT, check_out, recorded

pytestmark = pytest.mark.long

NODES = ("--node", "n[1-2]=h100:8x64")


class Upgrade:
    """Two daemons of one machine on one database: `old` may have different code than `new`."""

    def __init__(self, stack: ExitStack, dsn: str) -> None:
        self.dsn = dsn
        self._stack = stack
        self.old = stack.enter_context(new_odc())
        self.new = Odc(self.old.home.with_name("second"), self.old.work)
        self.new.home.mkdir()
        (self.new.home / "odcd.lock").touch()
        (self.new.home / "runner").symlink_to(self.old.home / "runner")
        for odc in (self.old, self.new):
            odc.environment |= {"ODC_LEASE_S": "2", "ODC_SWEEP_S": "1"}
        self.sql = stack.enter_context(Sql(dsn))

    def folder(self, name: str) -> Path:
        """For code that the daemons' account can read."""
        made = self.old.home.with_name(name)
        made.mkdir(mode=0o755)
        return made

    def serve(self, odc: Odc) -> ExitStack:
        """The daemon, ready; closing ends it."""
        serving = self._stack.enter_context(ExitStack())
        serving.enter_context(odc.serving("serve", "--dsn", self.dsn, *NODES))
        return serving

    def refusal(self, odc: Odc, *argv: str) -> str:
        done = odc.odcd(*argv, "--dsn", self.dsn, check=False)
        assert done.returncode == 1, done.stdout + done.stderr
        return done.stderr

    @property
    def digest(self) -> str:
        return self.sql.value("select digest from odc.install")

    def log(self, odc: Odc) -> str:
        return odc.home.with_name(f"{odc.home.name}.log").read_text()

    def run_a_job(self, odc: Odc) -> None:
        body = {"script": "#!/bin/sh\nexit 0\n", "work_dir": str(odc.work), "gpus": 1}
        status, answer = odc.request("POST", "/v1/jobs", body)
        assert status == 201, answer
        ended = "select state::text from odc.job where id = $1 and ended_at is not null"
        assert wait(
            lambda: self.sql.value(ended, answer["id"]), lambda: self.log(self.old)
        ) == "COMPLETED"  # fmt: skip


def run_with(odc: Odc, code: Path) -> None:
    """Its commands and its daemon use the code of that folder."""
    odc.environment["PYTHONPATH"] = os.pathsep.join(
        [str(code), odc.environment["PYTHONPATH"]]
    )  # fmt: skip


def next_version(code: Path) -> None:
    """This odc with a migration, and a function that differs, which this one's daemons can use."""
    shutil.copytree(ROOT / "odcd", code / "odcd", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(schema.sql_folder(), code / "sql")
    here = schema.read_source(code / "sql").version
    (code / f"sql/migrations/{here + 1:04}_next.sql").write_text(
        "alter table job add column next_version text;"
    )
    beat = code / "sql/functions/scheduler/leader/beat_term.sql"
    beat.write_text(beat.read_text() + "\n-- Another version.\n")
    (code / "sql/compatible_since").write_text(str(here))


@pytest.fixture
def upgrade(empty_database_url: str) -> Iterator[Upgrade]:
    with ExitStack() as stack:
        yield Upgrade(stack, empty_database_url)


def test_old_replicas_run_and_restart_beside_the_next_version(upgrade: Upgrade) -> None:
    old, new = upgrade.old, upgrade.new
    code = upgrade.folder("code")
    next_version(code)
    run_with(new, code)
    serving = upgrade.serve(old)
    upgrade.run_a_job(old)
    before = upgrade.digest
    assert "run `odcd migrate` of the newer odc" in upgrade.refusal(new, "serve", *NODES)
    assert upgrade.digest == before, "a replica that starts changes nothing beside others"

    assert "_next.sql" in new.odcd("migrate", "--dsn", upgrade.dsn).stdout
    after = upgrade.digest
    assert after != before
    upgrade.run_a_job(old)
    upgrade.serve(new)
    upgrade.run_a_job(new)
    # A node restarts, or the roll takes its time.
    serving.close()
    serving = upgrade.serve(old)
    upgrade.run_a_job(old)
    assert upgrade.digest == after, "the old replica has not installed its own functions again"
    assert "schema.newer" in upgrade.log(old)
    serving.close()
    upgrade.run_a_job(new)
    assert "a newer odc wrote it" in old.odcd("migrate", "--dsn", upgrade.dsn).stdout
    assert upgrade.digest == after


def test_the_previous_releases_daemon_runs_beside_this_one(upgrade: Upgrade) -> None:
    release = recorded()[-1]
    code = upgrade.folder("code")
    if not check_out(release["commit"], code):
        pytest.skip(f"this checkout lacks the history of version {release['version']}")
    old, new = upgrade.old, upgrade.new
    run_with(old, code)
    source = schema.read_source(schema.sql_folder())
    if source.version == release["version"]:
        pytest.skip("no version after the last release yet")
    serving = upgrade.serve(old)
    upgrade.run_a_job(old)
    if release["version"] < source.compatible_since:
        assert "cannot use version" in upgrade.refusal(new, "migrate")
        assert upgrade.digest == release["digest"]
        serving.close()
    new.odcd("migrate", "--dsn", upgrade.dsn)
    assert upgrade.digest == source.digest
    if release["version"] >= source.compatible_since:
        upgrade.run_a_job(old)
    upgrade.serve(new)
    if release["version"] >= source.compatible_since:
        upgrade.run_a_job(old)
        serving.close()
    upgrade.run_a_job(new)
    if release["version"] == 23:
        # It has no record of compatible versions, so it may not start or load its functions.
        assert "this odc knows 23" in upgrade.refusal(old, "serve", *NODES)
    assert upgrade.digest == source.digest
