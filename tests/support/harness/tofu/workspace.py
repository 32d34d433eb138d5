"""A copy of tofu/ in which commands run, against moto's server or with mock providers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[4]
TOFU = ROOT / "tofu"
LIMIT_S = 900
AMIS = {
    "x86_64": "ami-0123456789abcdef0",
    "x86_64_nvidia": "ami-0123456789abcdef1",
    "arm64": "ami-0123456789abcdef2",
}
OVERRIDE = """
terraform {
  backend "local" {}
}
provider "aws" {
  s3_use_path_style           = true
  skip_credentials_validation = true
  skip_requesting_account_id  = false
}
"""


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: str
    """stdout and stderr."""


@dataclass(frozen=True, slots=True)
class Change:
    address: str
    kind: str
    """aws_vpc, and so on."""
    actions: tuple[str, ...]
    before: dict[str, Any] = field(default_factory=dict[str, Any])
    after: dict[str, Any] = field(default_factory=dict[str, Any])


class Workspace:
    """program: tofu. settings: of the provider's mirror. folder: for the copy. endpoint: of AWS."""

    def __init__(
        self, program: Path, settings: Path, folder: Path, endpoint: str | None = None
    ) -> None:
        self._program = program
        self._env = _environment(settings, endpoint)
        self.root = folder / "tree"
        if not self.root.exists():
            local = shutil.ignore_patterns(".terraform", "*.tfstate*", "plan.bin")
            shutil.copytree(TOFU, self.root / "tofu", ignore=local)
            shutil.copytree(ROOT / "k8s/nodes", self.root / "k8s/nodes")

    def run(self, folder: str, *words: str, check: bool = True) -> Done:
        """folder: below tofu/."""
        done = subprocess.run(
            [self._program, f"-chdir={self.root / 'tofu' / folder}", *words],
            env=self._env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
        if check and done.returncode not in (0, 2):
            raise AssertionError(f"tofu {' '.join(words)} in {folder}:\n{done.stdout[-8000:]}")
        return Done(done.returncode, done.stdout)

    def init(self, folder: str, *, local_state: bool = False) -> None:
        if local_state:
            (self.root / "tofu" / folder / "override.tf").write_text(OVERRIDE)
        self.run(folder, "init", "-no-color", "-input=false")

    def plan(self, folder: str, values: dict[str, Any], *more: str) -> dict[str, Any]:
        """The plan as JSON. values: of variables."""
        self._write(folder, values)
        self.run(folder, "plan", "-no-color", "-input=false", "-out=plan.bin", *more)
        shown = self.run(folder, "show", "-json", "plan.bin")
        return json.loads(shown.out[shown.out.index("{") :])

    def refusal(self, folder: str, values: dict[str, Any]) -> str:
        """The text of a plan that fails, in one line."""
        self._write(folder, values)
        done = self.run(folder, "plan", "-no-color", "-input=false", check=False)
        assert done.code == 1, done.out[-4000:]
        return " ".join(done.out.replace("│", " ").split())

    def apply(self, folder: str, values: dict[str, Any]) -> str:
        self._write(folder, values)
        return self.run(
            folder, "apply", "-no-color", "-input=false", "-auto-approve", "-parallelism=20"
        ).out

    def interrupt_apply(self, folder: str, values: dict[str, Any], after: int) -> str:
        """Press Ctrl-C during an apply, after this number of resources was created."""
        self._write(folder, values)
        words = ("apply", "-no-color", "-input=false", "-auto-approve", "-parallelism=4")
        with subprocess.Popen(
            [self._program, f"-chdir={self.root / 'tofu' / folder}", *words],
            env=self._env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        ) as child:  # fmt: skip
            assert child.stdout is not None
            lines: list[str] = []
            created = 0
            for line in child.stdout:
                lines.append(line)
                created += "Creation complete" in line
                if created == after:
                    created += 1  # once
                    child.send_signal(signal.SIGINT)
        return "".join(lines)

    def destroy(self, folder: str, values: dict[str, Any]) -> str:
        self._write(folder, values)
        return self.run(folder, "destroy", "-no-color", "-input=false", "-auto-approve").out

    def output(self, folder: str) -> dict[str, Any]:
        shown = self.run(folder, "output", "-json").out
        return {name: one["value"] for name, one in json.loads(shown).items()}

    def state(self, folder: str) -> dict[str, dict[str, Any]]:
        """The values of each resource, by address."""
        shown = json.loads(self.run(folder, "show", "-json").out)
        found: dict[str, dict[str, Any]] = {}
        modules = [shown.get("values", {}).get("root_module", {})]
        while modules:
            module = modules.pop()
            modules += module.get("child_modules", [])
            for one in module.get("resources", []):
                if one["mode"] == "managed":
                    found[one["address"]] = one["values"]
        return found

    def _write(self, folder: str, values: dict[str, Any]) -> None:
        path = self.root / "tofu" / folder / "zz-test.auto.tfvars.json"
        path.write_text(json.dumps(values))


def changes(plan: dict[str, Any]) -> list[Change]:
    """What a plan would do, without resources that stay and data that is read."""
    return [
        Change(
            address=one["address"], kind=one["type"], actions=tuple(one["change"]["actions"]),
            before=one["change"]["before"] or {}, after=one["change"]["after"] or {},
        )
        for one in plan.get("resource_changes", [])
        if one["mode"] == "managed" and one["change"]["actions"] != ["no-op"]
    ]  # fmt: skip


def _environment(settings: Path, endpoint: str | None) -> dict[str, str]:
    """Nothing of this machine's own configuration of AWS or of tofu."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AWS_", "TF_", "TOFU_"))
    }
    return kept | {
        "TF_CLI_CONFIG_FILE": str(settings),
        "CHECKPOINT_DISABLE": "1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        # Never AWS itself: without an endpoint, a port that nothing listens on.
        "AWS_ENDPOINT_URL": endpoint or "http://127.0.0.1:9",
        "AWS_MAX_ATTEMPTS": "3",
    }
