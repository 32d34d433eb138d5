"""An SSH server for tests: Debian's, unpacked beside the other programs, where none is installed.

    python -m tests.support.harness.controlplane.openssh

fetches it ahead of a test run and prints where it lies.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

PACKAGES = ("openssh-server", "libwrap0")
FOLDER = Path.home() / ".cache" / "odc" / "openssh"
HOW = (
    "install openssh-server, or let Debian's be fetched once: apt-get update && python -m "
    "tests.support.harness.controlplane.openssh"
)


def cached() -> Path | None:
    """The folder into which the packages are unpacked, if they are."""
    return FOLDER if (FOLDER / "usr/sbin/sshd").is_file() else None


def why_not() -> str:
    """Empty if an SSH server is available; otherwise how to get one."""
    if shutil.which("sshd", path="/usr/sbin:/usr/local/sbin") or cached():
        return ""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return f"there is no sshd: {HOW}"
    try:
        _fetch()
    except (subprocess.SubprocessError, OSError) as error:
        return f"there is no sshd, and it cannot be fetched ({error}): {HOW}"
    return ""


def _fetch() -> None:
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER.parent) as made:
        folder = Path(made)
        subprocess.run(
            ["apt-get", "--quiet", "download", *PACKAGES], cwd=folder, check=True,
            capture_output=True, timeout=120,
        )  # fmt: skip
        for package in folder.glob("*.deb"):
            subprocess.run(
                ["dpkg-deb", "--extract", package, folder / "root"], check=True, timeout=60
            )
        (folder / "root").chmod(0o755)
        try:
            (folder / "root").rename(FOLDER)
        except OSError:
            if cached() is None:
                raise


if __name__ == "__main__":
    print(why_not() or FOLDER)
