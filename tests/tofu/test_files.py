"""tofu/ without running a plan: form, descriptions, generated pages, guards."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.harness.tofu.build import HOW, ready
from tests.support.harness.tofu.provider import WANTED

TOFU = Path(__file__).parents[2] / "tofu"
ENVIRONMENTS = ("test", "production")


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tofu_{name}", TOFU / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


README = tool("readme")
MODULES: list[Path] = README.modules()


def test_files_are_formatted() -> None:
    program = ready()
    if program is None:
        pytest.skip(f"OpenTofu is not built yet: {HOW}")
    done = subprocess.run(
        [program, "fmt", "-check", "-recursive", "-diff", TOFU],
        env={name: value for name, value in os.environ.items() if not name.startswith("TF_")},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_readmes_are_generated(module: Path) -> None:
    assert (module / "README.md").read_text("utf-8") == README.page(module), "make -C tofu readme"


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_each_module_has_types_descriptions_an_example_and_tests(module: Path) -> None:
    for name, _, body in README.blocks(module, "variable"):
        assert README.attribute(body, "type"), name
        assert README.described(body).endswith("."), name
    for name, _, body in README.blocks(module, "output"):
        assert README.described(body).endswith("."), name
    assert list(module.glob("tests/*.tftest.hcl"))
    assert (module / "example.tf.txt").is_file()


def test_messages_of_refusals_are_sentences() -> None:
    for path in TOFU.rglob("*.tf"):
        for message in re.findall(r'error_message = "(.+)"$', path.read_text("utf-8"), re.M):
            assert message.endswith((".", "?")), (path, message)
            assert len(message) > 25, (path, message)


def test_both_environments_offer_the_same() -> None:
    """INF-21, OPS-09: one composition, two var files, two states."""
    for name in ("main.tf", "variables.tf", "outputs.tf", "versions.tf", "versions.tofu"):
        one, other = (
            (TOFU / "environments" / env / name).read_text("utf-8") for env in ENVIRONMENTS
        )
        assert one == other, name
    stack = (TOFU / "modules/stack/variables.tf").read_text("utf-8")
    assert (TOFU / "environments/test/variables.tf").read_text("utf-8") == stack
    backends = {
        (TOFU / f"environments/{env}/backend.tf").read_text("utf-8") for env in ENVIRONMENTS
    }
    assert len(backends) == 2


def test_each_variable_of_an_environment_reaches_the_modules() -> None:
    """INF-03: region, types, counts and instance types are values of the var file."""
    main = (TOFU / "environments/test/main.tf").read_text("utf-8")
    for name, _, _ in README.blocks(TOFU / "modules/stack", "variable"):
        assert re.search(rf"^  {name} += var\.{name}$", main, re.M), name


def test_an_environment_offers_the_types_of_its_var_file() -> None:
    """INF-02, INF-21."""
    for env, region, types in (
        ("test", "us-west-1", {"t4"}),
        ("production", "us-east-2",
         {"a100", "h100", "h200", "b200", "t4", "l4", "cpu-x86", "cpu-arm"}),
    ):  # fmt: skip
        text = (TOFU / f"environments/{env}/{env}.auto.tfvars").read_text("utf-8")
        assert f'region = "{region}"' in text
        groups = text.split("node_groups = {")[1].split("\n}")[0]
        assert set(re.findall(r'type = "([^"]+)"', groups)) == types


def test_versions_are_pinned() -> None:
    """INF-01."""
    for path in (*TOFU.rglob("versions.tf"), *TOFU.rglob("versions.tofu")):
        text = path.read_text("utf-8")
        assert 'version = "~> 5.100"' in text, path
        if "environments" not in path.parts:
            assert 'required_version = ">= 1.8"' in text, path
    for env in ENVIRONMENTS:
        lock = (TOFU / f"environments/{env}/.terraform.lock.hcl").read_text("utf-8")
        assert f'version     = "{WANTED}"' in lock


def test_no_resource_is_counted_by_a_list() -> None:
    """INF-05, BUG-14: an index shift destroyed groups with users' pods, so only `count` of 0 or 1
    exists, and everything else has keys."""
    for path in (*TOFU.glob("modules/*/*.tf"), *TOFU.glob("environments/*/*.tf")):
        for value in re.findall(r"^  count += (.+)$", path.read_text("utf-8"), re.M):
            assert re.search(r"\? [01] : [01]$|^local\.(backups|rds)$", value), (path, value)


def test_node_groups_have_no_instance_refresh() -> None:
    """INF-05: a rolling refresh ended users' pods."""
    text = (TOFU / "modules/node-group/main.tf").read_text("utf-8")
    assert "instance_refresh" not in text
    assert "ignore_changes = [desired_capacity]" in text


def test_no_target_of_make_applies_or_destroys_by_itself() -> None:
    """OPS-04, OPS-12: `apply` takes only a plan that a person has made, and nothing destroys."""
    text = (TOFU / "Makefile").read_text("utf-8")
    assert "apply plan.bin" in text
    assert "-auto-approve" not in text
    assert "destroy" not in text


def test_the_page_has_the_commands_that_operators_need() -> None:
    """OPS-01 (cordon, drain, refresh, watch), OPS-02 (stuck pods), OPS-14 (the role of users)."""
    page = (TOFU.parent / "docs/operating/cloud.md").read_text("utf-8")
    for command in (
        "--ignore-daemonsets --delete-emptydir-data --force --disable-eviction",
        '{"MinHealthyPercentage": 0, "InstanceWarmup": 300', "kubectl get nodes -w",
        "k8s-app=kube-dns --force --grace-period=0", "aws-ebs-csi-driver --force --grace-period=0",
        "sts:GetCallerIdentity", "AWSReservedSSO_GpuUsers_*",
    ):  # fmt: skip
        assert command in page, command


def test_every_target_of_make_in_the_page_exists() -> None:
    page = (TOFU.parent / "docs/operating/cloud.md").read_text("utf-8")
    targets = set(re.findall(r"make -C tofu ([a-z]+)", page))
    made = set(re.findall(r"^([a-z]+):", (TOFU / "Makefile").read_text("utf-8"), re.M))
    assert targets
    assert targets <= made
