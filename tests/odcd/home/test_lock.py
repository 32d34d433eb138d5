"""One daemon per home, and nothing else blocks it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from odcd.home import lock
from odcd.home.account import service_account
from odcd.home.lock import HomeLock, holder


def test_looking_up_the_lock_holder_does_not_block_a_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that asks for the holder takes the lock itself for a moment."""
    path = tmp_path / "odcd.lock"
    look = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(look, fcntl.LOCK_SH)
    monkeypatch.setattr(lock.time, "sleep", lambda pause_s: pause_s and os.close(look))
    with HomeLock(path, service_account()):
        assert holder(path) == os.getpid()
    assert holder(path) is None
