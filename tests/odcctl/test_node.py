"""odcctl node create, update and delete: what they send, and what they print."""

from __future__ import annotations

import pytest

from odcctl.text.sizes import mebibytes
from tests.odcctl.conftest import Odcctl
from tests.odcctl.objects import a_node
from tests.odcctl.peer import Peer, problem


def test_nodes_are_declared_one_by_one(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("POST", "/v1/nodes", a_node("gpu-01"))
    done = odcctl(
        "node", "create", "gpu-[01-02]", "--type", "h100", "--gpus", "8", "--mem", "2T",
        "--features", "nvme,ib", "--zone", "z1",
    )  # fmt: skip
    assert done.out == "node gpu-01: created\nnode gpu-02: created\n"
    body = {"gpu_type": "h100", "gpus": 8, "mem_mib": 2097152, "features": ["nvme", "ib"]}
    assert [request.body for request in peer.requests] == [
        {"name": name, **body, "zone": "z1"} for name in ("gpu-01", "gpu-02")
    ]


def test_only_given_properties_change_and_an_empty_value_removes(
    peer: Peer, odcctl: Odcctl
) -> None:
    peer.on("PATCH", "/v1/nodes/gpu-01", a_node("gpu-01"))
    done = odcctl("node", "update", "gpu-01", "--features", "", "--zone", "", "--cpus", "96")
    assert done.out == "node gpu-01: changed\n"
    assert peer.requests[0].body == {"features": [], "zone": None, "cpus": 96}


def test_a_refused_deletion_names_the_node_and_the_others_are_deleted(
    peer: Peer, odcctl: Odcctl
) -> None:
    busy = problem(409, "WrongState", "OD012", "node gpu-01 has jobs: 7, 8", "Drain it first.")
    peer.on("DELETE", "/v1/nodes/gpu-01", busy)
    peer.on("DELETE", "/v1/nodes/gpu-02", a_node("gpu-02"))
    done = odcctl("node", "delete", "gpu-[01-02]")
    assert (done.code, done.out) == (1, "node gpu-02: deleted\n")
    assert done.err == (
        "odcctl: node gpu-01 not deleted: node gpu-01 has jobs: 7, 8 (OD012)\n  Drain it first.\n"
    )


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["create", "gpu-01", "--gpus", "8"], "give the nodes' --type and --gpus"),
        (["create", "a", "--type", "h100", "--gpus", "8", "--mem", "much"], '"much"'),
        (["create", "a", "--type", "h100", "--gpus", "8", "--mem", "0"], '"0"'),
        (["create", "a", "--type", "h100", "--gpus", "eight"], "--gpus"),
        (["update", "gpu-01"], "name at least one property"),
        (["delete"], "NAME"),
    ],
)
def test_wrong_usage_sends_nothing(
    peer: Peer, odcctl: Odcctl, argv: list[str], message: str
) -> None:
    done = odcctl("node", *argv)
    assert done.code == 2
    assert message in done.err
    assert peer.requests == []


def test_sizes_are_in_mebibytes() -> None:
    sizes = {"64000": 64000, "512G": 524288, "1t": 1048576, "8M": 8, "": None, "1.5G": None}
    assert {text: mebibytes(text) for text in sizes} == sizes
