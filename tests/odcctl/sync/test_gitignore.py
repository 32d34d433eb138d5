"""The files that run --sync sends, compared with git itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from odcctl.exits import Failure
from odcctl.sync.sending import find

FILES = (
    "a.txt", "a.log", "keep.log", "build/x", "build/keep", "src/build/x", "src/a.log", "src/b.py",
    "src/deep/c.py", "src/deep/a.txt", "docs/a/b/c", "docs/a/x", "docs/x", "foo", "foo bar", "#x",
    "!y", "bücher/ä", "data1", "data2", "datax", "sub/only/here", "only/here", "trail ", "a/b/z",
)  # fmt: skip
IGNORES = (
    "*.log\n!keep.log\n", "build/\n", "/build\n", "build\n!build/keep\n", "src/*.log\n",
    "**/c.py\n",
    "docs/**/x\n", "docs/**\n!docs/x\n", "docs/*\n!docs/a\n", "foo\nfoo\\ bar\n", "\\#x\n\\!y\n",
    "data[12]\n", "data[!12]\n", "data?\n", "only/here\n", "/only\n", "trail\\ \n", "  \n\n# x\n",
    "a/**/z\n", "*\n!*.txt\n", "*\n!*/\n!*.txt\n", "/*\n!/src\n", "bücher\n", "src/deep/\n",
)  # fmt: skip


def make(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def sent(folder: Path) -> list[str]:
    found = find(str(folder), None)
    return sorted(path for path in found.paths if not (folder / path).is_dir())


def by_git(folder: Path) -> list[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    for argv in (("init", "-q"), ("ls-files", "-z", "--others", "--exclude-standard")):
        done = subprocess.run(
            ["git", "-C", str(folder), *argv], env=environment, capture_output=True, check=True
        )
    return sorted(os.fsdecode(name) for name in done.stdout.split(b"\0") if name)


@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
@pytest.mark.parametrize("rules", IGNORES)
def test_rules_mean_what_they_mean_to_git(tmp_path: Path, rules: str) -> None:
    make(tmp_path, {name: name for name in FILES} | {".gitignore": rules})
    assert sent(tmp_path) == by_git(tmp_path)


@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
def test_a_folder_may_have_rules_of_its_own(tmp_path: Path) -> None:
    make(tmp_path, {name: name for name in FILES} | {
        ".gitignore": "*.txt\nx\n", "src/.gitignore": "/b.py\n!*.txt\n", "docs/.gitignore": "!x\n",
    })  # fmt: skip
    assert sent(tmp_path) == by_git(tmp_path)


def test_an_odcignore_replaces_the_gitignores(tmp_path: Path) -> None:
    make(tmp_path, {"a": "", "b": "", "c/d": "", ".gitignore": "a\n", "c/.gitignore": "d\n",
                    ".odcignore": "b\n"})  # fmt: skip
    assert sent(tmp_path) == [".gitignore", ".odcignore", "a", "c/.gitignore", "c/d"]


def test_git_and_caches_are_never_sent(tmp_path: Path) -> None:
    make(tmp_path, {".git/config": "", "sub/.git": "gitdir: x", "x/__pycache__/y.pyc": "", "z": "",
                    ".odcignore": "!.git\n"})  # fmt: skip
    assert sent(tmp_path) == [".odcignore", "z"]


def test_a_pattern_that_is_no_pattern_is_reported_with_its_file(tmp_path: Path) -> None:
    make(tmp_path, {".gitignore": "a[b\n"})
    with pytest.raises(Failure, match=r"\.gitignore cannot be used: .* without a matching \]"):
        find(str(tmp_path), None)
