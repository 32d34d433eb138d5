"""Published programs that drive Slurm, unmodified, against odc's commands. They are the dependency
group `clients`; without one, its tests are skipped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness.slurm_commands import Commands, slurm_commands


@pytest.fixture(scope="session")
def commands(seed: Path) -> Iterator[Commands]:
    with slurm_commands(seed) as found:
        yield found


@pytest.fixture
def slurm(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """The commands are on PATH of this process, whose environment is that of a shell."""
    for name in list(os.environ):
        if name.startswith(("SLURM_", "SBATCH_")):
            monkeypatch.delenv(name)
    for name in ("PATH", "ODC_HOME"):
        monkeypatch.setenv(name, commands.environment[name])
    monkeypatch.chdir(commands.odc.work)
    return commands
