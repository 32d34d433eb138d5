"""Published programs that drive Slurm, unmodified, with jobs in pods: submitit and Lightning. The
pods share a folder with the user's machine, as a cluster's file system."""

from __future__ import annotations

import importlib
import importlib.util
import operator
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from odcctl.remote.folder import make_folder
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.controlplane.processes import ProcessNodes
from tests.support.harness.database import TestServer
from tests.support.harness.kube import Kube
from tests.support.harness.lightning import SCRIPT
from tests.support.harness.slurm_commands import needs
from tests.support.harness.stacks import Stack, on_kubernetes

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]

WITHIN_S = 180
CLAIM = "shared"
PACKAGES = {
    "submitit": ("submitit", "cloudpickle", "typing_extensions.py"),
    "lightning_fabric": (
        "lightning_fabric", "lightning_utilities", "packaging", "typing_extensions.py",
    ),
}  # fmt: skip
PYTHON = "/usr/bin/python3"
"""The nodes run programs of this machine, as a user who may not read every folder of it."""


def _has_same_python() -> bool:
    if not Path(PYTHON).exists():
        return False
    text = "import sys; print(*sys.version_info[:2])"
    done = subprocess.run([PYTHON, "-c", text], capture_output=True, text=True, check=False)
    return done.stdout.split() == [str(part) for part in sys.version_info[:2]]


@pytest.fixture(scope="module")
def shared(real_nodes: ProcessNodes, shared_plane: ControlPlane, installed: Kube) -> Iterator[Path]:
    """The folder, which has the clients' packages."""
    if not _has_same_python():
        pytest.skip(f"{PYTHON} is not the version of this Python")
    folder = real_nodes.volumes / CLAIM
    (folder / "site").mkdir(parents=True)
    folder.chmod(0o777)
    for package, names in PACKAGES.items():
        found = importlib.util.find_spec(package)
        if found is None or found.origin is None:
            continue
        for name in names:
            source, target = Path(found.origin).parent.parent / name, folder / "site" / name
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            else:
                shutil.copy(source, target)
    spec = {"accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeMode": "Filesystem"}
    volume = {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": CLAIM},
        "spec": {**spec, "capacity": {"storage": "1Gi"}, "persistentVolumeReclaimPolicy": "Retain",
                 "csi": {"driver": "tests.example", "volumeHandle": CLAIM}},
    }  # fmt: skip
    claim = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": CLAIM, "namespace": "gpu-batch"},
        "spec": {**spec, "volumeName": CLAIM, "resources": {"requests": {"storage": "1Gi"}}},
    }  # fmt: skip
    made = [shared_plane.api.create(one) for one in (volume, claim)]
    yield folder
    for one in made[::-1]:
        shared_plane.api.delete(shared_plane.api.path_of(one))


@pytest.fixture(scope="module")
def stack(
    installed: Kube, shared_plane: ControlPlane, postgres_server: TestServer, shared: Path,
    real_nodes: ProcessNodes,
) -> Iterator[Stack]:  # fmt: skip
    with ExitStack() as undo:
        # The daemon's user may not read pytest's folders.
        public = Path(undo.enter_context(TemporaryDirectory()))
        public.chmod(0o755)
        template = public / "pod.yaml"
        template.write_text(
            f"volumes: [{{name: shared, persistentVolumeClaim: {{claimName: {CLAIM}}}}}]\n"
            f"volumeMounts: [{{name: shared, mountPath: {shared}}}]\n"
            f"env: [{{name: PYTHONPATH, value: {shared / 'site'}}}]\n"
        )
        dsn = postgres_server.clone()
        undo.callback(postgres_server.drop, dsn)
        account: Path = shared_plane.account_kubeconfig("gpu-controlplane", "odcd")
        yield undo.enter_context(on_kubernetes(
            dsn, account, real_nodes.names, ODC_POD_TEMPLATE=str(template),
        ))  # fmt: skip


@pytest.fixture
def user(
    stack: Stack, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """This process is a shell of the user, with Slurm's commands; the folder to work in."""
    make_folder(str(tmp_path / "bin"), default="/nonexistent")
    for name in list(os.environ):
        if name.startswith(("SLURM_", "SBATCH_")):
            monkeypatch.delenv(name)
    for name in ("ODC_SERVER", "ODC_TOKEN", "ODC_HOME"):
        monkeypatch.setenv(name, stack.odc.environment[name])
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    folder = shared / tmp_path.name
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.chdir(folder)
    umask = os.umask(0)
    yield folder
    os.umask(umask)


@pytest.fixture
def executor(user: Path) -> Any:
    """With submitit's own script, which starts Python with srun."""
    found = importlib.import_module("submitit").SlurmExecutor(
        folder=user / "submitit", python=PYTHON
    )
    found.update_parameters(time=5, mem="200MB", array_parallelism=2, stderr_to_stdout=True)
    return found


def _finished(stack: Stack, job: Any) -> Any:
    """The result. submitit asks sacct less and less often, so it is forced to look."""
    deadline = time.monotonic() + WITHIN_S
    while not job.watcher.is_done(job.job_id, mode="force"):
        assert time.monotonic() < deadline, job.state + stack.log()
        time.sleep(0.5)
    return job.result()


@needs("submitit")
def test_submitit_returns_the_result(stack: Stack, executor: Any) -> None:
    job = executor.submit(operator.add, 2, 3)
    assert _finished(stack, job) == 5
    assert job.state == "COMPLETED"


@needs("submitit")
def test_a_map_of_submitit_becomes_an_array(stack: Stack, executor: Any) -> None:
    jobs = executor.map_array(operator.add, [1, 2, 3, 4], [10, 20, 30, 40])
    assert len({job.job_id.partition("_")[0] for job in jobs}) == 1
    assert [_finished(stack, job) for job in jobs] == [11, 22, 33, 44]


@needs("submitit")
def test_an_exception_in_a_pod_reaches_submitits_caller(stack: Stack, executor: Any) -> None:
    failed = importlib.import_module("submitit").core.utils.FailedJobError
    job = executor.submit(int, "on purpose")
    with pytest.raises(failed, match="on purpose"):
        _finished(stack, job)
    assert job.state == "FAILED"


@needs("lightning-fabric")
def test_two_tasks_of_lightning_meet_in_two_pods(stack: Stack, user: Path) -> None:
    (user / "lightning.py").write_text(SCRIPT)
    out = subprocess.run(
        ["sbatch", "--parsable", "-J", "lightning", "-N2", "--ntasks-per-node=1",
         "--gpus-per-node=1", "-o", "lightning.out", "--wrap", f"srun {PYTHON} lightning.py"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert out.returncode == 0, out
    assert stack.end(int(out.stdout))["state"] == "COMPLETED", (user / "lightning.out").read_text()
    lines = sorted((user / "lightning.out").read_text().splitlines())
    assert lines == ["lightning 2 0 0 0 1", "lightning 2 1 0 1 1"]
