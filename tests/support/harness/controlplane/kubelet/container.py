"""Run one command as a container does: own root, mounts, host name, process ids, user; then exec.

    python container.py SPEC REPORT_FD

SPEC is JSON: argv, env, cwd, uid, gid, groups, hostname, stage (an empty folder), mounts (source
or tmpfs_bytes, target, read_only), no_new_privileges, drop_capabilities, keep_capabilities (of
those dropped), cgroup (the file to write 0 to, or empty). Failures are written to
REPORT_FD, which closes on exec. Needs root.
A script: only the standard library.

The root is the host's, in an overlay: the command sees every program of this machine, and nothing
it writes outside its volumes is seen by anybody else or kept.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

_NEWNS, _NEWUTS, _NEWIPC, _NEWPID = 0x00020000, 0x04000000, 0x08000000, 0x20000000
_RDONLY, _NOSUID, _NODEV, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
_PDEATHSIG, _CAPBSET_DROP, _NO_NEW_PRIVS = 1, 24, 38
_CAPABILITIES = {
    "CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "KILL": 5, "SETGID": 6, "SETUID": 7,
    "SETPCAP": 8, "NET_BIND_SERVICE": 10, "IPC_LOCK": 14, "SYS_CHROOT": 18, "AUDIT_WRITE": 29,
    "SETFCAP": 31,
}  # fmt: skip
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")

_libc = ctypes.CDLL(None, use_errno=True)


def main(spec: dict[str, Any], report: int) -> None:
    os.set_inheritable(report, False)
    _checked(_libc.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    _checked(_libc.unshare(_NEWNS | _NEWUTS | _NEWIPC | _NEWPID), "unshare")
    first = os.fork()  # the first process of the new namespace: when it ends, all its processes end
    if first:
        _end_as(_wait_for(first, report))
    _checked(_libc.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    try:
        _make_root(Path(spec["stage"]), spec["mounts"])
        _libc.sethostname(spec["hostname"].encode(), len(spec["hostname"].encode()))
    except OSError as error:
        _fail(report, error)
    job = os.fork()
    if job:
        _end_as(_wait_for(job, report))
    try:
        os.setsid()
        # As container runtimes do: it belongs to root, whichever user runs in it.
        Path(spec["cwd"]).mkdir(parents=True, exist_ok=True)
        if spec["cgroup"]:
            Path(spec["cgroup"]).write_text("0")
        _become(spec)
        os.chdir(spec["cwd"])
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
            # A runtime starts containers so, even if it was started in the background itself.
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(spec["argv"][0], spec["argv"], spec["env"])
    except OSError as error:
        _fail(report, error)


def _wait_for(pid: int, report: int) -> int:
    """The wait status; meanwhile TERM and similar signals are passed to the command."""
    os.close(report)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda got, _: os.kill(pid, got))
    while True:
        found, status = os.waitpid(-1, 0)  # the first process adopts orphans, too
        if found == pid:
            return status


def _end_as(status: int) -> None:
    if os.WIFSIGNALED(status):
        os._exit(128 + os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


def _fail(report: int, error: OSError) -> None:
    os.write(report, str(error).encode())
    os._exit(128)


def _make_root(stage: Path, mounts: list[dict[str, Any]]) -> None:
    _mount("none", Path("/"), "", _REC | _PRIVATE)
    _mount("tmpfs", stage, "tmpfs", data="mode=755")
    upper, work, root = stage / "upper", stage / "work", stage / "root"
    for folder in (upper, work, root):
        folder.mkdir()
    _mount("overlay", root, "overlay", data=f"lowerdir=/,upperdir={upper},workdir={work}")
    _mount("proc", root / "proc", "proc", _NOSUID | _NODEV)
    _mount("/sys", root / "sys", "", _BIND | _REC)
    _mount("tmpfs", root / "dev", "tmpfs", data="mode=755")
    for name in _DEVICES:
        _bind(Path("/dev") / name, root / "dev" / name)
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        (root / "dev" / name).symlink_to(f"/proc/self/{target}")
    (root / "dev/pts").mkdir()
    _mount("devpts", root / "dev/pts", "devpts", data="newinstance,ptmxmode=0666,mode=0620,gid=5")
    (root / "dev/ptmx").symlink_to("pts/ptmx")
    for name in ("tmp", "dev/shm"):
        (root / name).mkdir(exist_ok=True)
        _mount("tmpfs", root / name, "tmpfs", data="mode=1777")
    for one in sorted(mounts, key=lambda mount: mount["target"]):
        target = root / one["target"].lstrip("/")
        if "source" in one:
            _bind(Path(one["source"]), target, read_only=one["read_only"])
        else:
            target.mkdir(parents=True, exist_ok=True)
            size = f",size={one['tmpfs_bytes']}" if one["tmpfs_bytes"] else ""
            _mount("tmpfs", target, "tmpfs", data=f"mode=777{size}")
    os.chroot(root)
    os.chdir("/")


def _bind(source: Path, target: Path, read_only: bool = False) -> None:
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.touch()
    _mount(str(source), target, "", _BIND | _REC)
    if read_only:
        _mount("none", target, "", _BIND | _REMOUNT | _RDONLY)


def _mount(source: str, target: Path, kind: str, flags: int = 0, data: str = "") -> None:
    done = _libc.mount(
        source.encode(), str(target).encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()
    )
    _checked(done, f"mount {kind or source} at {target}")


def _become(spec: dict[str, Any]) -> None:
    if spec["drop_capabilities"]:
        kept = {_CAPABILITIES[name] for name in spec["keep_capabilities"]}
        for number in set(range(64)) - kept:
            _libc.prctl(_CAPBSET_DROP, number, 0, 0, 0)
    for output in (1, 2):  # so that the user may open /dev/stdout, as container runtimes allow
        os.fchown(output, spec["uid"], spec["gid"])
    os.setgroups(spec["groups"])
    os.setgid(spec["gid"])
    os.setuid(spec["uid"])
    if spec["no_new_privileges"]:
        _checked(_libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")


def _checked(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


if __name__ == "__main__":
    try:
        main(json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[2]))
    except OSError as why:
        _fail(int(sys.argv[2]), why)
