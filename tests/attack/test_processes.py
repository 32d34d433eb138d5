"""One user's processes leave process ids for others."""

from __future__ import annotations

from pathlib import Path

import pytest

from odcd.runner import rules


@pytest.mark.parametrize(
    ("threads", "pids", "allowed"),
    [
        (192_730, 32_768, 16_384),
        (192_730, 4_194_304, 96_365),
        (1_000, 32_768, 1_024),
        (None, 32_768, 16_384),
        (None, None, 32_768),
    ],
)
def test_a_user_gets_at_most_half_of_the_process_ids(
    monkeypatch: pytest.MonkeyPatch, threads: int | None, pids: int | None, allowed: int
) -> None:
    """Before: half of threads-max, which can be three times as many as there are process ids: a
    job that forks without end would have left none for the daemon, PostgreSQL and other jobs."""
    numbers = {"threads-max": threads, "pid_max": pids}
    monkeypatch.setattr(rules, "_kernel_number", numbers.get)
    limits = rules.default_limits()
    assert limits["nproc"] == limits["sigpending"] == (allowed, allowed)


def test_it_is_so_on_this_machine() -> None:
    most = int(Path("/proc/sys/kernel/pid_max").read_text())
    soft, _ = rules.default_limits()["nproc"]
    assert soft is not None
    assert soft <= max(1024, most // 2)
