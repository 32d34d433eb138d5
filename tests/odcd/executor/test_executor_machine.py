"""The resources of this machine, and the assumed resources of declared nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from odcd.errors import BadRequest
from odcd.executor.gpus import Gpus, choose, find_gpus, type_of
from odcd.executor.machine import declared, this_machine
from odcd.records.node import DeclaredNode, GpuTypeSize

SIZES = {
    "h100": GpuTypeSize(gpus=8, cpus=192, mem_mib=2097152),
    "cpu-x86": GpuTypeSize(gpus=0, cpus=16, mem_mib=32768),
}


@pytest.mark.parametrize(
    ("gpu_type", "gpus", "cpus", "expected"),
    [
        ("h100", 8, None, (192, 2097152)),
        ("h100", 2, None, (48, 524288)),
        ("h100", 8, 4, (4, 2097152)),
        ("h100", 16, None, (384, 4194304)),
        ("cpu-x86", 0, None, (16, 32768)),
        ("cpu-x86", 0, 64, (64, 131072)),
        ("mi300", 8, 96, (96, 393216)),
    ],
)
def test_a_declared_node_has_its_types_share(
    gpu_type: str, gpus: int, cpus: int | None, expected: tuple[int, int]
) -> None:
    node = DeclaredNode(name="n1", gpu_type=gpu_type, gpus=gpus, cpus=cpus)
    report = declared(node, SIZES)
    assert (report.cpus, report.mem_mib) == expected
    assert report.declared


def test_an_unknown_type_without_cpus_is_refused_with_the_way_out() -> None:
    with pytest.raises(BadRequest) as refused:
        declared(DeclaredNode(name="n1", gpu_type="mi300", gpus=8, cpus=None), SIZES)
    assert refused.value.hint == "Give them: --node n1=mi300:8x16."


def test_this_machine_leaves_the_system_some_memory(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemTotal:       10485760 kB\nMemFree: 1 kB\n")
    report = this_machine(None, root=tmp_path)
    assert report.mem_mib == 10240 - 512
    assert report.gpus == 0
    assert report.gpu_type.startswith("cpu-")
    assert report.name
    assert not report.declared


def test_a_containers_limits_are_the_machines(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemTotal:       10485760 kB\n")
    group = tmp_path / "sys/fs/cgroup"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("2147483648\n")
    (group / "cpu.max").write_text("100000 100000\n")
    report = this_machine(None, root=tmp_path)
    assert (report.cpus, report.mem_mib) == (1, 2048 - 102)


def test_this_machine_as_it_is() -> None:
    report = this_machine(find_gpus())
    assert report.cpus >= 1
    assert report.mem_mib > 0


@pytest.mark.parametrize(
    ("product", "gpu_type"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"), ("NVIDIA H200", "h200"), ("NVIDIA B200", "b200"),
        ("NVIDIA A100-SXM4-40GB", "a100"), ("NVIDIA A10G", "a10g"), ("NVIDIA L4", "l4"),
        ("Tesla T4", "t4"), ("NVIDIA L40S", "l40s"), ("NVIDIA GH200 480GB", "gh200-480gb"),
        ("NVIDIA GeForce RTX 4090", "geforce-rtx-4090"), ("", "gpu"),
    ],
)  # fmt: skip
def test_a_product_has_our_name(product: str, gpu_type: str) -> None:
    assert type_of(product) == gpu_type


def test_the_most_frequent_gpu_type_is_offered() -> None:
    assert choose(["t4", "a100", "a100"]) == Gpus(gpu_type="a100", indexes=(1, 2))
    assert choose([]) is None
