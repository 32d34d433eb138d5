"""The wheel alone, in a clean virtual environment: it contains sql/ and runs a job."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.harness.daemon import Odc, new_odc

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements" / "image.lock"
BUILT_FROM = (
    "odc", "odcd", "odcctl", "sql", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE",
)  # fmt: skip
PIP = (
    "-m",
    "pip",
    "install",
    "--quiet",
    "--disable-pip-version-check",
    "--no-input",
    "--no-compile",
)


def run(*command: str | Path, cwd: Path) -> str:
    # Nothing of this checkout may reach it, neither by path nor by the environment it runs in.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "VIRTUAL_ENV", "ODC_", "SBATCH_", "SLURM_"))
    }
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in BUILT_FROM:
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            source.mkdir(exist_ok=True)
            shutil.copy(path, source)
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=source)
    [built] = folder.glob("*.whl")
    return built


def test_the_wheel_carries_every_file_of_sql(wheel: Path) -> None:
    files = set(zipfile.ZipFile(wheel).namelist())
    sources = [p.relative_to(ROOT).as_posix() for p in (ROOT / "sql").rglob("*.sql")]
    assert len(sources) > 50
    assert {f"odcd/{name}" for name in sources} <= files
    assert {"odcd/__main__.py", "odcctl/__main__.py", "odcd/runner/__main__.py"} <= files
    assert {"odc/__init__.py", "odc/py.typed", "odc/worker.py"} <= files
    assert "odcd/jobs/login_shell/login_shell.sh" in files
    assert {"odcd/simulate/step.sql", "odcd/simulate/data/philly-sample.csv.gz"} <= files
    assert not [name for name in files if name.startswith("tests/")]


@pytest.mark.long
def test_a_job_runs_out_of_nothing_but_the_wheel(wheel: Path) -> None:
    with new_odc() as odc:
        folder = odc.home.parent
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / "bin" / "python"
        # The versions of the container image.
        run(python, *PIP, "--require-hashes", "-r", LOCK, cwd=folder)
        run(python, *PIP, "--no-deps", "--no-index", wheel, cwd=folder)
        run(python, "-m", "pip", "check", cwd=folder)
        found = run(python, "-c", "import odcd; print(odcd.__file__)", cwd=odc.work)
        assert found.startswith(str(folder / "venv"))
        call = caller(odc, python.parent)
        output = call(
            "odcd", "up", "--node", "n1=h100:8", "--node", "self", "--detach", "--allow-root-jobs"
        )
        assert "odcd is ready" in output
        assert "this machine" in output
        assert call("odcctl", "run", "--gpus", "1", "echo", "out of a wheel") == "out of a wheel\n"
        job = call("odcctl", "submit", "--parsable", "--wrap", "exit 0").strip()
        call("odcctl", "wait", job)
        assert "COMPLETED" in call("odcctl", "history")
        runner = Path(f"/proc/{odc.runner_pid}/cmdline").read_text()
        assert str(folder / "venv") in runner
        call("odcd", "down")
        assert odc.processes() == []


def caller(odc: Odc, programs: Path) -> Callable[..., str]:
    def call(program: str, *argv: str) -> str:
        done = subprocess.run(
            [programs / program, *argv],
            cwd=odc.work, capture_output=True, text=True, check=False, timeout=120,
            env={"PATH": os.defpath, "ODC_HOME": str(odc.home), "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return call
