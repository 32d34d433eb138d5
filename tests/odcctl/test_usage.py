"""odcctl usage: what it asks for, and what it shows."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from odcd.api.usage import Usage
from tests.odcctl.conftest import Golden, Odcctl
from tests.odcctl.peer import Peer

HEAD = {"since": "2026-06-24T12:00:00Z", "until": "2026-07-01T12:00:00Z"}


def a_usage(**fields: Any) -> dict[str, Any]:
    one: dict[str, Any] = {
        "group": {"user": "ann"}, "jobs": 3, "gpu_s": 36_180, "cpu_s": 720_000, "began": 2,
        "wait_s": {"mean": 95, "median": 60, "most": 7_200}, "failed": 1, "early": 2,
        "early_gpu_s": 5_400,
    }  # fmt: skip
    return msgspec.to_builtins(msgspec.convert(one | fields, Usage))


def test_usage_is_a_table(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    """LIF-07, PLN-12"""
    rows = [
        a_usage(group={"user": "ann", "gpu_type": "h100"}),
        a_usage(group={"user": "bob", "gpu_type": "-"}, wait_s=None, failed=0, early=0, gpu_s=0),
    ]
    peer.on("GET", "/v1/usage", {**HEAD, "by": ["user", "gpu_type"], "usage": rows})
    done = odcctl("usage", "--by", "user,type", "-S", "2026-06-24T12:00", "--reservations")
    golden("usage", done.out + "--\n" + done.err)
    assert peer.requests[-1].query == {
        "by": "user,gpu_type", "since": "2026-06-24T12:00:00+00:00", "kind": "reservation",
    }  # fmt: skip
    assert odcctl("usage", "--output", "quiet").out == "ann\nbob\n"
    assert odcctl("usage", "--json").out.startswith('{"since": ')


@pytest.mark.parametrize(
    "options",
    [["--by", "colour"], ["--me", "--user", "ann"], ["--batch", "--reservations"], ["-S", "soon"]],
)
def test_contradictory_options_are_wrong_usage(
    peer: Peer, odcctl: Odcctl, options: list[str]
) -> None:
    done = odcctl("usage", *options)
    assert (done.code, done.out, peer.requests) == (2, "", [])
