"""The table of node types is the same in tofu/ and in the database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.support.harness.database import Sql

TYPES = Path(__file__).parents[2] / "tofu" / "gpu-types.yaml"


def types() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(TYPES.read_text("utf-8"))
    return found


def test_the_catalogue_of_odcd_and_the_table_of_tofu_agree(sql: Sql) -> None:
    """GPU-01: one table. A site may have more types, the catalogue has none that tofu lacks."""
    rows = sql.rows(
        "select name, label, gpus_per_node, gpu_mem_mib, cpus_per_node, mem_per_node_mib,"
        " efa_per_node, instance_type from odc.gpu_type where instance_type is not null"
    )
    catalogue = {row["name"]: tuple(row.values())[1:] for row in rows}
    table = {
        name: (
            one["label"], one["gpus"], one["gpu_mem_mib"], one["cpus"], one["mem_mib"], one["efa"],
            one["instance_type"],
        )
        for name, one in types().items()
    }  # fmt: skip
    assert catalogue
    assert {name: table.get(name) for name in catalogue} == catalogue


def test_types_are_complete() -> None:
    for name, one in types().items():
        assert set(one) == {
            "label", "instance_type", "gpus", "gpu_mem_mib", "cpus", "mem_mib", "efa", "arch",
            "fabric_manager", "nvme", "placement_group", "root_gib",
        }, name  # fmt: skip
        # INF-14: images and scratch space need a large disk, on NVMe or on the root volume.
        assert one["nvme"] or one["root_gib"] >= 1000, name


def test_gpus_connected_by_nvswitch_have_the_fabric_manager() -> None:
    """INF-12: without it CUDA fails with error 802."""
    with_it = {name for name, one in types().items() if one["fabric_manager"]}
    assert with_it == {"a100", "h100", "h200", "b200"}
