"""The program `tofu`: found, or built once from its pinned Go module.

python -m tests.support.harness.tofu.build

builds it ahead of a test run and prints its path.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MODULE = "github.com/opentofu/opentofu"
VERSION = "1.12.6"
CHECKSUM = "h1:0VT4P8pMmGcCUnQ9JDrJ+Qg2d35Vzm4FFd/9+H7oF98="
"""What go.sum would hold for the module; the build refuses any other content."""
HOW = (
    "name a program by ODC_TEST_TOFU, or install Go 1.26 or newer, which builds OpenTofu"
    f" {VERSION} once (some 8 minutes)"
)


class NoTofu(Exception):
    """The program is not available here; the message says what is needed."""


def tofu() -> Path:
    """The path of tofu, which is built if it is neither given nor cached.

    Raises NoTofu if there is none and Go is not installed.
    """
    if given := os.environ.get("ODC_TEST_TOFU"):
        if not os.access(given, os.X_OK):
            raise NoTofu(f"ODC_TEST_TOFU names {given}, which is no program; {HOW}")
        return Path(given)
    cached = _cached()
    if cached.is_file():
        return cached
    go = shutil.which("go")
    if go is None:
        raise NoTofu(f"no OpenTofu {VERSION} here; {HOW}")
    cached.parent.mkdir(parents=True, exist_ok=True)
    with _locked(cached.parent / "tofu.lock"):
        if not cached.is_file():
            _build(go, cached)
    return cached


def ready() -> Path | None:
    """The path of tofu if it is given or cached: never builds, for tests that must be fast."""
    if given := os.environ.get("ODC_TEST_TOFU"):
        return Path(given)
    return _cached() if _cached().is_file() else None


def _cached() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "odc" / "tofu" / f"tofu-{VERSION}"


def _build(go: str, into: Path) -> None:
    print(f"building OpenTofu {VERSION}, once, into {into}", file=sys.__stderr__)
    with tempfile.TemporaryDirectory(dir=into.parent, prefix="build-") as scratch:
        # The module's go.mod has a replace directive, so it only builds as the main module.
        source = Path(scratch) / "source"
        shutil.copytree(_downloaded(go, Path(scratch)), source, copy_function=shutil.copyfile)
        source.chmod(0o755)
        built = Path(scratch) / "tofu"
        done = subprocess.run(
            [go, "build", "-ldflags", "-s -w", "-o", str(built), "./cmd/tofu"],
            cwd=source,
            env=os.environ | {"GOFLAGS": "-buildvcs=false", "CGO_ENABLED": "0"},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(
                f"go could not build OpenTofu {VERSION}:\n{done.stderr[-4000:]}\n"
                f"To do without: {HOW}."
            )
        built.rename(into)


def _downloaded(go: str, scratch: Path) -> Path:
    """The module's folder in Go's cache, its content checked."""
    done = subprocess.run(
        [go, "mod", "download", "-json", f"{MODULE}@v{VERSION}"],
        cwd=scratch,
        capture_output=True,
        text=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout) if done.stdout else {}
    if done.returncode or answer.get("Error"):
        raise RuntimeError(
            f"go could not download {MODULE} v{VERSION}:"
            f" {answer.get('Error') or done.stderr}\nTo do without: {HOW}."
        )
    if answer["Sum"] != CHECKSUM:
        raise RuntimeError(f"{MODULE} v{VERSION} has the checksum {answer['Sum']}, not {CHECKSUM}")
    return Path(answer["Dir"])


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    print(tofu())
