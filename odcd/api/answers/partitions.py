"""Answers about partitions and policies."""

from __future__ import annotations

from typing import Literal

from odcd.api.answers.common import Answer

Limits = dict[str, dict[str, int]]
"""{per: {what: value}}: see docs/operating/accounts-and-limits.md."""


class Partition(Answer):
    """plan_depth: from its policy; the number of its jobs protected at once."""

    name: str
    state: Literal["UP", "DOWN", "DRAIN", "INACTIVE"]
    is_default: bool
    policy: str
    placement: Literal["pack", "spread"]
    tier: int
    plan_depth: int
    max_time_limit_s: int | None
    default_time_limit_s: int | None
    max_nodes: int | None
    def_mem_per_cpu_mib: int | None
    all_nodes: bool
    limits: Limits
    node_names: list[str]
    gpus: int
    gpus_free: int
    gpu_types: list[str]


class PartitionList(Answer):
    partitions: list[Partition]


class Policy(Answer):
    """How jobs are ordered. max_wait_s: jobs that waited longer go to the front, in the order of
    submission. backfill: the order of the candidates behind the protected jobs."""

    name: str
    ordering: Literal["fifo", "multifactor", "sjf", "saf", "wfp3", "odc"]
    max_wait_s: int | None
    backfill: Literal["order", "fifo", "sjbf", "safbf"]
    plan_depth: int
    partitions: list[str]


class PolicyList(Answer):
    policies: list[Policy]
