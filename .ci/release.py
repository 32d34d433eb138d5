"""Build a release into dist/: python .ci/release.py [--version X.Y.Z] [--snapshot]

Called by `make release`. The version is the commit's tag vX.Y.Z. The sdist is built from the
commit, and the wheel and the image are built from the sdist. Times in the archives are the
commit's, so a second build gives the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from packaging.version import InvalidVersion, Version

IMAGE_TOOLS = ("docker", "podman", "buildah")


class Refused(Exception):
    def __init__(self, why: str, hint: str) -> None:
        super().__init__(f"release not built: {why}\n  {hint}")


def run(*command: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise Refused(
            f"`{' '.join(map(str, command))}` exited with {done.returncode}",
            f"Its output:\n{done.stdout}{done.stderr}",
        )
    return done.stdout.strip()


def tag_of(root: Path) -> str | None:
    done = subprocess.run(
        ["git", "describe", "--exact-match", "--tags", "--match", "v[0-9]*"],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.strip() or None


def choose_version(root: Path, wanted: str | None, *, snapshot: bool) -> str:
    """Raises Refused when the working tree or the changelog is not ready for this release."""
    changed = run("git", "status", "--porcelain", cwd=root)
    if changed and not snapshot:
        raise Refused(
            f"the working tree has changes:\n{changed}",
            "Commit them. For a build that is not a release, run: make release SNAPSHOT=1",
        )
    tag = tag_of(root)
    if wanted is None and tag is not None and not changed:
        wanted = tag[1:]
    if wanted is None and snapshot:
        return run(sys.executable, "-m", "hatchling", "version", cwd=root)
    if wanted is None:
        raise Refused(
            "this commit has no tag of the form v1.2.3",
            "Tag it: git tag -a v1.2.3. Or run: make release VERSION=1.2.3 or SNAPSHOT=1",
        )
    try:
        parsed = Version(wanted)
    except InvalidVersion as error:
        raise Refused(str(error), "A version has the form 1.2.3, or 1.2.3rc1.") from error
    if tag is not None and Version(tag) != parsed and not snapshot:
        raise Refused(f"the commit's tag is {tag}, not v{parsed}", "Leave VERSION out.")
    if not snapshot and not parsed.is_prerelease:
        check_changelog((root / "CHANGELOG.md").read_text("utf-8"), str(parsed))
    return str(parsed)


def check_changelog(text: str, version: str) -> None:
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", text, re.MULTILINE):
        raise Refused(
            f"CHANGELOG.md has no section for version {version}",
            f'Rename "## [Unreleased]" to "## [{version}] - YYYY-MM-DD", and add an empty '
            '"## [Unreleased]" above it.',
        )


def build_packages(root: Path, out: Path, env: Mapping[str, str]) -> Path:
    """Build the sdist, and the wheel from it. Return the folder of the unpacked sdist."""
    python = [sys.executable, "-m", "hatchling", "build", "-d", out, "-t"]
    run(*python, "sdist", cwd=root, env=env)
    [sdist] = out.glob("*.tar.gz")
    unpacked = Path(tempfile.mkdtemp(dir=out.parent))
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    [source] = unpacked.iterdir()
    run(*python, "wheel", cwd=source, env=env)
    return source


def write_sbom(root: Path, out: Path, version: str, env: Mapping[str, str]) -> None:
    """List the locked libraries of odc and of its extras, with their hashes."""
    path = out / f"odc-{version}.cdx.json"
    run(
        sys.executable, "-W", "ignore::UserWarning", "-m", "cyclonedx_py", "requirements",
        "requirements/image.lock", "--pyproject", "pyproject.toml", "--output-reproducible",
        "--of", "JSON", "-o", path, cwd=root, env=env,
    )  # fmt: skip
    # pyproject.toml has no version: it is the tag's.
    text = json.loads(path.read_text("utf-8"))
    text["metadata"]["component"] |= {"version": version, "purl": f"pkg:generic/odc@{version}"}
    path.write_text(json.dumps(text, indent=2, sort_keys=True) + "\n", "utf-8")


def image_tool() -> tuple[str | None, str]:
    """(the tool that can build images here, or None; why the others cannot)."""
    reasons: list[str] = []
    for tool in IMAGE_TOOLS:
        if shutil.which(tool) is None:
            reasons.append(f"{tool} is not installed")
        elif subprocess.run([tool, "info"], capture_output=True, check=False).returncode:
            reasons.append(f"`{tool} info` fails")
        else:
            return tool, ""
    return None, ", ".join(reasons)


def build_image(tool: str, source: Path, out: Path, version: str, revision: str) -> None:
    tag = version.replace("+", "-")  # an image's tag may have no +
    archive = out / f"odcd-{tag}-image.tar"
    run(
        tool, "build", "-f", "k8s/Dockerfile", "--build-arg", f"VERSION={version}",
        "--build-arg", f"REVISION={revision}", "-t", f"odcd:{tag}", ".", cwd=source,
    )  # fmt: skip
    if tool == "buildah":
        run(tool, "push", f"odcd:{tag}", f"docker-archive:{archive}:odcd:{tag}", cwd=source)
    else:
        run(tool, "save", "-o", archive, f"odcd:{tag}", cwd=source)


def write_sums(out: Path) -> None:
    lines: list[str] = []
    for path in sorted(out.iterdir()):
        with path.open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n")
    (out / "SHA256SUMS").write_text("".join(lines), "utf-8")


def release(root: Path, wanted: str | None, *, snapshot: bool) -> list[Path]:
    """Replace dist/ by the files of one release, and return them."""
    version = choose_version(root, wanted, snapshot=snapshot)
    revision = run("git", "rev-parse", "HEAD", cwd=root)
    env = {
        "SOURCE_DATE_EPOCH": run("git", "log", "-1", "--format=%ct", cwd=root),
        "SETUPTOOLS_SCM_PRETEND_VERSION": version,
    }
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "dist"
        out.mkdir()
        source = build_packages(root, out, env)
        write_sbom(root, out, version, env)
        tool, reasons = image_tool()
        if tool is None:
            print(f"release: no container image was built: {reasons}", file=sys.stderr)
        else:
            build_image(tool, source, out, version, revision)
        write_sums(out)
        shutil.rmtree(root / "dist", ignore_errors=True)
        shutil.copytree(out, root / "dist")
    return sorted((root / "dist").iterdir())


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="make release",
        description="Build wheel, sdist, image, SBOM and SHA256SUMS into dist/.",
    )
    parser.add_argument("--version", help="the version of a commit without a tag")
    parser.add_argument(
        "--snapshot", action="store_true",
        help="build this working tree whatever its state, for tests and not for users",
    )  # fmt: skip
    options = parser.parse_args(argv)
    try:
        files = release(Path.cwd(), options.version, snapshot=options.snapshot)
    except Refused as error:
        print(error, file=sys.stderr)
        return 1
    print(*(path.relative_to(Path.cwd()) for path in files), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
