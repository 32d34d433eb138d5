"""Declared nodes that are other machines: found by their names, and no gang may span them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable

import pytest

from odcd.commands import _starting
from odcd.commands._starting import look_around
from odcd.errors import NeverFits
from odcd.executor.other_hosts import check_gang, find_other_hosts, is_here, warning
from odcd.settings import Arguments, read_settings
from tests.support.builders.jobs import ALICE, a_job

HERE, THERE = frozenset({"10.0.0.1", "fe80::1"}), frozenset({"10.0.0.2"})


def find(known: dict[str, frozenset[str]], *names: str, other: frozenset[str] = frozenset()) -> (
    tuple[str, ...]
):  # fmt: skip
    return find_other_hosts(
        names, resolve=lambda name: known.get(name, other), is_here=HERE.__contains__
    )


def test_only_names_of_other_machines_are_found() -> None:
    known = {"this": HERE, "gpu2": THERE, "gpu3": THERE, "both": HERE | THERE}
    assert find(known, "this", "gpu3", "fake1", "both", "gpu2") == ("gpu3", "gpu2")
    assert find(known, "fake1", "fake2") == ()
    assert find(known) == ()


def test_a_domain_that_answers_every_name_finds_none() -> None:
    assert find({"gpu2": frozenset({"10.9.9.9"})}, "fake1", "gpu2", other=THERE) == ("gpu2",)


def test_a_name_server_that_does_not_answer_only_costs_the_time_limit() -> None:
    hangs = threading.Event()

    def resolve(_name: str) -> frozenset[str]:
        hangs.wait()
        return frozenset()

    try:
        assert find_other_hosts(["gpu2"], resolve=resolve, timeout_s=0.05) == ()
    finally:
        hangs.set()


def test_addresses_of_this_machine_are_known() -> None:
    assert is_here("127.0.0.1")
    assert not is_here("192.0.2.1")  # of a network for documentation


def test_a_job_of_several_nodes_is_rejected_if_declared_nodes_are_other_machines() -> None:
    for fields in (
        {"node_count": 2}, {"node_count": 1, "node_count_max": 2}, {"node_list": ["a", "b"]},
        {"gpus": 16, "gpus_per_node": 8}, {"ntasks": 3, "ntasks_per_node": 2},
    ):  # fmt: skip
        job = a_job(**fields)
        check_gang((), ALICE, job)
        with pytest.raises(NeverFits, match="on 2 nodes: gpu2, gpu3 are other machines"):
            check_gang(("gpu2", "gpu3"), ALICE, job)
    for fields in ({}, {"node_count": 1}, {"gpus": 8}, {"ntasks": 4}):
        check_gang(("gpu2",), ALICE, a_job(**fields))


def first_of(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(names)[:1]


def test_the_start_warns_with_the_names(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings = read_settings(Arguments(embedded=True, node=["gpu[2-3]=h100:8"]), {})
    monkeypatch.setattr(_starting, "find_other_hosts", first_of)
    with caplog.at_level(logging.ERROR):
        found = look_around(settings)
    assert found.other_hosts == ("gpu2",)
    assert [record.getMessage() for record in caplog.records] == ["nodes.other_hosts"]
    text = _starting._welcome(found, None, ())  # pyright: ignore[reportPrivateUsage]
    assert text.splitlines()[-1] == f"WARNING: {warning(['gpu2'])}"
    assert "gpu2 is another machine, but odcd runs every job on this one" in text
