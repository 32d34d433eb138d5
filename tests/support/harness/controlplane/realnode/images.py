"""Container images made from this machine's own programs: archives that need no registry."""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tests.support.harness.controlplane import openssh
from tests.support.harness.controlplane.realnode.needs import BUSYBOX

REGISTRY = "127.0.0.1:5000"
"""The registry of the nodes' network, see registry.py. It has none of these images."""
BOX = f"{REGISTRY}/box:1"
"""Busybox: a shell and the usual commands; also the image of sandboxes."""
DEV = f"{REGISTRY}/dev:1"
"""Debian with an SSH server."""
_MEDIA = "application/vnd.oci.image"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_IDLE = "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait; done"

Layer = Callable[[tarfile.TarFile], None]


def make(archive: Path, name: str, layer: Layer) -> Path:
    """Write an image of one layer as an archive that `ctr images import` reads."""
    blob = archive.with_suffix(".layer")
    with tarfile.open(blob, "w") as tar:
        layer(tar)
    digest, size = _digest_of(blob), blob.stat().st_size
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Env": [f"PATH={_PATH}"], "Cmd": ["/bin/sh", "-c", _IDLE]},
        "rootfs": {"type": "layers", "diff_ids": [digest]},
    }
    with tarfile.open(archive, "w") as tar:
        manifest = {
            "schemaVersion": 2,
            "mediaType": f"{_MEDIA}.manifest.v1+json",
            "config": {"mediaType": f"{_MEDIA}.config.v1+json", **_blob(tar, config)},
            "layers": [{"mediaType": f"{_MEDIA}.layer.v1.tar", "digest": digest, "size": size}],
        }
        named = {"io.containerd.image.name": name}
        described = {"mediaType": f"{_MEDIA}.manifest.v1+json", **_blob(tar, manifest)}
        index = {"schemaVersion": 2, "manifests": [described | {"annotations": named}]}
        _file(tar, "oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}).encode())
        _file(tar, "index.json", json.dumps(index).encode())
        tar.add(blob, f"blobs/sha256/{digest.removeprefix('sha256:')}")
    blob.unlink()
    return archive


def box(tar: tarfile.TarFile) -> None:
    """The layer of BOX."""
    for folder in ("bin", "dev", "etc", "proc", "root", "sys", "usr", "usr/bin", "var"):
        _folder(tar, folder)
    _folder(tar, "tmp", 0o1777)
    _accounts(tar, "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
    tar.add(BUSYBOX.resolve(), "bin/busybox")
    applets = subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True)
    for applet in applets.stdout.split():
        if applet != "busybox":
            _link(tar, f"bin/{applet}", "busybox")


_DEV_PACKAGES = (
    "base-files", "base-passwd", "bash", "coreutils", "dash", "findutils", "grep", "gzip",
    "hostname", "libc-bin", "libnsl2", "libpam-modules", "libpam-runtime", "login", "mawk",
    "openssh-client", "passwd", "procps", "sed", "tar", "util-linux",
)  # fmt: skip
_SKIPPED = re.compile(r"^/usr/share/(doc|man|locale|info|lintian|bash-completion)/")
_LISTED = ("etc/ld.so.cache", "etc/ld.so.conf", "etc/nsswitch.conf", "etc/login.defs")


def why_no_dev() -> str:
    """Empty if the layer of DEV can be made; otherwise what is missing."""
    if not Path("/var/lib/dpkg/status").is_file():
        return "the image of dev servers is made of installed packages of Debian"
    return openssh.why_not()


def dev(tar: tarfile.TarFile) -> None:
    """The layer of DEV: packages that are installed here, and an SSH server."""
    for folder in ("dev", "etc", "home", "proc", "root", "run", "sys", "usr", "var"):
        _folder(tar, folder)
    _folder(tar, "tmp", 0o1777)
    for name in ("bin", "sbin", "lib", "lib64"):
        _link(tar, name, f"usr/{name}")
    _accounts(tar, Path("/usr/share/base-passwd/passwd.master").read_text().replace("*", "x"))
    done: set[str] = set()
    server = openssh.cached()
    packages = [*_DEV_PACKAGES, *([] if server else ["openssh-server"])]
    for path in [*_files_of(packages), *_settings()]:
        _copy(tar, path, str(path.parent.resolve() / path.name), done)
    _link(tar, "usr/bin/awk", "mawk")
    for path in sorted(server.rglob("*")) if server else ():
        name = re.sub(r"^(bin|sbin|lib)/", r"usr/\1/", str(path.relative_to(server)))
        _copy(tar, path, name, done)


def _settings() -> Iterator[Path]:
    yield from (Path("/", name) for name in _LISTED)
    for folder in ("pam.d", "ld.so.conf.d", "security"):
        yield Path("/etc", folder)
        yield from sorted(Path("/etc", folder).glob("*"))


def _files_of(packages: Iterable[str]) -> Iterator[Path]:
    """The files of installed packages and of all that they depend on."""
    listed = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package}\t${Pre-Depends}, ${Depends}\n"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    depends = {
        name: set(re.findall(r"(?:^|[,|] *)([a-z0-9][a-z0-9.+-]+)", needed))
        for name, _, needed in (line.partition("\t") for line in listed.stdout.splitlines())
    }
    wanted, todo = set[str](), set(packages)
    while todo:
        name = todo.pop()
        if name in depends and name not in wanted:
            wanted.add(name)
            todo |= depends[name]
    found = subprocess.run(
        ["dpkg-query", "-L", *sorted(wanted - {"perl-base", "debconf"})],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    for line in found.stdout.splitlines():
        if line.startswith("/") and not _SKIPPED.match(line):
            yield Path(line)


def _copy(tar: tarfile.TarFile, path: Path, name: str, done: set[str]) -> None:
    name = name.strip("/")
    top = name in ("", ".", "bin", "sbin", "lib", "lib64", "tmp", "proc", "sys", "dev", "run")
    if not top and name not in done and (path.is_symlink() or path.exists()):
        done.add(name)
        tar.add(path, name, recursive=False)


def _accounts(tar: tarfile.TarFile, passwd: str) -> None:
    lines = [line.split(":") for line in passwd.splitlines() if line]
    groups = "".join(f"{line[0]}:x:{line[3]}:\n" for line in lines)
    shadow = "".join(f"{line[0]}:*:19000:0:99999:7:::\n" for line in lines)
    _file(tar, "etc/passwd", passwd.encode())
    _file(tar, "etc/group", (groups + "shadow:x:42:\n").encode())
    _file(tar, "etc/shadow", shadow.encode(), 0o600)


def _blob(tar: tarfile.TarFile, content: object) -> dict[str, object]:
    data = json.dumps(content).encode()
    digest = hashlib.sha256(data).hexdigest()
    _file(tar, f"blobs/sha256/{digest}", data)
    return {"digest": f"sha256:{digest}", "size": len(data)}


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _file(tar: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    tar.addfile(info, io.BytesIO(data))


def _folder(tar: tarfile.TarFile, name: str, mode: int = 0o755) -> None:
    info = tarfile.TarInfo(name)
    info.type, info.mode = tarfile.DIRTYPE, mode
    tar.addfile(info)


def _link(tar: tarfile.TarFile, name: str, to: str) -> None:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, to
    tar.addfile(info)
