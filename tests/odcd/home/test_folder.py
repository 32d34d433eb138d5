"""What the daemon's account can reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from odcd.errors import OdcError
from odcd.home import folder
from odcd.home.account import Account


def test_code_that_the_account_cannot_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "checkout"
    (closed / "odcd").mkdir(parents=True)
    closed.chmod(0o700)
    monkeypatch.setattr(folder, "CODE", closed / "odcd")
    stranger = Account(name="stranger", uid=65_533, gid=65_533)
    with pytest.raises(OdcError, match="the account stranger cannot enter") as refused:
        folder.check_code(stranger)
    assert "Install odc where every account can read it" in (refused.value.hint or "")
