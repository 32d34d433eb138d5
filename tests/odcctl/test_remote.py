"""The program of Slurm's commands, and the folders that it is linked into."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from odcctl.__main__ import main
from odcctl.remote.folder import PROGRAM, make_folder, program_text
from odcctl.remote.names import NAMES
from tests.odcctl.conftest import Odcctl


def test_path_makes_the_folder_and_prints_it(odcctl: Odcctl, home: Path) -> None:
    done = odcctl("slurm", "--path")
    folder = Path(done.out.strip())
    assert folder.parent == home / ".local/share/odc"
    assert re.fullmatch("slurm-[0-9a-f]{10}", folder.name)
    assert {entry.name for entry in folder.iterdir()} == {PROGRAM, *NAMES}
    assert odcctl("slurm", "--path").out == done.out


def test_every_installation_has_a_folder_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before: a second one rewrote the commands on the PATH of running shells."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["odcctl", "slurm", "--path"])
    assert main() == 0
    first = Path(capsys.readouterr().out.strip())
    text = (first / PROGRAM).read_text()
    monkeypatch.setattr(sys, "executable", "/other/bin/python")
    assert main() == 0
    second = Path(capsys.readouterr().out.strip())
    assert second != first
    assert "/other/bin/python" in (second / PROGRAM).read_text()
    assert (first / PROGRAM).read_text() == text


def test_link_never_replaces_a_real_slurm(odcctl: Odcctl, home: Path) -> None:
    folder = home / "bin"
    folder.mkdir()
    (folder / "squeue").write_text("#!/bin/sh\necho real\n")
    done = odcctl("slurm", "--link", str(folder))
    assert done.code == 1
    assert "squeue exists and is not a link of odc" in done.err
    assert [entry.name for entry in folder.iterdir()] == ["squeue"]
    assert (folder / "squeue").read_text() == "#!/bin/sh\necho real\n"


def test_slurm_needs_path_or_link(odcctl: Odcctl) -> None:
    assert odcctl("slurm").code == 2
    assert odcctl("slurm", "--path", "--link", "x").code == 2


def test_a_long_path_of_python_is_started_by_the_shell(tmp_path: Path) -> None:
    program = tmp_path / "squeue"
    program.write_text(program_text(python=f"{tmp_path}/{'a b' * 50}/python"))
    assert program.read_text().startswith("#!/bin/sh\n")
    folder = tmp_path / ("a b" * 50)
    folder.mkdir()
    (folder / "python").write_text('#!/bin/sh\necho "$@"\n')
    (folder / "python").chmod(0o755)
    program.chmod(0o755)
    done = subprocess.run([program, "-h"], capture_output=True, text=True, check=True)
    assert done.stdout == f"-IS {program} -h\n"


@pytest.mark.parametrize("exists", [False, True])
def test_all_users_reach_the_commands_of_a_daemon_whose_umask_denies_it(
    tmp_path: Path, exists: bool
) -> None:
    folder = tmp_path / "slurm"
    before = os.umask(0o077)
    try:
        if exists:
            folder.mkdir()
        make_folder(str(folder), shared=True)
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / "srun")}
    assert modes == {"slurm": 0o755, "srun": 0o755}


def test_the_program_imports_nothing_that_costs_time() -> None:
    """A start of squeue costs about as much as one of Python."""
    here = Path(__file__).parents[2]
    code = (
        f"import sys; sys.path.append({str(here)!r}); before = set(sys.modules); "
        "import odcctl.remote.program; print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-IS", "-c", code], capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) <= {
        "odcctl", "odcctl._version", "odcctl.remote", "odcctl.remote.program",
        "odcctl.remote.exchange", "_socket", "_json", "__future__",
    }  # fmt: skip
