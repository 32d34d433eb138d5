"""docs/operating/odc.service restricts odcd as far as possible, without breaking it or its jobs."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.harness.daemon import Odc
from tests.support.harness.users import as_user, needs_root

UNIT = Path(__file__).parents[2] / "docs" / "operating" / "odc.service"
MOST_EXPOSED = 67
"""Tenths, as in docs/operating/security.md."""

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="needs systemd-analyze"
)


def capabilities() -> list[str]:
    found = re.findall(r"^CapabilityBoundingSet=(.*)$", UNIT.read_text(), re.MULTILINE)
    return [name.removeprefix("CAP_").lower() for line in found for name in line.split()]


@needs_systemd
def test_the_unit_is_as_little_exposed_as_the_documents_claim(tmp_path: Path) -> None:
    unit = tmp_path / "odc.service"
    unit.write_text(UNIT.read_text().replace("/opt/odc/bin/odcd", sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED}", unit],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "unrecognized option" in done.stderr:
        pytest.skip("needs systemd 250")
    assert done.returncode == 0, done.stdout[-500:]


@pytest.mark.long
@needs_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_the_units_capabilities_and_umask_are_enough(odc: Odc) -> None:
    """A job of another user runs to its end, may still use setuid programs, and cannot regain the
    rights that the unit removed."""
    kept = ",".join(f"+{name}" for name in capabilities())
    up = subprocess.run(
        ["setpriv", f"--bounding-set=-all,{kept}", "--inh-caps=-all",
         sys.executable, "-m", "odcd", "up", "--detach"],
        env=odc.environment, cwd=odc.work, capture_output=True, text=True, check=False, umask=0o077,
    )  # fmt: skip
    assert up.returncode == 0, up.stderr + odc.log()
    nobody = pwd.getpwnam("nobody")
    folder = odc.work / "nobody"
    folder.mkdir()
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    body = {
        "script": "#!/bin/sh\ngrep -E '^(Uid|CapBnd|NoNewPrivs)' /proc/self/status\n",
        "work_dir": str(folder), "stdout": "out",
    }  # fmt: skip
    status, answer = as_user("nobody", lambda: odc.request("POST", "/v1/jobs", body))
    assert status == 201, answer
    assert odc.wait_for(answer["id"], "COMPLETED")["exit_code"] == 0
    facts = dict(line.split(":", 1) for line in (folder / "out").read_text().splitlines())
    assert facts["Uid"].split() == [str(nobody.pw_uid)] * 4
    assert facts["NoNewPrivs"].strip() == "0"
    sys_admin, sys_module = 1 << 21, 1 << 16
    assert int(facts["CapBnd"], 16) & (sys_admin | sys_module) == 0
    odc.odcd("down")
