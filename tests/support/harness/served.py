"""`odcd serve --executor kubernetes`: daemons on one PostgreSQL and one API server."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from odcd.home.postgres import EmbeddedPostgres
from tests.support.harness.controlplane.children import Child, free_port
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.controlplane.proxy import FaultProxy
from tests.support.harness.database import MAJOR, Sql, admit_root, make_home, remove_home

K8S = Path(__file__).parents[3] / "k8s"
IMAGE = "registry.test/job:1.0"
ACCOUNT = "gpu-controlplane", "odcd"
WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet", "Job")
Address = tuple[str, int]


class Refused(Exception):
    """odcd answered with a refusal."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(f"{status}: {body}")
        self.status = status


class Served(Child):
    """One daemon. Clients speak to it over TCP, with a token."""

    def __init__(
        self, argv: list[str], log: Path, env: Mapping[str, str], address: Address
    ) -> None:
        super().__init__(argv, log, env)
        self.address = address

    def start(self) -> None:
        """Returns when it answers, whether or not it leads."""
        written = self.log.stat().st_size if self.log.exists() else 0
        super().start()
        self.wait_until(lambda: "odcd is ready" in self._since(written), "odcd to be ready")

    def _since(self, written: int) -> str:
        return self.log.read_bytes()[written:].decode(errors="replace")

    def call(
        self, method: str, path: str, token: str, body: object = None, *,
        key: str | None = None, timeout_s: float = 30.0,
    ) -> Any:  # fmt: skip
        """Raises Refused; OSError or HTTPException without an answer. key: the request takes effect
        once, however often it is sent."""
        connection = http.client.HTTPConnection(*self.address, timeout=timeout_s)
        try:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            headers |= {"Idempotency-Key": key} if key else {}
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            answer_body = json.loads(answer.read() or "null")
            if answer.status >= 300:
                raise Refused(answer.status, answer_body)
            return answer_body
        finally:
            connection.close()


class Site:
    """A PostgreSQL and a kubeconfig of odcd's account; daemons are created on them."""

    def __init__(self, folder: Path, postgres: EmbeddedPostgres, plane: ControlPlane) -> None:
        self.folder = folder
        self.postgres = postgres
        self.plane = plane
        self.dsn = postgres.dsn

    def kubeconfig(self, proxy: FaultProxy | None = None) -> Path:
        """Of odcd's account, through a proxy if one is given; readable by whom odcd becomes."""
        made = self.plane.account_kubeconfig(*ACCOUNT)
        if proxy is not None:
            made = proxy.kubeconfig(made)
        own = self.folder / made.name
        shutil.copy(made, own)
        if os.geteuid() == 0:
            os.chown(own, self.postgres.account.uid, self.postgres.account.gid)
        return own

    def daemon(self, name: str, kubeconfig: Path | None = None, **settings: object) -> Served:
        """Not started yet. settings: ODC_LEASE_S and so on, without the prefix."""
        address = "127.0.0.1", free_port()
        argv = [
            sys.executable, "-m", "odcd", "serve",
            "--home", str(self.folder / name),
            "--listen", f"{address[0]}:{address[1]}",
            "--executor", "kubernetes",
            "--kubeconfig", str(kubeconfig or self.kubeconfig()),
        ]  # fmt: skip
        env = {
            variable: value
            for variable, value in os.environ.items()
            if not variable.startswith(("ODC_", "SBATCH_", "SLURM_", "PYTEST_"))
        }
        env |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "ODC_DSN": self.dsn}
        env |= {"ODC_IMAGE": IMAGE}
        env |= {f"ODC_{key.upper()}": str(value) for key, value in settings.items()}
        return Served(argv, self.folder / f"{name}.log", env, address)

    def token(self, user: str, uid: int) -> str:
        """The schema must exist: a daemon was started before."""
        done = subprocess.run(
            [sys.executable, "-m", "odcd", "token", user, "--uid", str(uid), "--hours", "24",
             "--dsn", self.dsn],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            cwd=self.folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def sql(self) -> Sql:
        return Sql(self.dsn)


def install(plane: ControlPlane) -> None:
    """Namespaces, rights, priorities and policies as shipped, without odcd itself."""
    import yaml

    rendered = yaml.safe_load_all(plane.kubectl("kustomize", str(K8S / "base")))
    kept = [one for one in rendered if one and one["kind"] not in WORKLOADS]
    text = yaml.safe_dump_all(kept)
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)


@contextmanager
def a_site(plane: ControlPlane, *, durable: bool = False) -> Iterator[Site]:
    """With installed manifests and a running PostgreSQL; at the end everything but the manifests is
    removed."""
    install(plane)
    folder = make_home()
    home = folder / "database"
    postgres = EmbeddedPostgres(home, MAJOR, durable=durable)
    try:
        postgres.start()
        admit_root(postgres)
        yield Site(folder, postgres, plane)
    finally:
        remove_home(home)
        shutil.rmtree(folder, ignore_errors=True)
