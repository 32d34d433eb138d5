"""The programs of a real Kubernetes control plane: found, or built once from pinned Go modules.

python -m tests.support.harness.controlplane.build

builds them ahead of a test run and prints their paths.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).parent / "go"
KUBERNETES = "v1.36.3"
KWOK = "v0.8.0"
HOW = (
    "give a cluster by KUBECONFIG_TEST, or envtest's binaries by KUBEBUILDER_ASSETS, or install Go"
    " 1.26 or newer, which builds a control plane once (some 8 minutes)"
)


class NoBinaries(Exception):
    """The programs are not available here; the message says what is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A Go module of ours that pins the programs of one project."""

    name: str
    packages: dict[str, str]
    ldflags: tuple[str, ...] = ()

    def key(self, go: str) -> str:
        """The inputs of the binaries, as one short word."""
        digest = hashlib.sha256()
        for part in (MODULES / self.name / "go.mod", MODULES / self.name / "go.sum"):
            digest.update(part.read_bytes())
        digest.update(repr((self.packages, self.ldflags, go)).encode())
        for package in self.packages.values():
            if package.startswith("./"):
                for source in sorted((MODULES / self.name / package).glob("*.go")):
                    digest.update(source.read_bytes())
        return digest.hexdigest()[:16]


_VERSION = "k8s.io/component-base/version"
_MAJOR, _MINOR = KUBERNETES.removeprefix("v").split(".")[:2]
_VERSIONED = (
    f"-X {_VERSION}.gitVersion={KUBERNETES}",
    f"-X {_VERSION}.gitMajor={_MAJOR}",
    f"-X {_VERSION}.gitMinor={_MINOR}",
    f"-X k8s.io/client-go/pkg/version.gitVersion={KUBERNETES}",
)
_KUBERNETES = Module(
    name="kubernetes",
    packages={
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
    },
    ldflags=_VERSIONED,
)
_ETCD = Module(name="etcd", packages={"etcd": "go.etcd.io/etcd/server/v3"})
_KWOK = Module(
    name="kwok",
    packages={"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
    ldflags=(f"-X sigs.k8s.io/kwok/pkg/consts.Version={KWOK}",),
)
# Separate from the control plane's programs, which a change of these does not build again.
_KUBELET = Module(
    name="kubelet",
    packages={"kubelet": "k8s.io/kubernetes/cmd/kubelet"},
    ldflags=_VERSIONED,
)
_DEVICE_PLUGIN = Module(name="kubelet", packages={"device-plugin": "./deviceplugin"})
_ALL = (_ETCD, _KWOK, _KUBERNETES, _KUBELET, _DEVICE_PLUGIN)


def binaries(names: tuple[str, ...] = ()) -> dict[str, Path]:
    """The path of each program (of all, without names); builds those that are neither given nor
    cached.

    Raises NoBinaries if one is missing and Go is not installed.
    """
    requested = names or tuple(name for module in _ALL for name in module.packages)
    found = _given(requested)
    for module in _ALL:
        if missing := [name for name in module.packages if name in requested and name not in found]:
            folder = _built(module)
            found |= {name: folder / name for name in missing}
    return found


def kubectl() -> Path:
    """Only kubectl: for other clusters, the one on the PATH is used."""
    try:
        return binaries(("kubectl",))["kubectl"]
    except NoBinaries:
        if there := shutil.which("kubectl"):
            return Path(there)
        raise


def _given(names: tuple[str, ...]) -> dict[str, Path]:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if not assets:
        return {}
    if not (Path(assets) / "kube-apiserver").is_file():
        raise NoBinaries(f"KUBEBUILDER_ASSETS names {assets}, which has no kube-apiserver; {HOW}")
    return {name: Path(assets) / name for name in names if (Path(assets) / name).is_file()}


def _built(module: Module) -> Path:
    """The cache folder of a module's programs; two processes never build the same one."""
    go = shutil.which("go")
    if go is None:
        raise NoBinaries(f"no {', '.join(module.packages)} here; {HOW}")
    cache = (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "odc" / "controlplane"
    )
    cache.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(
        [go, "env", "GOVERSION"], cwd=MODULES / module.name, capture_output=True, text=True
    ).stdout.strip()
    folder = cache / f"{module.name}-{module.key(version)}"
    with _locked(cache / f"{module.name}.lock"):
        if not folder.is_dir():
            _build(go, module, folder)
    return folder


def _build(go: str, module: Module, folder: Path) -> None:
    print(f"building {', '.join(module.packages)}, once, into {folder}", file=sys.__stderr__)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{module.name}-") as scratch:
        into = Path(scratch) / "bin"
        into.mkdir()
        for name, package in module.packages.items():
            flags = " ".join(("-s", "-w", *module.ldflags))
            done = subprocess.run(
                [go, "build", "-ldflags", flags, "-o", str(into / name), package],
                cwd=MODULES / module.name,
                capture_output=True,
                text=True,
            )
            if done.returncode:
                raise RuntimeError(
                    f"go could not build {name} in {MODULES / module.name}:\n"
                    f"{done.stderr[-4000:]}\n"
                    f"To do without: {HOW}."
                )
        into.rename(folder)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    for program, where in sorted(binaries().items()):
        print(f"{program}\t{where}")
