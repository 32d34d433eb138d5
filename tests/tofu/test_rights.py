"""The role of odcd has the rights that its code uses, and no others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import botocore.session
import pytest
from botocore import xform_name

from odcd.aws.records import SNAPSHOT_OF
from odcd.disks.cloud import ADOPTED, MANAGED_BY, OPERATION, SERVER

ROOT = Path(__file__).parents[2]
IDENTITY = (ROOT / "tofu/modules/identity/main.tf").read_text("utf-8")
SERVICES = {
    "volumes.py": "ec2", "snapshots.py": "ec2", "instances.py": "ec2", "efs.py": "efs",
    "bucket.py": "s3", "groups.py": "autoscaling",
}  # fmt: skip
PREFIX = {
    "ec2": "ec2", "efs": "elasticfilesystem", "s3": "s3", "autoscaling": "autoscaling",
}  # fmt: skip
# Actions of IAM that are not called like the operation.
OTHER = {"s3:ListObjectsV2": "s3:ListBucket"}
WITH_TAGS = {
    "ec2:CreateVolume": {"ec2:CreateTags"}, "ec2:CreateSnapshot": {"ec2:CreateTags"},
    "elasticfilesystem:CreateAccessPoint": {"elasticfilesystem:TagResource"},
}  # fmt: skip
"""A request that creates a resource with tags needs the right to tag it."""


def operations(service: str) -> dict[str, str]:
    """Method of a client to operation."""
    model = botocore.session.get_session().get_service_model(service)
    return {xform_name(name): name for name in model.operation_names}


def called(path: Path, service: str) -> Iterator[str]:
    """Operations that the module calls: client.method(...), get_paginator("method") and
    self._call("method", ...)."""
    known = operations(service)
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        named = node.args[0] if node.args else None
        if node.func.attr in ("get_paginator", "_call") and isinstance(named, ast.Constant):
            yield known[str(named.value)]
        elif node.func.attr in known and _is_client(node.func.value):
            yield known[node.func.attr]


def _is_client(value: ast.expr) -> bool:
    name = value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")
    return name in ("_ec2", "_ec2_once", "_efs", "_efs_once", "ec2", "efs", "_autoscaling")


def actions_of_the_code() -> set[str]:
    found = {
        f"{PREFIX[service]}:{operation}"
        for name, service in SERVICES.items()
        for operation in called(ROOT / "odcd/aws" / name, service)
    }
    found = {OTHER.get(action, action) for action in found}
    return found.union(*(WITH_TAGS.get(action, set[str]()) for action in found))


def policy(name: str) -> set[str]:
    """The actions in a policy of the module identity, without those of keys."""
    body = IDENTITY.split(f'resource "aws_iam_role_policy" "{name}"')[1].split("\n}\n")[0]
    return {action for action in re.findall(r'"([a-z0-9]+:[A-Z][A-Za-z*]+)"', body)
            if not action.startswith("kms:") and action != "ec2:CreateAction"}  # fmt: skip


def test_every_module_of_odcd_that_calls_aws_is_known() -> None:
    for path in (ROOT / "odcd/aws").glob("*.py"):
        text = path.read_text("utf-8")
        if path.name not in SERVICES and path.name != "link.py":
            assert "create_client" not in text, path
            assert not re.search(r"self\._(ec2|efs|autoscaling)", text), path


def test_the_role_of_odcd_has_the_actions_that_its_code_calls_and_no_others() -> None:
    """INF-18, AUT: derived from the calls in odcd/aws."""
    code = actions_of_the_code()
    assert {"ec2:CreateVolume", "elasticfilesystem:CreateAccessPoint", "s3:PutObject"} <= code
    # The fence's action depends on ODC_FENCE; both are in a table of the module.
    fence = policy("fence") | set(re.findall(r'"(ec2:(?:Stop|Terminate)Instances)"', IDENTITY))
    assert "autoscaling:SetDesiredCapacity" in code
    others = policy("files") | policy("history") | policy("elastic")
    assert policy("disks") | others | fence == code


def test_odcd_resizes_only_elastic_groups_of_its_cluster() -> None:
    elastic = IDENTITY.split('resource "aws_iam_role_policy" "elastic"')[1].split("\n}\n")[0]
    [one] = [part for part in elastic.split("Sid ") if "autoscaling:SetDesiredCapacity" in part]
    assert '"aws:ResourceTag/odc.dev/cluster" = var.name' in one
    assert '"aws:ResourceTag/odc.dev/elastic" = "true"' in one


def test_odcd_adopts_only_snapshots_of_gpu_dev_and_only_if_that_is_turned_on() -> None:
    """`odcctl disk import`: the tags that its code adds are all that the policy allows."""
    adopt = IDENTITY.split('resource "aws_iam_role_policy" "import"')[1].split("\n}\n")[0]
    assert "count = var.gpu_dev.import ? 1 : 0" in adopt
    assert policy("import") - {"aws:TagKeys"} == {"ec2:CreateTags"}
    assert "volume/*" not in adopt
    assert 'StringLike   = { "aws:ResourceTag/gpu-dev-user" = "*" }' in adopt
    assert 'StringEquals = { "aws:RequestTag/ManagedBy" = "odc" }' in adopt
    [keys] = re.findall(r'"aws:TagKeys" = \[(.*)\]', adopt)
    own = {MANAGED_BY, SERVER, OPERATION, ADOPTED, SNAPSHOT_OF, "odc-disk"}
    assert set(re.findall(r'"([^"]+)"', keys)) == own | {"delete-date", "marked-deleted-at"}


def test_the_page_about_disks_names_the_same_actions() -> None:
    page = (ROOT / "docs/operating/disks.md").read_text("utf-8")
    documented = set(re.findall(r'"((?:ec2|elasticfilesystem):[A-Z][A-Za-z]+)"', page))
    documented.discard("ec2:CreateAction")
    assert documented == policy("disks") | policy("files")


def test_no_policy_allows_everything() -> None:
    """The statement of a KMS key that lets the account's own policies decide is the exception."""
    for path in (ROOT / "tofu").rglob("*.tf"):
        text = path.read_text("utf-8")
        for action in re.findall(r'Action\s*=\s*"([^"]*\*[^"]*)"', text):
            assert (path.parent.name, action) == ("storage", "kms:*"), path
        assert not re.search(r'"[a-z0-9]+:[A-Za-z]*\*"', text.replace('"kms:*"', "")), path


def test_logins_need_no_role() -> None:
    """AUT-03: the server asks STS with the user's own signed request, so odcd has no right on STS
    or IAM."""
    assert not re.search(r'"(sts|iam):', IDENTITY.replace('"sts:AssumeRoleWithWebIdentity"', ""))
    for path in (ROOT / "odcd/login").glob("*.py"):
        assert "botocore" not in path.read_text("utf-8"), path


@pytest.mark.parametrize("action", ["ec2:DeleteVolume", "ec2:DeleteSnapshot", "ec2:DetachVolume"])
def test_odcd_deletes_only_what_it_made(action: str) -> None:
    disks = IDENTITY.split('resource "aws_iam_role_policy" "disks"')[1].split("\n}\n")[0]
    statements = [one for one in disks.split("Sid ") if action in one]
    for one in statements:
        assert '"aws:ResourceTag/ManagedBy" = "odc"' in one or "instance/*" in one
