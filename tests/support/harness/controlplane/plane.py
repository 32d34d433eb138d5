"""A Kubernetes control plane on the loopback: etcd, API server, controllers, scheduler.

No kubelet: nodes come from kwok.py (they only say so) or processes.py (they really run things).
"""

from __future__ import annotations

import os
import secrets
import ssl
import subprocess
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from tests.support.harness.controlplane.api import Api
from tests.support.harness.controlplane.build import binaries, kubectl
from tests.support.harness.controlplane.children import Child, free_port
from tests.support.harness.controlplane.kubeconfig import write_kubeconfig
from tests.support.harness.controlplane.pki import Pki

NEEDED = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
# All that come by default except what nothing here can need: clouds, volumes, certificates, HPA.
_CONTROLLERS = (
    "*,-horizontal-pod-autoscaler-controller,-certificatesigningrequest-signing-controller,"
    "-certificatesigningrequest-approving-controller,-certificatesigningrequest-cleaner-controller,"
    "-persistentvolume-attach-detach-controller,-persistentvolume-expander-controller,"
    "-cloud-node-lifecycle-controller,-node-route-controller,-service-lb-controller,"
    "-ephemeral-volume-controller,-ttl-controller"
)


class Cluster:
    """Any cluster: an administrator's kubeconfig and its derived clients."""

    def __init__(self, admin: Path) -> None:
        self.admin = admin
        self._kubectl: Path | None = None
        self._api: Api | None = None

    @property
    def api(self) -> Api:
        """Requests as the administrator."""
        if self._api is None:
            self._api = Api(self.admin)
        return self._api

    def kubectl(self, *args: str, stdin: str | None = None, kubeconfig: Path | None = None) -> str:
        """kubectl's standard output; fails with its standard error."""
        done = self.try_kubectl(*args, stdin=stdin, kubeconfig=kubeconfig)
        assert done.returncode == 0, f"kubectl {' '.join(args)}: {done.stderr}"
        return done.stdout

    def try_kubectl(
        self, *args: str, stdin: str | None = None, kubeconfig: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        if self._kubectl is None:
            self._kubectl = kubectl()
        return subprocess.run(
            [str(self._kubectl), "--kubeconfig", str(kubeconfig or self.admin), *args],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "HOME": str(self.admin.parent)},
        )

    def mend(self) -> None:
        """Resume the parts that a test killed or paused."""

    def close(self) -> None:
        if self._api is not None:
            self._api.close()


