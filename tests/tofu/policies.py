"""Rules that every plan keeps. Why not a checker of others: docs/decisions/0081."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.support.harness.tofu.workspace import Change

OPEN = frozenset({"0.0.0.0/0", "::/0"})
UNTAGGED = frozenset({"aws_autoscaling_group"})
"""They have tags in another form."""
BUCKET_PARTS = (
    "aws_s3_bucket_public_access_block", "aws_s3_bucket_server_side_encryption_configuration",
)  # fmt: skip


def findings(changes: list[Change]) -> list[str]:
    """Each broken rule, with the resource that breaks it."""
    made = [one for one in changes if "create" in one.actions]
    return [f"{one.address}: {text}" for one in made for text in _of(one, made)]


def _of(one: Change, made: list[Change]) -> Iterator[str]:
    after, what = one.after, one.kind
    for name in ("assume_role_policy", "policy"):
        if after.get(name) and what != "aws_ecr_lifecycle_policy":
            yield from _of_policy(json.loads(after[name]), is_key=what == "aws_kms_key")
    is_open = after.get("cidr_ipv4") in OPEN or after.get("cidr_ipv6") in OPEN
    is_balancer = ".module.ingress" in one.address and after.get("from_port") == 443
    if what == "aws_vpc_security_group_ingress_rule" and is_open and not is_balancer:
        yield "is open to everyone"
    if what == "aws_launch_template":
        yield from _of_template(after)
    if what == "aws_s3_bucket":
        parent = one.address.rsplit(".", 2)[0]
        for part in BUCKET_PARTS:
            if not any(p.address.startswith(f"{parent}.{part}.") for p in made):
                yield f"has no {part}"
    for name in ("encrypted", "storage_encrypted", "enable_key_rotation"):
        if name in after and after[name] is not True:
            yield f"{name} is {after[name]}"
    if after.get("publicly_accessible") is True or after.get("map_public_ip_on_launch") is True:
        yield "is public"
    if "tags_all" in after and what not in UNTAGGED:
        tags = after["tags_all"] or {}
        if not {"ManagedBy", "Environment"} <= tags.keys():
            yield "lacks the tags ManagedBy and Environment"
        if tags.get("ManagedBy") == "odc":
            yield "has the tag with which odcd may delete it"


def _of_policy(policy: dict[str, Any], *, is_key: bool) -> Iterator[str]:
    for statement in policy["Statement"]:
        actions = statement["Action"]
        for action in [actions] if isinstance(actions, str) else actions:
            if "*" in action and not (is_key and action == "kms:*"):
                yield f"allows {action}"
        if statement.get("Principal") == "*" or statement.get("Principal") == {"AWS": "*"}:
            yield "allows everyone"


def _of_template(after: dict[str, Any]) -> Iterator[str]:
    metadata = after["metadata_options"][0]
    if metadata["http_tokens"] != "required" or metadata["http_put_response_hop_limit"] != 1:
        yield "does not require IMDSv2 with one hop"
    for mapping in after["block_device_mappings"]:
        if mapping["ebs"][0]["encrypted"] not in (True, "true"):
            yield "has a volume that is not encrypted"
    for interface in after["network_interfaces"]:
        if interface["associate_public_ip_address"] in (True, "true"):
            yield "has a public address"
    if not after["capacity_reservation_specification"]:
        yield "does not say which capacity reservations it uses"
