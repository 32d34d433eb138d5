"""GPUs and signals."""

from __future__ import annotations

import pytest

from odcd.errors import BadRequest, NotImplementedYet
from odcd.slurm.gres import GpuRequest, agreed_type, check_counts, parse_gpus, parse_gres
from odcd.slurm.signals import EndSignal, parse_end_signal, signal_number


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("gpu", GpuRequest(count=1)),
        ("gpu:2", GpuRequest(count=2)),
        ("gpu:H100", GpuRequest(count=1, type="h100")),
        ("gpu:h100:8", GpuRequest(count=8, type="h100")),
        ("gpu:t4-small:1", GpuRequest(count=1, type="t4-small")),
        ("gres/gpu:2", GpuRequest(count=2)),
        ("gpu=2", GpuRequest(count=2)),
        ("gpu:0", GpuRequest(count=0)),
        ("none", GpuRequest(count=0)),
    ],
)
def test_gres_is_read_in_every_form_of_sbatch(text: str, request_: GpuRequest) -> None:
    assert parse_gres(text) == request_


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("4", GpuRequest(count=4)),
        ("a100:4", GpuRequest(count=4, type="a100")),
        ("A100", GpuRequest(count=1, type="a100")),
    ],
)
def test_gpus_are_read_in_every_form_of_sbatch(text: str, request_: GpuRequest) -> None:
    assert parse_gpus(text) == request_


@pytest.mark.parametrize(
    "text",
    ["", "gpu:", "gpu::2", "gpu:h100:2:3", "gpu:h100:x", "gpu:-1", "gpu:9999999999", "2", ":"],
)
def test_an_invalid_gres_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        parse_gres(text)


@pytest.mark.parametrize("text", ["", "-1", "h100:", "h100:x", ":2", "1.5", "h100:2:3", "2:2"])
def test_an_invalid_number_of_gpus_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        parse_gpus(text)


@pytest.mark.parametrize("text", ["shard:4", "gpu:a100:1,gpu:h100:1", "gpu:1,fpga:2", "mps"])
def test_resources_that_odc_has_not_are_refused_as_not_yet(text: str) -> None:
    with pytest.raises(NotImplementedYet):
        parse_gres(text)


def test_two_gpu_types_in_one_job_are_refused_by_name() -> None:
    with pytest.raises(BadRequest, match="--gpus says h100, --gpus-per-node says a100"):
        agreed_type(
            {
                "gpus": GpuRequest(count=8, type="h100"),
                "gpus-per-node": GpuRequest(count=4, type="a100"),
                "gpus-per-task": None,
            }
        )


@pytest.mark.parametrize(
    "counts",
    [
        {"total": 8, "per_node": 4, "nodes": 3},
        {"total": 8, "per_task": 1, "tasks": 4},
        {"total": 8, "per_task": 1, "nodes": 2, "tasks_per_node": 2},
        {"per_node": 4, "per_task": 1, "tasks_per_node": 8},
    ],
)
def test_gpu_counts_that_contradict_one_another_are_refused(counts: dict[str, int]) -> None:
    arguments = dict.fromkeys(("total", "per_node", "per_task", "nodes", "tasks", "tasks_per_node"))
    with pytest.raises(BadRequest, match="do not match"):
        check_counts(**(arguments | counts))


def test_gpu_counts_that_agree_pass() -> None:
    check_counts(total=8, per_node=4, per_task=2, nodes=2, tasks=4, tasks_per_node=2)


@pytest.mark.parametrize(
    ("text", "number"),
    [("USR1", 10), ("SIGUSR1", 10), ("usr2", 12), ("9", 9), ("TERM", 15), ("64", 64)],
)
def test_a_signal_has_a_name_or_a_number(text: str, number: int) -> None:
    assert signal_number(text) == number


@pytest.mark.parametrize("text", ["", "0", "65", "NOPE", "SIG", "-9", "1e1", "SIG_IGN", "9" * 5000])
def test_an_invalid_signal_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        signal_number(text)


@pytest.mark.parametrize(
    ("text", "signal"),
    [
        ("USR1@90", EndSignal(number=10, before_s=90, batch=False)),
        ("B:USR2@30", EndSignal(number=12, before_s=30, batch=True)),
        ("TERM", EndSignal(number=15, before_s=60, batch=False)),
        ("b:10", EndSignal(number=10, before_s=60, batch=True)),
    ],
)
def test_a_signal_before_the_limit_is_read_as_sbatch_reads_it(text: str, signal: EndSignal) -> None:
    assert parse_end_signal(text) == signal


@pytest.mark.parametrize(
    "text", ["", "@60", "USR1@", "USR1@x", "USR1@70000", "X:USR1", "B:", "B:@5"]
)
def test_an_invalid_signal_before_the_limit_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        parse_end_signal(text)


def test_a_signal_at_the_start_of_a_booking_is_refused_as_not_yet() -> None:
    with pytest.raises(NotImplementedYet, match="R:"):
        parse_end_signal("RB:USR1@60")
