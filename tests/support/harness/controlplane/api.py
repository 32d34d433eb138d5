"""A small client of the Kubernetes API for tests: manifests in, objects out, no cache.

The daemon has its own client; a test with another one sees the real state of the cluster.
"""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import httpx
import yaml

from tests.support.harness.controlplane.children import wait_until

Manifest = dict[str, Any]
_PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}


class Refused(Exception):
    """The API server refused; `code`, `reason` and `message` are those of its Status object."""

    def __init__(self, answer: httpx.Response) -> None:
        try:
            status = answer.json()
        except ValueError:
            status = {"message": answer.text}
        self.code = answer.status_code
        self.reason: str = status.get("reason", "")
        self.message: str = status.get("message", "")
        super().__init__(f"{answer.request.method} {answer.url}: {self.code} {self.message}")


class Api:
    """Requests as one user, by a kubeconfig; may be used by several threads."""

    def __init__(self, kubeconfig: Path, timeout_s: float = 30.0) -> None:
        self.kubeconfig = kubeconfig
        self.url, headers, tls = credentials(kubeconfig)
        self._http = httpx.Client(base_url=self.url, headers=headers, verify=tls, timeout=timeout_s)
        self._resources: dict[str, dict[str, Manifest]] = {}
        self._groups: dict[str, str] = {}

    def close(self) -> None:
        self._http.close()

    def request(
        self, method: str, path: str, body: object = None, *, user: str | None = None,
        **query: object,
    ) -> Any:  # fmt: skip
        """One request; returns the decoded answer, or its text if it is not JSON. It is made as
        user, whom an administrator may impersonate.

        Raises Refused if the server refuses, ConnectionError when it could not be reached.
        """
        patch = str(query.pop("patch", "merge"))
        headers = {"Content-Type": _PATCHES[patch] if method == "PATCH" else "application/json"}
        if user:
            headers["Impersonate-User"] = user
        try:
            answer = self._http.request(
                method,
                path,
                params={key: _plain(value) for key, value in query.items() if value is not None},
                content=None if body is None else json.dumps(body),
                headers=headers,
            )
        except httpx.TransportError as error:
            raise ConnectionError(f"{method} {path}: {error}") from None
        if answer.is_error:
            raise Refused(answer)
        return answer.json() if "json" in answer.headers.get("content-type", "") else answer.text

    def get(self, path: str, **query: object) -> Any:
        return self.request("GET", path, **query)

    def items(self, path: str, **query: object) -> list[Manifest]:
        """The items of a list: `items("/api/v1/pods", labelSelector="odc.dev/job-id=7")`."""
        return self.get(path, **query)["items"]

    def create(self, manifest: Manifest, *, user: str | None = None, **query: object) -> Manifest:
        path = self.path_of(manifest, named=False)
        return self.request("POST", path, manifest, user=user, **query)

    def create_all(self, manifests: Iterable[Manifest], at_once: int = 8) -> list[Manifest]:
        """Create many, a few at a time: a thousand nodes take seconds."""
        todo = list(manifests)
        for kind in {(one["apiVersion"], one["kind"]): one for one in todo}.values():
            self.path_of(kind)
        with ThreadPoolExecutor(at_once) as pool:
            return list(pool.map(self.create, todo))

    def apply(self, *manifests: Manifest, **query: object) -> list[Manifest]:
        """Server-side apply, in the order given."""
        how = {"patch": "apply", "fieldManager": "odc-tests", "force": True} | query
        return [self.request("PATCH", self.path_of(one), one, **how) for one in manifests]

    def apply_file(self, path: Path) -> list[Manifest]:
        return self.apply(*(one for one in yaml.safe_load_all(path.read_text()) if one))

    def patch(self, path: str, body: object, patch: str = "merge", **query: object) -> Manifest:
        return self.request("PATCH", path, body, patch=patch, **query)

    def delete(self, path: str, grace_s: int | None = None, **query: object) -> Manifest:
        return self.request("DELETE", path, gracePeriodSeconds=grace_s, **query)

    def pod(self, namespace: str, name: str) -> Manifest | None:
        """A pod, or None when there is none."""
        try:
            return self.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
        except Refused as refused:
            if refused.code == 404:
                return None
            raise

    def log(self, namespace: str, name: str, **query: object) -> str:
        """A pod's log through the API server: `log("gpu-batch", "odc-7-1-0", tailLines=5)`."""
        return self.get(f"/api/v1/namespaces/{namespace}/pods/{name}/log", **query)

    @contextmanager
    def stream(self, path: str, **query: object) -> Iterator[Iterator[str]]:
        """The lines of a watch or a followed log as they come."""
        params = {key: _plain(value) for key, value in query.items()}
        with self._http.stream("GET", path, params=params) as answer:
            if answer.is_error:
                answer.read()
                raise Refused(answer)
            yield answer.iter_lines()

    def until(
        self,
        path: str,
        true: Callable[[Manifest], object],
        within_s: float = 60.0,
    ) -> Manifest:
        """The object once `true` returns true for it; missing or unreachable counts as not yet."""
        found: list[Manifest] = [{}]

        def looked() -> object:
            try:
                found[0] = self.get(path)
            except ConnectionError:
                return False
            except Refused as refused:
                if refused.code != 404:
                    raise
                return False
            return true(found[0])

        try:
            wait_until(looked, f"{path} to become as expected", within_s)
        except AssertionError as error:
            status = json.dumps(found[0].get("status"), indent=1)
            raise AssertionError(f"{error}; its status: {status}") from None
        return found[0]

    def until_gone(self, path: str, within_s: float = 60.0) -> None:
        def gone() -> bool:
            try:
                self.get(path)
            except ConnectionError:
                return False
            except Refused as refused:
                if refused.code == 404:
                    return True
                raise
            return False

        wait_until(gone, f"{path} to be gone", within_s)

    def group_of(self, resource: str) -> str:
        """The API group of a resource: of "jobs.batch" as written, of "roles" as the server says;
        empty for the core group and for what is no resource."""
        name, dot, group = resource.partition(".")
        if dot:
            return group
        if not self._groups:
            versions = [one["preferredVersion"] for one in self.get("/apis")["groups"]]
            for version in ["v1", *(one["groupVersion"] for one in versions)]:
                root = f"/apis/{version}" if "/" in version else f"/api/{version}"
                for one in self.get(root)["resources"]:
                    group = version.rpartition("/")[0]
                    self._groups.setdefault(one["name"], group)
        return self._groups.get(name, "")

    def path_of(self, manifest: Manifest, named: bool = True) -> str:
        """Where an object lies, by the server's own discovery."""
        version, kind = manifest["apiVersion"], manifest["kind"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        known = self._resources.get(version, {})
        if kind not in known:
            listed = self.get(root)["resources"]
            known = {one["kind"]: one for one in listed if "/" not in one["name"]}
            self._resources[version] = known
        resource = known[kind]
        meta = manifest["metadata"]
        within = f"/namespaces/{meta.get('namespace', 'default')}" if resource["namespaced"] else ""
        return f"{root}{within}/{resource['name']}" + (f"/{meta['name']}" if named else "")


def credentials(kubeconfig: Path) -> tuple[str, dict[str, str], ssl.SSLContext]:
    """Of a kubeconfig: the server's address, the headers that identify the user, and TLS."""
    config = yaml.safe_load(kubeconfig.read_text())
    context = _named(config, "context", config["current-context"])
    cluster = _named(config, "cluster", context["cluster"])
    user = _named(config, "user", context["user"])
    headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
    return cluster["server"].rstrip("/"), headers, _tls(cluster, user)


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _named(config: Mapping[str, Any], kind: str, name: str) -> Any:
    return next(one[kind] for one in config[f"{kind}s"] if one["name"] == name)


def _tls(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca := cluster.get("certificate-authority"):
        context.load_verify_locations(cafile=ca)
    if data := cluster.get("certificate-authority-data"):
        context.load_verify_locations(cadata=base64.b64decode(data).decode())
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificate := user.get("client-certificate"):
        context.load_cert_chain(certificate, user["client-key"])
    elif data := user.get("client-certificate-data"):
        with NamedTemporaryFile() as pair:  # ssl reads a key from a file only
            pair.write(b"".join(map(base64.b64decode, (data, user["client-key-data"]))))
            pair.flush()
            context.load_cert_chain(pair.name)
    return context
