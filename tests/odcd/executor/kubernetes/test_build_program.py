"""The program of a build's container: its arguments for BuildKit, and its reaction to the answer.

BuildKit's messages here are those that v0.25 printed for each of these failures.
"""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from odcd.executor.kubernetes.build import PROGRAM, WRONG

DIGEST = f"sha256:{'c5' * 32}"
METADATA = f"""{{
  "containerimage.config.digest": "sha256:{"31" * 32}",
  "containerimage.descriptor": {{"digest": "sha256:{"42" * 32}"}},
  "containerimage.digest": "{DIGEST}"
}}"""


def run(folder: Path, output: str, code: int, metadata: str = "") -> tuple[int, str, list[str]]:
    """Exit code, termination message, and BuildKit's arguments, when BuildKit prints this
    output."""
    for name in ("odc", "work", "bin"):
        (folder / name).mkdir()
    with tarfile.open(folder / "odc" / "context.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("Dockerfile")
        archive.addfile(member, io.BytesIO())
    (folder / "said").write_text(output)
    (folder / "metadata").write_text(metadata)
    buildkit = folder / "bin" / "buildctl"
    buildkit.write_text(
        '#!/bin/sh\n[ "$3" = build ] || exit 0\n'
        f'printf "%s\\n" "$@" >{folder}/arguments\ncat {folder}/said >&2\n'
        f"cp {folder}/metadata {folder}/scratch/metadata.json\nexit {code}\n"
    )
    buildkit.chmod(0o755)
    program = folder / "build.sh"
    program.write_text(
        PROGRAM.replace("/odc/build/", f"{folder}/odc/")
        .replace("/scratch", f"{folder}/scratch")
        .replace("/dev/termination-log", f"{folder}/message")
    )
    env = {
        "PATH": f"{folder}/bin:{os.environ['PATH']}", "ODC_IMAGE": "r.example/b:abc",
        "ODC_CACHE": "r.example/b:cache-1", "ODC_DOCKERFILE": "Dockerfile",
        "ODC_REPOSITORY": "r.example/b", "ODC_PUSHED_TO": "r.example/b", "BUILDKIT_HOST": "unix:///socket",
        "ODC_PLATFORM": "linux/amd64", "ODC_REGISTRY_HTTP": "on",
    }  # fmt: skip
    done = subprocess.run(["sh", program], env=env, capture_output=True, text=True, check=False)
    message = folder / "message"
    arguments = (folder / "arguments").read_text().splitlines()
    return done.returncode, message.read_text() if message.exists() else done.stdout, arguments


def test_the_program_leaves_the_image_digest(tmp_path: Path) -> None:
    """IMG-15"""
    code, message, arguments = run(tmp_path, "#6 DONE 0.3s\n", 0, METADATA)
    assert (code, message) == (0, DIGEST)
    assert (
        "type=image,oci-mediatypes=true,name=r.example/b:abc,push=true,registry.insecure=true"
        in (arguments)
    )
    assert "platform=linux/amd64" in arguments
    assert "type=registry,ref=r.example/b:cache-1,registry.insecure=true" in arguments


MESSAGES: dict[str, tuple[str, int]] = {
    "a step": ('process "/bin/sh -c make" did not complete successfully: exit code: 2', WRONG),
    "a file": (
        "failed to compute cache key: failed to calculate checksum of ref x::y: "
        '"/missing": not found', WRONG,
    ),
    "a word": ("dockerfile parse error on line 2: unknown instruction: FOO", WRONG),
    "nothing": ("file with no instructions", WRONG),
    "an image": ("r/x:1: failed to resolve source metadata for r/x:1: r/x:1: not found", WRONG),
    "its registry": (
        'r/x:1: failed to resolve source metadata for r/x:1: failed to do request: Head "http:": '
        "dial tcp 127.0.0.1:9: connect: connection refused", 1,
    ),
    "the push": (
        'failed to push r/x:abc: failed to do request: Head "https:": dial tcp: i/o timeout', 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("message", "expected"), MESSAGES.values(), ids=MESSAGES)
def test_only_temporary_failures_are_retried(tmp_path: Path, message: str, expected: int) -> None:
    """IMG-07, IMG-09"""
    code, reported, _ = run(tmp_path, f"error: failed to solve: {message}\n", 1)
    assert code == expected
    assert message in reported


def test_a_build_without_digest_fails(tmp_path: Path) -> None:
    code, reported, _ = run(tmp_path, "", 0, "{}")
    assert code == 1
    assert "did not report the image that it built" in reported
