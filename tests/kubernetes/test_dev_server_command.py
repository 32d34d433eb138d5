"""A command in its own reservation, in a container that really runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kubernetes.test_dev_servers import PODS, a_github
from tests.support.harness.controlplane import openssh
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.controlplane.processes import ProcessNodes
from tests.support.harness.daemon import wait
from tests.support.harness.database import TestServer
from tests.support.harness.stacks import on_kubernetes

pytestmark = pytest.mark.long


def test_a_folder_is_copied_to_the_dev_server_and_back_with_the_exit_code(
    shared_plane: ControlPlane, postgres_server: TestServer, real_nodes: ProcessNodes,
    installed: object, tmp_path: Path,
) -> None:  # fmt: skip
    """CLI-50: runs as its user, and leaves no pod."""
    if why := openssh.why_not():
        pytest.skip(why)
    key, program, work = tmp_path / "key", tmp_path / "bin/ssh", tmp_path / "work"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    program.parent.mkdir()
    # OpenSSH looks for keys where the password file says, and not in HOME.
    program.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -i {key} -o IdentitiesOnly=yes "$@"\n')
    program.chmod(0o755)
    work.mkdir()
    (work / "input").write_bytes(os.urandom(3_000_000))
    dsn = postgres_server.clone()
    kubeconfig = shared_plane.account_kubeconfig("gpu-controlplane", "odcd")
    settings = {"ODC_DEV_IMAGE": "x/dev:1", "ODC_LOOK_S": "1"}
    script = 'id -un; tail -c 2000000 input > out; echo "$1" >> said; exit 255'
    try:
        with (
            a_github((tmp_path / "key.pub").read_text().strip()) as url,
            on_kubernetes(
                dsn, kubeconfig, real_nodes.names, ODC_GITHUB_URL=url, **settings
            ) as stack,
        ):
            environment = stack.odc.environment
            done = subprocess.run(
                [sys.executable, "-m", "odcctl", "reserve", "-t", "h100", "-g", "1", "-h", "1",
                 "--github-user", "alice", "--send", work, "--", "sh", "-c", script, "-", "$HOME"],
                env=environment | {"PATH": f"{program.parent}:{environment['PATH']}"},
                capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            assert (done.returncode, done.stdout) == (255, "dev\n"), done.stderr + stack.log()
            assert (work / "out").read_bytes() == (work / "input").read_bytes()[-2_000_000:]
            assert (work / "said").read_text() == "$HOME\n"
            assert "fetched new files" in done.stderr
            wait(lambda: not shared_plane.api.items(PODS), stack.log)
    finally:
        postgres_server.drop(dsn)
