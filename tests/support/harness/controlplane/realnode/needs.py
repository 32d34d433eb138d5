"""What a machine needs to run real nodes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
CNI = Path("/usr/lib/cni")
BUSYBOX = Path("/bin/busybox")
HIERARCHIES = (
    "cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "systemd",
)  # fmt: skip
PACKAGES = {
    "containerd": "containerd", "ctr": "containerd", "runc": "runc", "busybox": "busybox-static",
    "iptables": "iptables", "ip": "iproute2", "unshare": "util-linux",
    "nsenter": "util-linux",
}  # fmt: skip
"""Program -> the package of Debian that has it."""


def why_not() -> str:
    """Empty if real nodes can run here; otherwise one sentence that says what is missing."""
    if os.geteuid() != 0:
        return "runs kubelet and containerd, which needs root"
    missing = {package for program, package in PACKAGES.items() if shutil.which(program) is None}
    if BUSYBOX.exists() and b"ld-linux" in BUSYBOX.read_bytes()[:4096]:
        missing.add("busybox-static")
    if not (CNI / "bridge").is_file():
        missing.add("containernetworking-plugins")
    if missing:
        return (
            f"real nodes need {', '.join(sorted(missing))}: as root, run "
            f"apt-get install --no-install-recommends {' '.join(sorted(missing))}"
        )
    if absent := [name for name in HIERARCHIES if not (CGROUPS / name).is_dir()]:
        return (
            f"real nodes need control groups of version 1 with {', '.join(absent)}: only that was "
            "tried with these tests"
        )
    tried = subprocess.run(
        ["unshare", "--mount", "--pid", "--net", "--fork", "--mount-proc", "true"],
        capture_output=True, text=True, timeout=20, check=False,
    )  # fmt: skip
    return f"cannot make namespaces here: {tried.stderr.strip()}" if tried.returncode else ""
