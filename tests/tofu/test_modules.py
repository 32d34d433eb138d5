"""`tofu validate` and `tofu test` of each module, with mock providers: no AWS."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.harness.tofu.workspace import TOFU, Workspace
from tests.tofu.test_files import ENVIRONMENTS, MODULES


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_module(mocked: Workspace, module: Path) -> None:
    """INF-06, BUG-15 (no reserved capacity), INF-07 (blocks), INF-08 (subnets), INF-10
    (placement groups), INF-09, MNE-14, MNE-15 (network cards), GPU-12, INF-04, INF-11 (EBS, EFS,
    CoreDNS), INF-18 (roles), INF-19 (spot to zero), SEC-13 (encrypted volumes, files, database):
    the files tests/*.tftest.hcl of each module."""
    folder = f"modules/{module.name}"
    mocked.run(folder, "init", "-no-color", "-backend=false")
    mocked.run(folder, "validate", "-no-color")
    done = mocked.run(folder, "test", "-no-color")
    assert done.code == 0, done.out[-6000:]
    passed = re.search(r"Success! (\d+) passed, 0 failed", done.out)
    written = sum(
        len(re.findall(r'^run "', path.read_text("utf-8"), re.M))
        for path in module.glob("tests/*.tftest.hcl")
    )
    assert passed, done.out[-2000:]
    assert int(passed[1]) == written


def test_the_examples_fit_together(mocked: Workspace) -> None:
    """All examples of the modules make one valid configuration."""
    folder = mocked.root / "tofu/environments/examples"
    folder.mkdir()
    examples = [(path / "example.tf.txt").read_text("utf-8") for path in MODULES]
    system = (
        examples[[path.name for path in MODULES].index("node-group")]
        .replace('module "h100"', 'module "system"')
        .replace('"h100"', '"cpu-x86"')
    )
    text = "\n".join([*examples, system, 'variable "addons" {\n  type = map(string)\n}\n'])
    (folder / "main.tf").write_text(text)
    mocked.run("environments/examples", "init", "-no-color", "-backend=false")
    done = mocked.run("environments/examples", "validate", "-no-color", check=False)
    assert done.code == 0, done.out


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_an_environment_is_valid(mocked: Workspace, environment: str) -> None:
    mocked.run(f"environments/{environment}", "init", "-no-color", "-backend=false")
    mocked.run(f"environments/{environment}", "validate", "-no-color")


def test_terraform_is_refused_with_a_sentence(mocked: Workspace) -> None:
    """INF-01: Terraform reads versions.tf, which OpenTofu leaves out because of versions.tofu."""
    folder = mocked.root / "tofu/environments/terraform"
    folder.mkdir()
    (folder / "versions.tf").write_text((TOFU / "environments/test/versions.tf").read_text("utf-8"))
    mocked.run("environments/terraform", "init", "-no-color", "-backend=false")
    text = mocked.refusal("environments/terraform", {})
    assert "for OpenTofu 1.10 or newer, not for Terraform: run `tofu`" in text
