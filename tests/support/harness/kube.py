"""The API server of the tests as any user: by kubectl, or where hundreds of tests ask, directly."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.support.harness.controlplane.api import Api, Refused

ODCD = "system:serviceaccount:gpu-controlplane:odcd"

NO_SPDY = "No WebSocket UPGRADE hdr"
"""Of the tests' kubelet. kubectl exec tries SPDY if its WebSocket was not answered, on a busy
machine; the command has not run then."""
TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Kube:
    """user None: the kubeconfig's own user, an administrator."""

    kubectl: Path
    kubeconfig: Path
    api: Api
    user: str | None = None

    def as_user(self, user: str) -> Kube:
        return replace(self, user=user)

    def run(self, *args: str | Path, given: object = None) -> subprocess.CompletedProcess[str]:
        who = [f"--as={self.user}"] if self.user else []
        return subprocess.run(
            [self.kubectl, f"--kubeconfig={self.kubeconfig}", *who, *args],
            input=None if given is None else json.dumps(given),
            capture_output=True,
            text=True,
            check=False,
        )

    def do(self, *args: str | Path, given: object = None) -> str:
        for _ in range(TRIES):
            done = self.run(*args, given=given)
            if NO_SPDY not in done.stderr:
                break
        assert done.returncode == 0, f"kubectl {args[0]}: {done.stderr}"
        return done.stdout

    def get(self, *args: str, given: object = None) -> Any:
        return json.loads(self.do("get", *args, "--output=json", given=given))

    def can(self, permission: str) -> bool:
        """As `kubectl auth can-i` has it: `create pods --subresource=exec --namespace=gpu-dev`.
        pods/exec would be the name of a pod. Without a namespace it is "default"."""
        verb, resource, *options = permission.split()
        given = dict(option.removeprefix("--").partition("=")[::2] for option in options)
        assert given.keys() <= {"namespace", "subresource", "all-namespaces"}, permission
        resource, _, name = resource.partition("/")
        attributes = {
            "verb": verb, "resource": resource.partition(".")[0],
            "group": self.api.group_of(resource), "name": name,
            "subresource": given.get("subresource", ""),
            "namespace": "" if "all-namespaces" in given else given.get("namespace", "default"),
        }  # fmt: skip
        answer = self.api.request(
            "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {
                "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes},
            },
            user=self.user,
        )  # fmt: skip
        return answer["status"]["allowed"]

    def refusal(self, manifest: dict[str, Any]) -> str:
        """Why the manifest may not be created; empty if it may. Nothing is created."""
        try:
            self.api.create(manifest, user=self.user, dryRun="All", fieldValidation="Strict")
        except Refused as refused:
            return refused.message or str(refused)
        return ""


def as_list(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": manifests}
