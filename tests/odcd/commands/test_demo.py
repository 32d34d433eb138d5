"""odcd demo when a command does not end."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from odcd.commands import demo
from odcd.errors import OdcError


def test_a_command_that_does_not_end_is_named_and_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_args: object, **_options: object) -> None:
        raise subprocess.TimeoutExpired("odcd", demo.COMMAND_TIMEOUT_S)

    home = tmp_path / "demo"
    home.mkdir()
    monkeypatch.setattr(demo.subprocess, "run", late)
    shown = demo.Demo(home)
    with pytest.raises(OdcError, match=r"`odcd up .*` did not end in 60 s"):
        shown.morning()
    shown.clean_up()
    assert not home.exists()
