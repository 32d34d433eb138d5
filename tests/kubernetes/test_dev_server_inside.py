"""A dev server whose container really runs: its start program, its SSH server, its files."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

import msgspec
import psutil
import pytest

from odcd.executor.kubernetes import notices
from odcd.executor.kubernetes.cluster import Cluster
from odcd.executor.kubernetes.objects import Pod
from tests.kubernetes.test_dev_servers import PODS, DevServerSite, a_github
from tests.support.harness.controlplane import openssh
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.controlplane.processes import ProcessNodes
from tests.support.harness.daemon import wait
from tests.support.harness.database import TestServer
from tests.support.harness.stacks import on_kubernetes

pytestmark = pytest.mark.long

NAME = 'box"; touch $HOME/pwned; $(touch pwned) `id`'
"""A reservation's name is its user's text: no part of it runs as a command."""


class Inside:
    """One dev server, and OpenSSH's client outside."""

    def __init__(self, site: DevServerSite, job_id: int, folder: Path) -> None:
        self.site = site
        self.job_id = job_id
        self.folder = folder
        [host_key] = site.show(job_id)["host_keys"]
        (folder / "known_hosts").write_text(f"odc {host_key}\n")

    def command(self, *arguments: str, key: str = "key", user: str = "dev") -> list[str]:
        options = {
            "Port": "2222", "IdentityFile": str(self.folder / key), "IdentitiesOnly": "yes",
            "UserKnownHostsFile": str(self.folder / "known_hosts"), "HostKeyAlias": "odc",
            "StrictHostKeyChecking": "yes", "BatchMode": "yes", "ConnectTimeout": "60",
            "LogLevel": "ERROR",
        }  # fmt: skip
        given = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return ["ssh", "-F", "none", *given, f"{user}@127.0.0.1", *arguments]

    def try_ssh(self, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments, **more),
            capture_output=True, text=True, timeout=120, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def ssh(self, *arguments: str, **more: Any) -> str:
        done = self.try_ssh(*arguments, **more)
        assert done.returncode == 0, f"{done.stderr}{self.log()}"
        return done.stdout.strip()

    def wait_for_output(self, command: str, expected: str) -> None:
        def found() -> bool:
            return expected in self.try_ssh(command).stdout

        wait(found, lambda: f"{self.try_ssh(command)}{self.log()}")

    def pod(self) -> Any:
        [pod] = self.site.pods(self.job_id)
        return pod

    def restarts(self) -> int:
        return self.pod()["status"]["containerStatuses"][0]["restartCount"]

    def kill(self, *arguments: str) -> None:
        os.kill(self._first(*arguments), 9)

    @staticmethod
    def _first(*arguments: str) -> int:
        """The first process in the dev server with these words in its command line."""
        return min(
            process.pid
            for process in psutil.process_iter()
            if all(word in _argv(process) for word in arguments)
        )

    def as_root(self, script: str) -> str:
        """Run it in the container, as `pods/exec` does."""
        first = str(self._first("/bin/sh", "/odc/job/start"))
        entered = [
            "nsenter",
            "--target",
            first,
            "--mount",
            "--uts",
            "--ipc",
            "--pid",
            "--root",
            "--wdns=/",
        ]
        done = subprocess.run(
            [*entered, "--", "/bin/sh", "-c", script],
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        return done.stdout + done.stderr

    def log(self) -> str:
        return "\n" + self.site.stack("logs", str(self.job_id), check=False)[-3000:]


def _argv(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.fixture(scope="module")
def inside(
    shared_plane: ControlPlane, postgres_server: TestServer, real_nodes: ProcessNodes,
    installed: object, tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Inside]:  # fmt: skip
    if why := openssh.why_not():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("ssh")
    for name in ("key", "other"):
        made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", folder / name]
        subprocess.run(made, check=True)
    dsn = postgres_server.clone()
    kubeconfig = shared_plane.account_kubeconfig("gpu-controlplane", "odcd")
    try:
        key, other = ((folder / f"{name}.pub").read_text().strip() for name in ("key", "other"))
        settings = {"ODC_DEV_IMAGE": "x/dev:1", "ODC_LOOK_S": "1"}
        with (
            a_github(key, bob=other) as url,
            on_kubernetes(
                dsn, kubeconfig, real_nodes.names, ODC_GITHUB_URL=url, **settings
            ) as stack,
        ):
            site = DevServerSite(stack, shared_plane.api)
            job_id = site.reserve(hours=1, name=NAME)
            site.until(job_id, "active")
            yield Inside(site, job_id, folder)
            stack("cancel", "--all", check=False)
            wait(lambda: not shared_plane.api.items(PODS), stack.log)
    finally:
        postgres_server.drop(dsn)


def test_ssh_accepts_only_authorized_keys_of_the_dev_user(inside: Inside) -> None:
    """ACC-01, ACC-24, POD-02"""
    assert inside.ssh("id", "-un") == "dev"
    assert inside.ssh("pwd") == "/home/dev"
    assert "Permission denied" in inside.try_ssh("true", key="other").stderr
    assert "Permission denied" in inside.try_ssh("true", user="root").stderr
    assert inside.ssh("touch /home/dev/a /workspace/b && ls /home/dev /workspace") != ""


def test_ssh_is_tunnelled_through_the_daemon_and_the_api_server(inside: Inside) -> None:
    """ACC-07, ACC-10, ACC-18, ACC-24: as users have it, to a node without an address; an added user
    can enter at once."""
    stack = inside.site.stack
    conf = Path(stack("config", "ssh", str(inside.job_id)).strip())

    def through(*arguments: str, key: str = "key") -> subprocess.CompletedProcess[str]:
        given = ["-F", conf, "-i", inside.folder / key, "-o", "IdentitiesOnly=yes"]
        return subprocess.run(
            ["ssh", *given, "-o", "BatchMode=yes", f"odc-{inside.job_id}", *arguments],
            env=stack.odc.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip

    assert "StrictHostKeyChecking yes" in conf.read_text()
    done = through("id -un; head -c 3000000 /dev/zero | tr '\\0' x; exit 3")
    assert (done.returncode, done.stdout) == (3, "dev\n" + "x" * 3_000_000), done.stderr
    assert "Permission denied" in through("true", key="other").stderr
    stack("edit", str(inside.job_id), "--add-user", "bob")
    assert inside.site.show(inside.job_id)["secondary_users"] == ["bob"]
    assert through("id", "-un", key="other").stdout == "dev\n"


def test_an_ssh_session_has_the_environment_of_its_job(inside: Inside) -> None:
    """IMG-21, MNE-08: also without a login shell."""
    environment = dict(line.partition("=")[::2] for line in inside.ssh("env").splitlines())
    pod = inside.pod()
    cpus = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    assert (
        environment["OMP_NUM_THREADS"]
        == environment["MAX_JOBS"]
        == environment["MKL_NUM_THREADS"]
        == cpus
    )
    assert inside.ssh("nproc") == cpus
    assert (environment["ODC_JOB_ID"], environment["SLURM_JOB_ID"]) == (
        str(inside.job_id),
        str(inside.job_id),
    )
    assert environment["MASTER_PORT"] == "29500"
    assert environment["HF_HOME"].startswith("/workspace/")
    assert environment["CCACHE_DIR"].startswith("/workspace/")
    assert environment["HOME"] == "/home/dev"


def test_a_login_shows_the_greeting_and_runs_no_user_text_as_a_command(inside: Inside) -> None:
    """BUG-30"""
    done = subprocess.run(
        inside.command("-tt"), input="exit\n", capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert f"Reservation {inside.job_id} ({NAME}) of alice" in done.stdout, done
    assert "pwned" not in inside.ssh("ls", "/home/dev", "/")


def test_warnings_reach_the_home_and_the_terminals_and_an_extension_clears_them(
    inside: Inside,
) -> None:
    """EXP-02, EXP-03, EXP-05, EXP-16"""
    with subprocess.Popen(
        inside.command("-tt", "sleep 600"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as watching:
        try:
            wait(lambda: inside.try_ssh("ls /dev/pts").stdout.startswith("0"), inside.log)
            inside.site.stack.sql(
                "update odc.reservation set expires_at = now() + interval '14 minutes', "
                "launched_at = now() - interval '1 hour'",
                "notify odc",
            )
            inside.wait_for_output("cat WARN_EXPIRES_IN_15MIN.txt", "ends in 15 minutes")
            inside.wait_for_output("cat /etc/motd", "ends in 15 minutes")
            assert NAME in inside.ssh("cat WARN_EXPIRES_IN_15MIN.txt")
            assert inside.ssh("stat -c %U WARN_EXPIRES_IN_15MIN.txt") == "dev"
            assert "pwned" not in inside.ssh("ls /home/dev")
            assert watching.stdout is not None
            os.set_blocking(watching.stdout.fileno(), False)
            shown = b""
            until = time.monotonic() + 60
            while b"ends in 15 minutes" not in shown and time.monotonic() < until:
                shown += watching.stdout.read() or b""
                time.sleep(0.05)
            assert b"ends in 15 minutes" in shown
        finally:
            watching.kill()
    inside.site.call("POST", f"/v1/reservations/{inside.job_id}/extend", {"hours": 1})
    wait(
        lambda: "WARN" not in inside.try_ssh("ls; cat /etc/motd").stdout,
        lambda: inside.ssh("ls") + inside.site.stack.log(),
    )
    assert "ends in" not in inside.ssh("cat /etc/motd")


def test_the_ssh_server_is_restarted_when_it_dies(inside: Inside) -> None:
    """ACC-24: the container continues."""
    before = inside.restarts()
    inside.kill("-D", "/odc/job/sshd_config")
    inside.wait_for_output("echo back", "back")
    assert inside.restarts() == before


def test_a_restarted_container_keeps_home_host_key_and_added_users(
    inside: Inside, shared_plane: ControlPlane
) -> None:
    """LIF-26, BUG-33, ACC-18: files stay, processes do not; the dev server stays active."""
    inside.ssh("echo work >/home/dev/kept")
    both = [(inside.folder / f"{name}.pub").read_text().strip() for name in ("key", "other")]
    pod = msgspec.convert(json.loads(json.dumps(inside.pod())), Pod)

    async def let_in() -> None:
        config = shared_plane.account_kubeconfig("gpu-controlplane", "odcd")
        cluster = await Cluster.connect(config)
        try:
            await notices.set_keys(cluster, [pod], inside.job_id, both)
        finally:
            await cluster.close()
            # aiohttp does not wait for the end of its TLS connections.
            await asyncio.sleep(0.25)

    asyncio.run(let_in())
    assert inside.ssh("id -un", key="other") == "dev"
    before = inside.restarts()
    inside.kill("/bin/sh", "/odc/job/start")
    wait(lambda: inside.restarts() > before, inside.log)
    inside.wait_for_output("cat /home/dev/kept", "work")
    assert inside.ssh("id -un", key="other") == "dev"
    reservation = inside.site.until_matches(
        inside.job_id,
        lambda reservation: any("was restarted" in one["text"] for one in reservation["history"]),
    )
    assert (reservation["status"], reservation["oom_count"]) == ("active", 0)


def test_jupyter_starts_on_request_and_requires_its_token(
    inside: Inside, shared_plane: ControlPlane
) -> None:
    """CLI-07, ACC-13, ACC-14, ACC-15, ACC-16: the program `jupyter` is a stand-in."""
    site, job = inside.site, str(inside.job_id)
    missing = site.stack("edit", job, "--enable-jupyter", check=False)
    assert "there is no jupyter on its PATH" in missing
    assert "no jupyter" in site.show(inside.job_id)["jupyter_error"]
    program = (Path(__file__).parent / "programs" / "jupyter").read_bytes()
    inside.ssh("mkdir -p .local/bin")
    put = inside.command("cat >.local/bin/jupyter && chmod 755 .local/bin/jupyter")
    subprocess.run(put, input=program, check=True, timeout=120)
    for _ in range(2):
        assert "Jupyter Lab is running" in site.stack("edit", job, "--enable-jupyter")
    token = site.show(inside.job_id)["jupyter_url"].partition("?token=")[2]
    assert len(token) == 64
    assert inside.ssh("cat /etc/odc/jupyter_token; stat -c ' %a %U' /etc/odc/jupyter_token") == (
        f"{token} 400 dev"
    )
    assert token not in inside.ssh("env; ps -eo args") + json.dumps(inside.pod())
    assert token not in json.dumps(shared_plane.api.items("/api/v1/namespaces/gpu-dev/configmaps"))
    uid = inside.ssh("id -u")
    with _opened(inside) as link:
        assert _get(link) == (200, f"{uid} /workspace /workspace /workspace/.cache/huggingface")
        assert _get(link.replace(token, "0" * 64))[0] == 403
        assert _get(link.partition("?")[0])[0] == 403
        before = inside.restarts()
        inside.kill("/bin/sh", "/odc/job/start")
        wait(lambda: inside.restarts() > before, inside.log)
        wait(lambda: _get(link)[0] == 200, inside.log)
        site.stack("edit", job, "--disable-jupyter")
        assert _get(link)[0] == 0
    assert site.show(inside.job_id)["jupyter_url"] is None
    # The state that the user sees has already changed; the program inside ends later.
    wait(lambda: ":8888 " not in inside.ssh("ss -ltn"), inside.log)
    wait(lambda: "jupyter_token" not in inside.ssh("ls /etc/odc"), inside.log)
    # Both the restarted container and the daemon, which noticed the restart, start it.
    program = "/bin/sh /odc/job/jupyter"
    for _ in range(5):
        both = f"printf 'on\\n' >/odc/run/jupyter; {program} begin & {program} on; wait"
        assert inside.as_root(f"{both}; {program} off; ss -ltn | grep ':8888 '") == ""


@contextmanager
def _opened(inside: Inside) -> Iterator[str]:
    """The link of `odcctl connect --jupyter`, while that runs."""
    with subprocess.Popen(
        [sys.executable, "-m", "odcctl", "connect", str(inside.job_id), "--jupyter"],
        env=inside.site.stack.odc.environment, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def _get(link: str) -> tuple[int, str]:
    """0: no answer."""
    try:
        with urllib.request.urlopen(link, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, ""
    except (URLError, OSError, HTTPException):
        return 0, ""


def test_usage_of_a_dev_server_is_measured_from_outside(inside: Inside) -> None:
    """By the program in the dev server; nvidia-smi is a substitute."""
    smi = "#!/bin/sh\n[ \"$1\" = --query-gpu=utilization.gpu ] && printf '0\\n37\\n'\n"
    put = inside.command("mkdir -p .local/bin; cat >.local/bin/nvidia-smi; chmod 755 .local/bin/*")
    subprocess.run(put, input=smi.encode(), check=True, timeout=120)
    usage = inside.ssh("PATH=$HOME/.local/bin:$PATH sh /odc/job/look")
    found = re.fullmatch(r"connections=([0-9]+) gpu=37 cpu_us=([0-9]+)", usage)
    assert found is not None, usage
    assert int(found[1]) >= 1
    assert "gpu=none" in inside.ssh("PATH=/usr/bin:/bin sh /odc/job/look")
    # A GPU without nvidia-smi and without Prometheus: its usage is unknown, so it counts as used.
    stack = inside.site.stack
    stack.sql("update odc.qos set idle_warn_s = 600")

    def look(column: str) -> Any:
        return stack.value(f"select {column} from odc.box_look where job_id = {inside.job_id}")

    first = wait(lambda: look("at"), stack.log)
    wait(lambda: look("at") > first, stack.log)
    assert look("idle_since") is None
    stack.sql("update odc.qos set idle_warn_s = 0")
    assert inside.site.show(inside.job_id)["idle_s"] is None


def test_members_can_ssh_to_each_other_without_a_password(inside: Inside) -> None:
    """MNE-08, MNE-09: all members here have one network, so it is rank 0 that answers for both."""
    site = inside.site
    site.stack("cancel", str(inside.job_id))
    wait(lambda: not site.pods(inside.job_id), site.stack.log)
    job_id = site.reserve(gpus=16, distributed=True, hours=1)
    site.until(job_id, "active")
    gang = Inside(site, job_id, inside.folder)
    peers = [pod["metadata"]["name"] for pod in site.pods(job_id)]
    environment = dict(line.partition("=")[::2] for line in gang.ssh("env").splitlines())
    assert environment["MULTINODE_PEER_PODS"].split(",") == peers
    assert environment["MULTINODE_SIZE"] == "2"
    assert gang.ssh("cat", environment["MULTINODE_HOSTFILE"]).splitlines() == [
        f"{peer} slots=8" for peer in peers
    ]
    fqdn = environment["MULTINODE_HOSTS"].split(",")[1]
    for name in (fqdn, f"{peers[1]}.gpu-dev-headless"):
        assert gang.ssh(f"ssh -o BatchMode=yes {name} id -un") == "dev"
