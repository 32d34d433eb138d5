"""kubectl against the API server of the tests, as any user."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ODCD = "system:serviceaccount:gpu-controlplane:odcd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kube:
    """user None: the kubeconfig's own user, an administrator."""

    kubectl: Path
    kubeconfig: Path
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
        done = self.run(*args, given=given)
        assert done.returncode == 0, f"kubectl {args[0]}: {done.stderr}"
        return done.stdout

    def get(self, *args: str, given: object = None) -> Any:
        return json.loads(self.do("get", *args, "--output=json", given=given))

    def can(self, permission: str) -> bool:
        """Subresources: `create pods --subresource=exec`. pods/exec would be the name of a pod."""
        done = self.run("auth", "can-i", *permission.split())
        # Without a namespace of the resource kubectl warns; the answer is the first line.
        assert done.stdout.split()[:1] in (["yes"], ["no"]), done.stderr
        return done.stdout.startswith("yes")

    def refusal(self, manifest: dict[str, Any]) -> str:
        """Why the manifest may not be created; empty if it may. Nothing is created."""
        done = self.run("create", "--dry-run=server", "--filename=-", given=manifest)
        assert done.returncode == 0 or done.stderr, "kubectl says nothing"
        return "" if done.returncode == 0 else done.stderr.strip()


def as_list(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": manifests}
