"""What the tests of k8s/ share."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def kubectl() -> Path:
    """ODC_TEST_KUBECTL, else the one on PATH."""
    named = os.environ.get("ODC_TEST_KUBECTL") or shutil.which("kubectl")
    if named is None:
        pytest.skip("needs kubectl: put one on PATH, or name one in ODC_TEST_KUBECTL")
    return Path(named)
