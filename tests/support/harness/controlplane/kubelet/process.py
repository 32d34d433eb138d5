"""A container as a process of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pwd
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.harness.controlplane import openssh
from tests.support.harness.controlplane.kubelet.env import NotYet, argv
from tests.support.harness.controlplane.kubelet.logs import ContainerLog, now, rfc3339
from tests.support.harness.controlplane.kubelet.memory import MemoryLimit
from tests.support.harness.controlplane.kubelet.status import Ended
from tests.support.harness.controlplane.kubelet.volumes import bytes_of

_SCRIPT = Path(__file__).parent / "container.py"
_STAND_INS = Path(__file__).parent / "programs"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Process:
    """One container; its output goes to its log."""

    def __init__(
        self, spec: dict[str, Any], folder: Path, name: str, limit: MemoryLimit | None
    ) -> None:
        self.spec = spec
        self._limit = limit
        self._says_last = False
        self._message = folder / f"{name}-message"
        """The text that it writes to /dev/termination-log."""
        self.started_at = ""
        self._ended: Ended | None = None
        self.log = ContainerLog(folder / f"{name}.log")
        self._file = folder / f"{name}.json"
        self._process: asyncio.subprocess.Process | None = None
        self._copying: asyncio.Task[None] | None = None

    @classmethod
    def of(
        cls,
        pod: Mapping[str, Any],
        container: Mapping[str, Any],
        env: dict[str, str],
        mounts: list[dict[str, Any]],
        folder: Path,
    ) -> Process:
        """From the manifests; raises NotYet where kubelet would refuse."""
        name: str = container["name"]
        stage = folder / f"{name}-root"
        stage.mkdir(exist_ok=True)
        message = folder / f"{name}-message"
        message.write_text("")
        message.chmod(0o666)
        mounts = [*mounts, _at("/dev/termination-log", message), *_programs(container["image"])]
        security = {
            **pod["spec"].get("securityContext", {}),
            **container.get("securityContext", {}),
        }
        uid: int = security.get("runAsUser", 0)
        if security.get("runAsNonRoot") and uid == 0:
            message = "container has runAsNonRoot and image will run as root"
            raise NotYet("CreateContainerConfigError", message)
        groups = [*security.get("supplementalGroups", [])]
        groups += [security["fsGroup"]] if "fsGroup" in security else []
        env.setdefault("HOME", _home(uid))
        spec = {
            "argv": argv(container, env),
            "env": env,
            "cwd": container.get("workingDir", "/"),
            "uid": uid,
            "gid": security.get("runAsGroup", 0),
            "groups": groups,
            "hostname": hostname(pod),
            "stage": str(stage),
            "mounts": mounts,
            "no_new_privileges": security.get("allowPrivilegeEscalation") is False,
            "drop_capabilities": "ALL" in security.get("capabilities", {}).get("drop", []),
            "keep_capabilities": security.get("capabilities", {}).get("add", []),
        }
        memory = container.get("resources", {}).get("limits", {}).get("memory")
        limit = MemoryLimit(f"{folder.name}-{name}", bytes_of(memory)) if memory else None
        spec["cgroup"] = limit.procs if limit else ""
        made = cls(spec, folder, name, limit)
        made._says_last = container.get("terminationMessagePolicy") == "FallbackToLogsOnError"
        return made

    @staticmethod
    def base_env(pod: Mapping[str, Any]) -> dict[str, str]:
        """The environment from kubelet and image, before the manifest's."""
        return {
            **_tools(),
            "HOSTNAME": hostname(pod),
            "KUBERNETES_SERVICE_HOST": "10.96.0.1",
            "KUBERNETES_SERVICE_PORT": "443",
        }

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self) -> str:
        """Empty when the command runs; otherwise the reason why it cannot."""
        self._file.write_text(json.dumps(self.spec))
        read, write = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", str(_SCRIPT), str(self._file), str(write),
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT, pass_fds=(write,), start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(write)
        failed = await asyncio.to_thread(_read_all, read)
        if failed:
            await self._process.wait()
            return failed
        self.started_at = rfc3339(now())
        self._copying = asyncio.create_task(self._copy())
        return ""

    async def _copy(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        while data := await self._process.stdout.read(1 << 16):
            self.log.write(data)
        self.log.end()

    async def ended(self) -> Ended:
        assert self._process is not None
        assert self._copying is not None
        code = await self._process.wait()
        await asyncio.shield(self._copying)
        if self._ended is None:
            self._ended = Ended(code=code if code >= 0 else 128 - code, started_at=self.started_at)
            if self._limit is not None and self._limit.close() and code != 0:
                self._ended.reason = "OOMKilled"
            self._ended.message = self._message.read_text(errors="replace")[:4096]
            if code != 0 and self._says_last and not self._ended.message:
                self._ended.message = self.log.last_words()
        return self._ended

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)


def _tools() -> dict[str, str]:
    """An image has the programs of this machine, and an SSH server if there is one for tests."""
    folder = openssh.cached()
    if folder is None:
        return {"PATH": _PATH}
    libraries = ":".join(str(found) for found in (folder / "usr/lib").glob("*-linux-gnu"))
    return {"PATH": f"{_PATH}:{folder}/usr/sbin", "LD_LIBRARY_PATH": libraries}


def _programs(image: str) -> list[dict[str, Any]]:
    """The substitutes for an image's own programs."""
    if "/buildkit:" not in image:
        return []
    return [_at(f"/usr/local/bin/{found.name}", found) for found in _STAND_INS.iterdir()]


def _at(target: str, source: Path) -> dict[str, Any]:
    return {"source": str(source), "target": target, "read_only": False}


def hostname(pod: Mapping[str, Any]) -> str:
    return pod["spec"].get("hostname") or pod["metadata"]["name"][:63]


def _read_all(descriptor: int) -> str:
    with os.fdopen(descriptor, "rb") as report:
        return report.read().decode()


def _home(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_dir
    except KeyError:
        return "/"
