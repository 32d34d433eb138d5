"""odcctl partition and odcctl policy."""

from __future__ import annotations

import json

import pytest

from tests.odcctl.conftest import Golden, Odcctl
from tests.odcctl.objects import a_partition, a_policy
from tests.odcctl.peer import Peer


def test_partitions_are_listed_and_shown(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    every = [
        a_partition("main", is_default=True, all_nodes=True),
        a_partition("urgent", tier=5, policy="deep", placement="spread", plan_depth=1_000_000,
                    max_time_limit_s=None, state="DOWN", max_nodes=2, def_mem_per_cpu_mib=4096),
    ]  # fmt: skip
    peer.on("GET", "/v1/partitions", {"partitions": every})
    peer.on("GET", "/v1/partitions/urgent", every[1])
    listed, shown = odcctl("partition", "list"), odcctl("partition", "show", "urgent")
    golden("partition", listed.out + "\n" + shown.out)
    assert json.loads(odcctl("partition", "list", "--json").out) == {"partitions": every}
    assert odcctl("partition", "list", "--output", "quiet").out == "main\nurgent\n"


def test_policies_are_listed_and_shown(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    every = [
        a_policy("odc", partitions=["main", "side"]),
        a_policy("sjf", max_wait_s=172800, backfill="sjbf", plan_depth=1_000_000),
    ]
    peer.on("GET", "/v1/policies", {"policies": every})
    peer.on("GET", "/v1/policies/sjf", every[1])
    golden("policy", odcctl("policy", "list").out + "\n" + odcctl("policy", "show", "sjf").out)


def test_options_reach_the_daemon(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("PATCH", "/v1/partitions/main", a_partition("main"))
    peer.on("POST", "/v1/partitions", a_partition("p"))
    peer.on("POST", "/v1/policies", a_policy("sjf"))
    peer.on("PATCH", "/v1/policies/odc", a_policy("odc"))
    peer.on("DELETE", "/v1/policies/sjf", a_policy("sjf"))
    peer.on("DELETE", "/v1/partitions/p", a_partition("p"))
    cases = [
        (
            ("partition", "edit", "main", "--placement", "spread", "--policy", "wfp3", "--tier",
             "2", "--plan-depth", "all", "--max-nodes", "none", "--state", "down",
             "--max-time", "UNLIMITED"),
            {"placement": "spread", "policy": "wfp3", "tier": 2, "plan_depth": 1_000_000,
             "max_nodes": None, "state": "DOWN", "max_time_limit": "UNLIMITED"},
            "partition main changed\n",
        ),
        (
            ("partition", "create", "p", "--nodes", "gpu-[01-02]", "--default", "--mem-per-cpu",
             "4000", "--default-time", "1:00:00"),
            {"name": "p", "node_list": ["gpu-01", "gpu-02"], "is_default": True,
             "def_mem_per_cpu_mib": 4000, "default_time_limit": "1:00:00"},
            "partition p created\n",
        ),
        (
            ("policy", "create", "sjf", "--like", "odc", "--max-wait", "2-0"),
            {"name": "sjf", "like": "odc", "max_wait": "2-0"},
            "policy sjf created\n",
        ),
        (
            ("policy", "edit", "odc", "--max-wait", "none", "--plan-depth", "10"),
            {"max_wait_s": None, "plan_depth": 10},
            "policy odc changed\n",
        ),
        (("policy", "delete", "sjf"), None, "policy sjf deleted\n"),
        (("partition", "delete", "p"), None, "partition p deleted\n"),
    ]  # fmt: skip
    for argv, body, output in cases:
        done = odcctl(*argv)
        assert (done.code, done.out, done.err) == (0, output, "")
        assert (peer.requests[-1].body or None) == body


@pytest.mark.parametrize(
    "line",
    [
        "partition", "partition drop main", "partition list main", "partition show",
        "partition edit main", "partition show main --tier 2", "partition edit main --tier high",
        "partition delete", "partition delete main --tier 2",
        "policy create p", "policy create p --no-header --ordering fifo", "policy edit p",
        "policy delete p --plan-depth 1", "policy edit p --like odc", "policy delete a b",
    ],
)  # fmt: skip
def test_wrong_usage_is_told_before_the_daemon_is_asked(
    peer: Peer, odcctl: Odcctl, line: str
) -> None:
    assert odcctl(*line.split()).code == 2
    assert peer.requests == []
