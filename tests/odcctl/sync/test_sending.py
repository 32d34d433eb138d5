"""Pack the files of a folder for a job."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from odcctl.exits import Failure
from odcctl.sync import sending
from odcctl.sync.sending import find, pack


def unpacked(folder: Path, into: Path) -> Path:
    """As in a job: with the system's tar."""
    into.mkdir()
    with (into / "archive").open("w+b") as out:
        pack(find(str(folder), None), out)
        out.seek(0)
        subprocess.run(["tar", "-xof", "-"], stdin=out, cwd=into, check=True)
    assert (into / "complete").exists()
    return into / "data"


def test_names_modes_times_and_links_arrive(tmp_path: Path) -> None:
    folder = tmp_path / "from"
    long = f"{'d' * 200}/{'f' * 200}"
    for name in ("a", "two\nlines", "ü", "-x", " ", "\udcff", "b\\c", long):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name.encode("utf-8", "surrogateescape").hex())
    (folder / "empty").mkdir()
    (folder / "none").write_bytes(b"")
    (folder / "a").chmod(0o750)
    os.utime(folder / "a", (1_000_000_000, 1_200_000_000))
    (folder / "link").symlink_to("empty/../a")
    (folder / "empty" / "up").symlink_to("../a")
    (folder / "dangling").symlink_to("none-such")
    there = unpacked(folder, tmp_path / "to")
    expected = {path.relative_to(folder) for path in folder.rglob("*")}
    assert {path.relative_to(there) for path in there.rglob("*")} == expected - {Path("link")}
    for path in expected:
        if (folder / path).is_file() and not (folder / path).is_symlink():
            assert (there / path).read_bytes() == (folder / path).read_bytes()
    assert (there / "a").stat().st_mode & 0o777 == 0o750
    assert int((there / "a").stat().st_mtime) == 1_200_000_000
    assert (there / "empty" / "up").readlink() == Path("../a")


def test_only_files_and_links_within_the_folder_are_sent(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "fifo")
    for name, goal in (("out", ".."), ("root", "/"), ("far", "file/../../x")):
        (tmp_path / name).symlink_to(goal)
    found = find(str(tmp_path), None)
    assert found.paths == ["file"]
    assert [line.partition(":")[0] for line in found.unsent] == ["far", "fifo", "out", "root"]


def test_too_much_is_refused_before_anything_is_packed(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"x")
    (tmp_path / "big").mkdir()
    with (tmp_path / "big" / "file").open("wb") as file:
        file.truncate(3 << 20)
    with pytest.raises(Failure, match=r"at most 2 MiB can be sent; the largest are big/ \(3"):
        find(str(tmp_path), 2 << 20)
    assert find(str(tmp_path), 4 << 20).amount.files == 2


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("file", "nothing"):
        with pytest.raises(Failure, match="is not a folder"):
            find(str(tmp_path / name), None)


def test_a_file_that_changes_meanwhile_is_sent_as_it_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shrinks once while it is read, and another one grows."""
    for name in ("grows", "shrinks"):
        (tmp_path / name).write_bytes(b"x" * 100_000)
    found = find(str(tmp_path), None)
    read = sending.Reading.read
    changed: list[str] = []

    def reading(self: Any, size: int) -> bytes:
        name = Path(f"/proc/self/fd/{self._file.fileno()}").readlink().name
        if name not in changed:
            changed.append(name)
            if name == "grows":
                with (tmp_path / name).open("ab") as file:
                    file.write(b"y")
            else:
                (tmp_path / name).write_bytes(b"short")
        return read(self, size)

    monkeypatch.setattr(sending.Reading, "read", reading)
    out = io.BytesIO()
    packed = pack(found, out)
    out.seek(0)
    with tarfile.open(fileobj=out) as tar:
        content = {m.name: tar.extractfile(m).read() for m in tar if m.isreg()}  # type: ignore[union-attr]
    assert content == {
        "data/grows": b"x" * 100_000, "data/shrinks": b"short", "complete": b"",
    }  # fmt: skip
    assert packed.changed == ["grows"]
    assert packed.digests["shrinks"] == hashlib.sha256(b"short").hexdigest()


def test_a_file_that_vanishes_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "b").write_text("x")
    found = find(str(tmp_path), None)
    (tmp_path / "a").unlink()
    assert list(pack(found, io.BytesIO()).digests) == ["b"]


def test_a_link_that_is_moved_out_meanwhile_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    found = find(str(tmp_path), None)
    (tmp_path / "a").unlink()
    (tmp_path / "a").symlink_to("/etc/passwd")
    assert pack(found, io.BytesIO()).digests == {}
