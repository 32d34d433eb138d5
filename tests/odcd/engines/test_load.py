"""The executor's modules are loaded before root is dropped."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import sys
from odcd.daemon import _load
from dataclasses import replace
from odcd.settings import Arguments, read_settings
_load(replace(read_settings(Arguments(embedded=True), {}), executor=sys.argv[1]))
before = set(sys.modules)
if sys.argv[1] == "local":
    from odcd.engines.local import LocalEngine
else:
    from odcd.engines.kubernetes import KubernetesEngine
print(sorted(set(sys.modules) - before))
"""


@pytest.mark.long
@pytest.mark.parametrize("executor", ["local", "kubernetes"])
def test_making_an_executor_imports_nothing_after_the_load(executor: str) -> None:
    """Before: as root, in a checkout that only root can read, `odcd up` failed with a missing
    module."""
    command = [sys.executable, "-c", SCRIPT, executor]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
