"""Whoever replaces a result of a JobExecutor runs code as the user who reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from odc.errors import OdcError
from odc.folder import CallFolder
from tests.odc import functions


def make(above: Path) -> CallFolder:
    return CallFolder.make(above, functions.add, [((1,), {})])


def test_a_link_that_is_pointed_elsewhere_changes_no_result(tmp_path: Path) -> None:
    """Before: the owner of a link in /tmp, where a user put a folder, could do that later."""
    own, link = tmp_path / "own", tmp_path / "link"
    own.mkdir()
    link.symlink_to(own)
    folder = make(link)
    assert folder.path.parent == own


def test_a_folder_below_one_that_everyone_can_write_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    (shared / "own").mkdir(parents=True)
    shared.chmod(0o777)
    with pytest.raises(OdcError, match="everyone can write in"):
        make(shared / "own")
    shared.chmod(0o1777)
    assert make(shared / "own").path.parent == shared / "own"