class ControlPlane(Cluster):
    """A control plane in a folder: `with ControlPlane(folder) as plane: plane.api.get("/api")`.

    node_grace_s: the controllers set a node to Unknown after this time without a heartbeat.
    """

    def __init__(self, folder: Path, *, node_grace_s: int = 50) -> None:
        self.folder = folder
        super().__init__(folder / "admin.kubeconfig")
        self._programs = binaries(NEEDED)
        self.pki = Pki(folder / "pki")
        self.ca = self.pki.ca.read_bytes()
        self._port = free_port()
        self.url = f"https://127.0.0.1:{self._port}"
        self._etcd_url = f"http://127.0.0.1:{free_port()}"
        self.token = secrets.token_hex(16)
        tokens = folder / "tokens.csv"
        tokens.write_text(f'{self.token},admin,admin,"system:masters"\n')
        tokens.chmod(0o600)
        write_kubeconfig(self.admin, self.url, self.ca, token=self.token)
        self.etcd = self._child("etcd", *self._etcd_options())
        self.apiserver = self._child("kube-apiserver", *self._apiserver_options(tokens))
        self.controllers = self._child(
            "kube-controller-manager", *self._controllers_options(node_grace_s)
        )
        self.scheduler = self._child("kube-scheduler", *self._scheduler_options())
        # In the order in which they start.
        self.children = [self.etcd, self.apiserver, self.controllers, self.scheduler]

    def __enter__(self) -> ControlPlane:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when the API server is ready and the service account `default` exists."""
        try:
            self.etcd.start()
            self.start_apiserver()
            self.controllers.start()
            self.scheduler.start()
            account = "/api/v1/namespaces/default/serviceaccounts/default"
            self.controllers.wait_until(
                lambda: self._answers(account), "the controllers to make the service account"
            )
            port = self._option(self.scheduler, "--secure-port")
            self.scheduler.wait_until(
                lambda: _ready(f"https://127.0.0.1:{port}/readyz"), "kube-scheduler to be ready"
            )
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        for child in reversed(self.children):
            child.kill()
        self.close()

    def start_apiserver(self) -> None:
        """On the same port as before; returns when it is ready."""
        self.apiserver.start()
        self.apiserver.wait_until(lambda: self._answers("/readyz"), "kube-apiserver to be ready")

    def kill_apiserver(self) -> None:
        """As kill -9: requests end in the middle, watches break, the port refuses connections."""
        self.apiserver.kill()

    def restart_apiserver(self) -> None:
        self.kill_apiserver()
        self.start_apiserver()

    def mend(self) -> None:
        for child in self.children:
            if child is self.apiserver and not child.running:
                self.start_apiserver()
            elif not child.running:
                child.start()
            else:
                child.resume()

    def kubeconfig(self, user: str, *groups: str, namespace: str = "default") -> Path:
        """A kubeconfig for any user in any groups, by a client certificate."""
        return write_kubeconfig(
            self.folder / f"user-{_slug(user, *groups)}.kubeconfig",
            self.url,
            self.ca,
            certificate=self.pki.user(user, groups),
            namespace=namespace,
        )

    def account_kubeconfig(self, namespace: str, name: str, hours: int = 12) -> Path:
        """A kubeconfig with a token of a service account."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        token_request = {"spec": {"expirationSeconds": hours * 3600}}
        token = self.api.request("POST", path, token_request)["status"]["token"]
        return write_kubeconfig(
            self.folder / f"account-{_slug(namespace, name)}.kubeconfig",
            self.url,
            self.ca,
            token=token,
            namespace=namespace,
        )

    def _child(self, program: str, *options: str) -> Child:
        path = self._programs[program]
        return Child([str(path), *options], self.folder / f"{program}.log")

    @staticmethod
    def _option(child: Child, name: str) -> str:
        return next(one.split("=", 1)[1] for one in child.argv if one.startswith(f"{name}="))

    def _answers(self, path: str) -> bool:
        return _ready(self.url + path, self.token, self.pki.ca)

    def _etcd_options(self) -> list[str]:
        peers = f"http://127.0.0.1:{free_port()}"
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={self._etcd_url}",
            f"--advertise-client-urls={self._etcd_url}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _apiserver_options(self, tokens: Path) -> list[str]:
        return [
            f"--etcd-servers={self._etcd_url}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._port}",
            "--endpoint-reconciler-type=none",
            f"--tls-cert-file={self.pki.server_cert}",
            f"--tls-private-key-file={self.pki.server_key}",
            f"--client-ca-file={self.pki.ca}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=Node,RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.pki.accounts_key}",
            f"--service-account-signing-key-file={self.pki.accounts_key}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--kubelet-preferred-address-types=InternalIP",
            "--allow-privileged=true",
            "--profiling=false",
        ]

    def _controllers_options(self, node_grace_s: int) -> list[str]:
        return [
            f"--kubeconfig={self.admin}",
            f"--controllers={_CONTROLLERS}",
            # As in real clusters: objects of controllers are distinguished from those of others.
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self.pki.accounts_key}",
            f"--root-ca-file={self.pki.ca}",
            f"--node-monitor-grace-period={node_grace_s}s",
            f"--secure-port={free_port()}",
            *self._common_options("controllers"),
        ]

    def _scheduler_options(self) -> list[str]:
        return [
            f"--kubeconfig={self.admin}",
            f"--secure-port={free_port()}",
            "--authorization-always-allow-paths=/readyz,/healthz,/livez,/metrics",
            *self._common_options("scheduler"),
        ]

    def _common_options(self, name: str) -> list[str]:
        # The default of 50 requests a second, less for controllers, would be what a test measures.
        return [
            "--bind-address=127.0.0.1",
            f"--cert-dir={self.folder / name}",
            f"--authentication-kubeconfig={self.admin}",
            f"--authorization-kubeconfig={self.admin}",
            "--kube-api-qps=2000",
            "--kube-api-burst=4000",
            "--leader-elect=false",
            "--profiling=false",
        ]


def _ready(url: str, token: str = "", ca: Path | None = None) -> bool:
    context = ssl.create_default_context(cafile=str(ca) if ca else None)
    if ca is None:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    request = Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urlopen(request, timeout=2, context=context) as answer:
            return answer.status == 200
    except (URLError, OSError):
        return False


def _slug(*parts: str) -> str:
    return "".join(one if one.isalnum() else "-" for one in "-".join(filter(None, parts)))
